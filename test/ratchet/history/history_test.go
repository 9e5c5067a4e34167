package history

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository is a git repository with the commits of the contents of a list.
func repository(t *testing.T, contents ...string) string {
	t.Helper()
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"}, args...)...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	for _, text := range contents {
		if err := os.WriteFile(filepath.Join(root, "list"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", ".")
		run("commit", "-q", "-m", "a change")
	}
	return root
}

func TestAListIsReadWithItsUncommittedChange(t *testing.T) {
	root := repository(t, "# rows\na 1\nb 2\n", "# other rows\na 1\nb 3\n")
	if err := os.WriteFile(filepath.Join(root, "list"), []byte("# other rows\nb 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(root, "list")
	if err != nil || len(got) != 3 {
		t.Fatalf("%d commits, %v; want two and the uncommitted change", len(got), err)
	}
	for i, want := range []Commit{
		{Files: []string{"list"}, Added: []string{"a 1", "b 2"}},
		{Files: []string{"list"}, Removed: []string{"b 2"}, Added: []string{"b 3"}},
		{Files: []string{"list"}, Removed: []string{"a 1"}},
	} {
		want.Name = got[i].Name
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("change %d (-want +got)\n%s", i, diff)
		}
	}
	if got[2].Name != "the work that is not committed" {
		t.Errorf("the last change is of %q", got[2].Name)
	}
}

func TestAPartOfTheHistoryIsRefused(t *testing.T) {
	root := repository(t, "a 1\n", "a 2\n")
	shallow := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+root, shallow).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	for name, root := range map[string]string{"a shallow clone": shallow, "no repository": t.TempDir()} {
		if _, err := Read(root, "list"); !errors.Is(err, ErrNoHistory) {
			t.Errorf("%s: got %v, want %v", name, err, ErrNoHistory)
		}
	}
}
