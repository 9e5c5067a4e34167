package container

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/cmd/muster/dev"
)

// cluster is a cluster of one process whose nodes run containers of the folder's images.
func cluster(t *testing.T, containers *agent.Containers) func(args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c, err := dev.Start(ctx, dev.Config{
		Nodes: 1, Profile: "dgx-a100", DataDir: t.TempDir(), Listen: "127.0.0.1:0", Version: "v0.0.0-test",
		Logger: slog.New(slog.DiscardHandler), Progress: func(int, int) {},
		Work: &agent.RunConfig{Program: self, User: &member, Env: []string{"PATH=/usr/bin:/bin", "OF=the host"}, Dir: "/", Containers: containers},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return func(args ...string) (code int, stdout, stderr string) {
		var out, errors bytes.Buffer
		env := map[string]string{"MUSTER_ADDR": c.Addresses.REST, "MUSTER_TOKEN": c.Token, "MUSTER_CONTEXT": t.TempDir() + "/context.json"}
		program := cli.Program{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errors, Env: func(name string) string { return env[name] }, Args: args, Version: "v0.0.0-test",
		}
		code = program.Run(ctx)
		return code, out.String(), errors.String()
	}
}

func TestAJobRunsInARootFileSystem(t *testing.T) {
	folder := open(t)
	crun := tool(t)
	image := rootfs(t, folder)
	specs := filepath.Join(folder, "cdi")
	if err := os.Mkdir(specs, 0o755); err != nil {
		t.Fatal(err)
	}
	muster := cluster(t, &agent.Containers{Tool: crun, Init: initOf(t, folder), Folders: []string{folder}, CDI: []string{specs}})
	code, out, errors := muster("run", "-g", "2", "--rootfs", image, "-e", "A=set", "--chdir", "/etc", "--", "sh", "-c", "cat inside; echo $A $OF; echo $CUDA_VISIBLE_DEVICES | grep -c ,; exit 7")
	if code != 7 || out != "the image\nset\n1\n" {
		t.Errorf("code %d, output %q\n%s", code, out, errors)
	}
	describeDevices(t, muster, specs)
	code, out, errors = muster("run", "-g", "2", "--rootfs", image, "--", "sh", "-c", "cd /dev; for f in gpu-*; do echo $f; done; echo $OF_CDI; echo $CUDA_VISIBLE_DEVICES")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 4 || lines[2] != "yes" || !slices.Equal(granted(lines[3]), lines[:2]) {
		t.Errorf("code %d, output %q: want the files of the two granted devices alone\n%s", code, out, errors)
	}
	code, out, errors = muster("run", "--rootfs", "/usr", "--", "sh")
	if want := "it lies in none of the folders that this host permits"; code != 126 || !strings.Contains(out+errors, want) {
		t.Errorf("a folder elsewhere: code %d, %q %q; want 126 and %q", code, out, errors, want)
	}
}

// granted are the files of the devices of CUDA_VISIBLE_DEVICES.
func granted(uuids string) []string {
	var files []string
	for uuid := range strings.SplitSeq(uuids, ",") {
		files = append(files, "gpu-"+uuid)
	}
	slices.Sort(files)
	return files
}

// describeDevices writes a specification of all devices, which are files of the folder here.
func describeDevices(t *testing.T, muster func(args ...string) (int, string, string), folder string) {
	t.Helper()
	code, out, errors := muster("run", "-g", "8", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
	if code != 0 {
		t.Fatalf("code %d: %s%s", code, out, errors)
	}
	var spec strings.Builder
	spec.WriteString("cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ncontainerEdits: {env: [OF_CDI=yes]}\ndevices:\n")
	for uuid := range strings.SplitSeq(strings.TrimSpace(out), ",") {
		file := filepath.Join(folder, uuid)
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&spec, "- name: %s\n  containerEdits: {deviceNodes: [{path: /dev/gpu-%s, hostPath: %s}]}\n", uuid, uuid, file)
	}
	if err := os.WriteFile(filepath.Join(folder, "nvidia.yaml"), []byte(spec.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAJobWithARootFileSystemWaitsForANodeThatRunsContainers(t *testing.T) {
	muster := cluster(t, nil)
	job := filepath.Join(t.TempDir(), "job.yaml")
	const document = "kind: Job\nmetadata: {name: waits}\nspec: {template: {spec: {command: [sh], rootfs: /srv/images/tiny, resources: {requests: {cpu: 1}}}}}\n"
	if err := os.WriteFile(job, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errors := muster("submit", "-f", job); code != 0 {
		t.Fatalf("code %d: %s%s", code, out, errors)
	}
	_, out, errors := muster("why", "job/waits")
	if want := "label muster.dev/runs-containers is not set, want true"; !strings.Contains(out+errors, want) {
		t.Errorf("why says %q %q, want %q", out, errors, want)
	}
}

func TestAJobMountsFoldersOfItsNode(t *testing.T) {
	folder := open(t)
	crun := tool(t)
	image := rootfs(t, folder)
	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "file"), []byte("of the node\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	muster := cluster(t, &agent.Containers{Tool: crun, Init: initOf(t, folder), Folders: []string{folder}, Mounts: []string{data}})
	code, out, errors := muster("run", "--rootfs", image, "--mount", data+":/mnt:ro", "--mount", data+"/file:/tmp/file", "--", "cat", "/mnt/file", "/tmp/file")
	if code != 0 || out != "of the node\nof the node\n" {
		t.Errorf("code %d, output %q\n%s", code, out, errors)
	}
	code, out, errors = muster("run", "--name", "refused", "--rootfs", image, "--mount", "/etc:/mnt", "--", "true")
	const want = "the mount of /etc: it lies in none of the folders that this host permits: "
	if code != 126 || !strings.Contains(out+errors, want+data) {
		t.Errorf("a folder that the node does not permit: code %d, %q %q; want 126 and %q", code, out, errors, want)
	}
	if _, out, errors = muster("why", "job/refused"); !strings.Contains(out, want+data) {
		t.Errorf("why says %q %q, want %q", out, errors, want)
	}
}

func TestAJobWithMountsWaitsForANodeThatMountsFolders(t *testing.T) {
	folder := open(t)
	muster := cluster(t, &agent.Containers{Tool: tool(t), Init: initOf(t, folder), Folders: []string{folder}})
	job := filepath.Join(folder, "job.yaml")
	const document = "kind: Job\nmetadata: {name: waits}\nspec: {template: {spec: {command: [sh], rootfs: /srv/images/tiny, mounts: [{source: /srv}], resources: {requests: {cpu: 1}}}}}\n"
	if err := os.WriteFile(job, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errors := muster("submit", "-f", job); code != 0 {
		t.Fatalf("code %d: %s%s", code, out, errors)
	}
	_, out, errors := muster("why", "job/waits")
	if want := "label muster.dev/mounts-folders is not set, want true"; !strings.Contains(out+errors, want) {
		t.Errorf("why says %q %q, want %q", out, errors, want)
	}
}

func TestAJobRunsTheCommandOfItsBundle(t *testing.T) {
	folder := open(t)
	crun := tool(t)
	rootfs(t, folder)
	const config = `{"ociVersion": "1.0.2", "root": {"path": "tiny"}, "process": {"user": {"uid": 0, "gid": 0}, "args": ["sh", "-c", "pwd; echo $A $B $OF; echo $CUDA_VISIBLE_DEVICES | grep -c ,; exit 7"], "env": ["PATH=/bin", "A=set", "CUDA_VISIBLE_DEVICES=all"], "cwd": "/etc"}}`
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	muster := cluster(t, &agent.Containers{Tool: crun, Init: initOf(t, folder), Folders: []string{folder}})
	if code, out, errors := muster("run", "-g", "2", "--bundle", folder, "-e", "B=too"); code != 7 || out != "/etc\nset too\n1\n" {
		t.Errorf("code %d, output %q\n%s", code, out, errors)
	}
	if code, out, errors := muster("run", "--bundle", folder, "--chdir", "/mnt", "--", "sh", "-c", "pwd; echo $A"); code != 0 || out != "/mnt\nset\n" {
		t.Errorf("a command of the job: code %d, output %q\n%s", code, out, errors)
	}
	if code, out, errors := muster("run", "--bundle", folder, "--rootfs", folder+"/tiny"); code == 0 || !strings.Contains(errors, "leave one of the two out") {
		t.Errorf("with rootfs too: code %d, %q %q", code, out, errors)
	}
	if code, out, errors := muster("run"); code == 0 || !strings.Contains(errors, "want a command after --, or --bundle") {
		t.Errorf("no command: code %d, %q %q", code, out, errors)
	}
}
