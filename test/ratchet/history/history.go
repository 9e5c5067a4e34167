// Package history reads from git how a list of figures in a file has changed. Package
// ratchet and test/house judge the changes.
package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ErrNoHistory is the error where git does not have the whole history of a list.
var ErrNoHistory = errors.New("no whole history")

// Commit is a commit with a change of a list.
type Commit struct {
	Name           string   // "commit", its id and subject
	Files          []string // from the root of the repository
	Removed, Added []string // rows of the list, without comments
}

// Of returns the commits with changes of a list, a path from the root of the
// repository, the oldest first, and the uncommitted changes as the last commit. Without
// the whole history the test is skipped, or with CI=true fails.
func Of(t testing.TB, root, list string) []Commit {
	t.Helper()
	for _, name := range []string{"HEAD", "logs/HEAD"} { // a cached result ends with a commit
		if file, err := git(root, "rev-parse", "--git-path", name); err == nil {
			_, _ = os.Stat(filepath.Join(root, strings.TrimSpace(file)))
		}
	}
	commits, err := Read(root, list)
	switch {
	case errors.Is(err, ErrNoHistory) && os.Getenv("CI") != "true":
		t.Skipf("rises of %s cannot be checked: %v. Fetch the whole history to check them", list, err)
	case err != nil:
		t.Fatalf("%v. The check of rises needs the whole history: git fetch --unshallow", err)
	}
	return commits
}

// Read is Of with the error, ErrNoHistory among others.
func Read(root, list string) ([]Commit, error) {
	shallow, err := git(root, "rev-parse", "--is-shallow-repository")
	if err != nil || strings.TrimSpace(shallow) != "false" {
		return nil, fmt.Errorf("%w of %s: %s is no whole git repository (%v)", ErrNoHistory, list, root, err)
	}
	format := []string{"-U0", "--no-renames", "--no-color", "--no-ext-diff", "--", list}
	patches, err := git(root, append([]string{"log", "--reverse", "--format=%x00commit %h %s", "-p"}, format...)...)
	if err != nil {
		return nil, err
	}
	files, err := git(root, "log", "--reverse", "--format=%x00commit %h %s", "--full-diff", "--name-only", "--no-renames", "--", list)
	if err != nil {
		return nil, err
	}
	present, err := git(root, append([]string{"diff", "HEAD"}, format...)...)
	if err != nil {
		return nil, err
	}
	if present != "" {
		filesNow, err := git(root, "diff", "HEAD", "--name-only", "--no-renames")
		if err != nil {
			return nil, err
		}
		const uncommitted = "\x00the work that is not committed\n"
		patches, files = patches+uncommitted+present, files+uncommitted+filesNow
	}
	var all []Commit
	filesOf := strings.Split(files, "\x00")
	for i, text := range strings.Split(patches, "\x00") {
		if text == "" {
			continue
		}
		name, patch, _ := strings.Cut(text, "\n")
		c := Commit{Name: name, Files: strings.Fields(strings.TrimPrefix(filesOf[i], name))}
		c.Removed, c.Added = rowsOf(patch)
		all = append(all, c)
	}
	return all, nil
}

// rowsOf reads the removed and added rows of a patch without context.
func rowsOf(patch string) (removed, added []string) {
	inHunk := false
	for line := range strings.Lines(patch) {
		inHunk = inHunk || strings.HasPrefix(line, "@@")
		sign, row := line[0], strings.TrimSuffix(line[1:], "\n")
		if !inHunk || strings.TrimSpace(row) == "" || strings.HasPrefix(row, "#") {
			continue
		}
		switch sign {
		case '-':
			removed = append(removed, row)
		case '+':
			added = append(added, row)
		}
	}
	return removed, added
}

func git(root string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
