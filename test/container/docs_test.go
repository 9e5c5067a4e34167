package container

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterd/muster/agent"
)

// The examples about containers of docs/work.md run as they stand there, with an image, a
// bundle and folders of this host in the place of those that they name.
func TestTheExamplesOfTheDocuments(t *testing.T) {
	folder := open(t)
	crun := tool(t)
	image := rootfs(t, folder)
	for path, text := range map[string]string{
		"tiny/opt/train.py": "echo trained by $0\n", "tiny/bin/python3": "#!/bin/sh\nexec sh \"$@\"\n", "data/file": "", "runs/file": "",
		"config.json": `{"ociVersion": "1.0.2", "root": {"path": "tiny"}, "process": {"args": ["python3", "/opt/train.py"], "env": ["PATH=/bin"], "cwd": "/opt"}}`,
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer(
		"rootfs: /srv/images/pytorch", "rootfs: "+image, "--rootfs /srv/images/pytorch", "--rootfs "+image,
		"bundle: /srv/images/pytorch", "bundle: "+folder, "--bundle /srv/images/pytorch", "--bundle "+folder,
		"/srv/data/imagenet", folder+"/data", "/home/ada/runs", folder+"/runs",
	)
	page, err := os.ReadFile("../../docs/work.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## A root file system of its own\n")
	section, _, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatal("docs/work.md has no section about root file systems")
	}
	documents := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
	commands := regexp.MustCompile("`muster (run .*?)`").FindAllStringSubmatch(section, -1)
	if len(documents) < 3 || len(commands) < 3 {
		t.Fatalf("%d documents and %d commands, want 3 of both at least", len(documents), len(commands))
	}
	muster := cluster(t, &agent.Containers{Tool: crun, Init: initOf(t, folder), Folders: []string{folder}, Mounts: []string{folder}})
	const want = "trained by /opt/train.py\n"
	for _, c := range commands {
		if code, out, errors := muster(strings.Fields(here.Replace(c[1]))...); code != 0 || out != want {
			t.Errorf("%s: code %d, output %q\n%s", c[0], code, out, errors)
		}
	}
	name := regexp.MustCompile(`metadata: \{name: (\S+)\}`)
	for _, d := range documents {
		job := filepath.Join(folder, "job.yaml")
		if err := os.WriteFile(job, []byte(here.Replace(d[1])), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errors := muster("submit", "-f", job); code != 0 {
			t.Errorf("%s\ncode %d: %s%s", d[1], code, out, errors)
			continue
		}
		if code, out, errors := muster("logs", "-f", name.FindStringSubmatch(d[1])[1]); code != 0 || out != want {
			t.Errorf("%s\ncode %d, output %q\n%s", d[1], code, out, errors)
		}
	}
}
