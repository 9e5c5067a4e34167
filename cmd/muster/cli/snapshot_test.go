package cli

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// TestASnapshotIsReplayed: a snapshot of a cluster that serves goes into a file, and
// simulate goes on from there.
func TestASnapshotIsReplayed(t *testing.T) {
	cluster := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 8}, resttest.Node{Name: "n2", CPUs: 8})
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token)}))
	t.Cleanup(server.Close)
	s := newShell(t, server)
	document := func(name, cpu string) string {
		return "kind: Allocation\nmetadata: {name: " + name + "}\nspec: {resources: {requests: {cpu: \"" + cpu + "\"}}}\n"
	}
	if code, _, stderr := s.run(t.Context(), document("a", "6")+"---\n"+document("b", "6")+"---\n"+document("c", "6"), "submit", "-f", "-"); code != ExitDone {
		t.Fatal(stderr)
	}
	file := filepath.Join(t.TempDir(), "cluster.json")
	code, stdout, stderr := s.run(t.Context(), "", "snapshot", "--file", file)
	if code != ExitDone || !strings.Contains(stdout, "with 2 nodes and 3 units") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	if code, piped, _ := s.run(t.Context(), "", "snapshot", "--file", "-"); code != ExitDone || !json.Valid([]byte(piped)) {
		t.Errorf("exit %d, no JSON on standard output: %.100s", code, piped)
	}
	work := filepath.Join(t.TempDir(), "work.yaml")
	if err := os.WriteFile(work, []byte(document("d", "2")+"---\n"+document("e", "2")+"---\n"+document("f", "2")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = newShell(t, nil).run(t.Context(), "", "simulate", "--snapshot", file, "--submit", work, "--policy", "packed,spread", "--for", "2s")
	for _, want := range []string{"2 nodes\n", "POLICY", "packed", "spread", "default/alloc/d/0: committed on n", "default/alloc/e/0: committed on n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s: no %q in\n%s", code, stderr, want, stdout)
		}
	}
	code, stdout, _ = newShell(t, nil).run(t.Context(), "", "simulate", "--snapshot", file, "--submit", work, "-o", "json")
	var outcomes []alone.Replayed
	if err := json.Unmarshal([]byte(stdout), &outcomes); err != nil || code != ExitDone || len(outcomes) != 1 || outcomes[0].Running != 4 || outcomes[0].Waiting != 2 {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"lists beside a snapshot":       {"--snapshot " + file + " --nodes x", "leave out --nodes"},
		"work without a snapshot":       {"--submit " + work, "want --snapshot beside it"},
		"a policy that is none":         {"--snapshot " + file + " --policy random", `"random"`},
		"a time before now":             {"--snapshot " + file + " --for -1s", "--for"},
		"a file that is no snapshot":    {"--snapshot " + work, "no JSON document"},
		"a snapshot that is not there":  {"--snapshot /nowhere.json", "/nowhere.json"},
		"a document of another purpose": {"--snapshot " + file + " --submit " + file, "--snapshot"},
	} {
		if code, _, stderr := newShell(t, nil).run(t.Context(), "", append([]string{"simulate"}, strings.Fields(c.args)...)...); code == ExitDone || name != "a document of another purpose" && !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
}

// TestASnapshotReplacesAFile: for its owner alone, through a link, and without a trace
// where it could not.
func TestASnapshotReplacesAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "cluster.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(file, []byte("an older and longer one"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(dir, "new.json")} {
		if err := replaceFile(path, []byte("new "+path)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || string(data) != "new "+path || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, mode %v (errors %v, %v)", path, data, info.Mode(), err, statErr)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v (error %v)", info.Mode(), err)
	}
	if err := replaceFile(dir, []byte("x")); err == nil {
		t.Error("a folder was written to")
	}
	if err := replaceFile(filepath.Join(dir, "none", "cluster.json"), []byte("x")); err == nil {
		t.Error("a folder that is not there was written to")
	}
	if err := replaceFile(os.DevNull, []byte("x")); err != nil {
		t.Errorf("a device: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("%d files are left, want 3 (error %v)", len(left), err)
	}
}
