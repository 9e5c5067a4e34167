package ratchet

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/test/ratchet/history"
)

// This file judges whether a list was raised by hand.

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
	var commits []commit
	for _, c := range history.Of(t, root, list) {
		changes, err := changesOf(c)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		commits = append(commits, commit{c.Name, c.Files, changes})
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

// changesOf reads the removed and added rows of a commit.
func changesOf(c history.Commit) (map[string]*change, error) {
	changes := map[string]*change{}
	at := func(line string) (*change, *Figure, error) {
		row, err := parseRow(strings.TrimSpace(line))
		if changes[row.Name] == nil && err == nil {
			changes[row.Name] = &change{}
		}
		return changes[row.Name], &row, err
	}
	for _, line := range c.Removed {
		ch, row, err := at(line)
		if err != nil {
			return nil, err
		}
		ch.before = row
	}
	for _, line := range c.Added {
		ch, row, err := at(line)
		if err != nil {
			return nil, err
		}
		ch.after = row
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
				faults[name] = fmt.Sprintf("%s raised %s from %d to %d: a rise is a commit that changes the list and docs/adr alone, with an ADR in the row. Take the rise back, or make it in a commit of its own", c.name, name, before, value)
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
