package ratchet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// This file reads from git whether a list was raised by hand.

// errNoHistory: git does not have the whole history of the list.
var errNoHistory = errors.New("no whole history")

// change is the change of a row in a commit; nil stands for no row.
type change struct{ before, after *Figure }

// commit is a commit with a change of a list.
type commit struct {
	name    string // id and subject
	files   []string
	changes map[string]*change // by the names of the figures
}

// HoldHistory fails a test for each figure that a commit has raised in a list, a path from
// the root of the repository, unless the commit changes no more than the list, files beside
// it and docs/adr, and the row names an ADR. A later fall to the value before mends a rise.
func HoldHistory(t testing.TB, root, list string, beside ...string) {
	t.Helper()
	for _, name := range []string{"HEAD", "logs/HEAD"} { // a cached result ends with a commit
		if file, err := git(root, "rev-parse", "--git-path", name); err == nil {
			_, _ = os.Stat(filepath.Join(root, strings.TrimSpace(file)))
		}
	}
	commits, err := history(root, list)
	switch {
	case errors.Is(err, errNoHistory) && os.Getenv("CI") != "true":
		t.Skipf("rises of %s cannot be checked: %v. Fetch the whole history to check them", list, err)
	case err != nil:
		t.Fatalf("%v. The check of rises needs the whole history: git fetch --unshallow", err)
	}
	for _, sentence := range risen(commits, append(beside, list)) {
		t.Error(sentence)
	}
	l, err := Read(filepath.Join(root, list))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range l.Rows {
		number, named := strings.CutPrefix(row.ADR, "ADR ")
		if found, _ := filepath.Glob(filepath.Join(root, "docs/adr/*"+number+"-*.md")); row.ADR != "" && (!named || len(found) != 1) {
			t.Error(fmt.Sprintf("the row of %s names the decision %q: want ADR and the number of a page in docs/adr", row.Name, row.ADR))
		}
	}
}

// history returns the commits with changes of a list, the oldest first, and the
// uncommitted changes.
func history(root, list string) ([]commit, error) {
	shallow, err := git(root, "rev-parse", "--is-shallow-repository")
	if err != nil || strings.TrimSpace(shallow) != "false" {
		return nil, fmt.Errorf("%w of %s (%v)", errNoHistory, list, err)
	}
	format := []string{"-U0", "--no-renames", "--no-color", "--no-ext-diff", "--", list}
	patches, err := git(root, append([]string{"log", "--reverse", "--format=%x00%h %s", "-p"}, format...)...)
	if err != nil {
		return nil, err
	}
	files, err := git(root, "log", "--reverse", "--format=%x00%h %s", "--full-diff", "--name-only", "--no-renames", "--", list)
	if err != nil {
		return nil, err
	}
	present, err := git(root, append([]string{"diff", "HEAD"}, format...)...)
	if err != nil {
		return nil, err
	}
	filesNow, err := git(root, "diff", "HEAD", "--name-only", "--no-renames")
	if err != nil {
		return nil, err
	}
	const uncommitted = "\x00the work that is not committed\n"
	patches, files = patches+uncommitted+present, files+uncommitted+filesNow
	var all []commit
	filesOf := strings.Split(files, "\x00")
	for i, text := range strings.Split(patches, "\x00") {
		name, patch, _ := strings.Cut(text, "\n")
		changes, err := changesOf(patch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, commit{name, strings.Fields(strings.TrimPrefix(filesOf[i], name)), changes})
	}
	return all, nil
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

// changesOf reads the removed and added rows of a patch without context.
func changesOf(patch string) (map[string]*change, error) {
	changes, inHunk := map[string]*change{}, false
	for line := range strings.Lines(patch) {
		inHunk = inHunk || strings.HasPrefix(line, "@@")
		sign, text := line[0], strings.TrimSpace(line[1:])
		if !inHunk || sign != '-' && sign != '+' || text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		row, err := parseRow(text)
		if err != nil {
			return nil, err
		}
		if changes[row.Name] == nil {
			changes[row.Name] = &change{}
		}
		if sign == '-' {
			changes[row.Name].before = &row
		} else {
			changes[row.Name].after = &row
		}
	}
	return changes, nil
}

// risen returns a sentence for each figure that has risen and did not fall again. A row
// that comes back counts from its last value.
func risen(commits []commit, may []string) []string {
	last, faults := map[string]int64{}, map[string]string{}
	floor := map[string]int64{} // before the rise of a fault
	for _, c := range commits {
		alone := !slices.ContainsFunc(c.files, func(f string) bool { return !slices.Contains(may, f) && path.Dir(f) != "docs/adr" })
		for name, ch := range c.changes {
			if ch.before != nil {
				last[name] = ch.before.Value
			}
			if ch.after == nil {
				continue
			}
			before, known := last[name]
			switch value := ch.after.Value; {
			case faults[name] != "" && value <= floor[name]:
				delete(faults, name)
			case known && value > before && !(alone && ch.after.ADR != ""):
				faults[name] = fmt.Sprintf("%s raised %s from %d to %d: a rise is a commit that changes the list and docs/adr alone, with an ADR in the row. Take the rise back, or make it in a commit of its own", cmp.Or(c.name, "a commit"), name, before, value)
				floor[name] = before
			}
			last[name] = ch.after.Value
		}
	}
	var all []string
	for _, sentence := range faults {
		all = append(all, sentence)
	}
	slices.Sort(all)
	return all
}
