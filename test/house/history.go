package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/musterd/muster/test/ratchet/history"
)

// change is the change of a row of the list in a commit; -1 stands for no row.
type change struct {
	key           key
	before, after int
	adr           string // of the row after it
}

// rises reports whether the row allows more than before. Without a row the limit
// holds, and no row is below the limit.
func (c change) rises() bool { return c.after > c.before && c.after >= 0 }

// by is by how much the row rose, or with a minus fell.
func (c change) by() int { return max(c.after, 0) - max(c.before, 0) }

// covers reports whether changes of the rows of a kind may be a move of code between
// places: no more rose than fell. Where figures are no sums, an old row may not rise.
func covers(k kind, changes []change) bool {
	sum := 0
	for _, c := range changes {
		if c.rises() && c.before >= 0 && !k.moves {
			return false
		}
		sum += c.by()
	}
	return sum <= 0
}

// commit is a commit with a change of the list.
type commit struct {
	name    string // id and subject
	files   []string
	changes []change
}

// readHistory is the history of the list with its changes as figures.
func readHistory(commits []history.Commit) ([]commit, error) {
	var all []commit
	for _, c := range commits {
		changes, err := changesIn(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		all = append(all, commit{c.Name, c.Files, changes})
	}
	return all, nil
}

// changesIn reads the removed and added rows of a commit.
func changesIn(c history.Commit) ([]change, error) {
	changes := map[key]*change{}
	at := func(k key) *change {
		if changes[k] == nil {
			changes[k] = &change{key: k, before: -1, after: -1}
		}
		return changes[k]
	}
	for _, line := range c.Removed {
		row, err := parseRow(line)
		if err != nil {
			return nil, err
		}
		at(row.key()).before = row.value
	}
	for _, line := range c.Added {
		row, err := parseRow(line)
		if err != nil {
			return nil, err
		}
		at(row.key()).after, at(row.key()).adr = row.value, row.adr
	}
	var all []change
	for _, c := range changes {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.key.kind, b.key.kind), cmp.Compare(a.key.of, b.key.of))
	})
	return all, nil
}

// judgeHistory returns a sentence for each figure of the list after a forbidden
// rise. A commit may raise a row if the commit changes the list and decisions alone
// and the row names a decision, if the commit adds the kind, or if code moves. A
// rise that a later commit takes back is forgiven.
func judgeHistory(commits []commit) []string {
	type wrong struct {
		before   int
		sentence string
	}
	found := map[key]wrong{}
	for _, c := range commits {
		alone := !slices.ContainsFunc(c.files, func(f string) bool { return f != listFile && filepath.Dir(f) != "docs/adr" })
		for _, k := range kinds {
			of := slices.DeleteFunc(slices.Clone(c.changes), func(c change) bool { return c.key.kind != k.name })
			begins := slices.ContainsFunc(of, func(c change) bool { return c.key.of == anyone && c.before < 0 })
			moves := covers(k, of)
			for _, ch := range of {
				if w, ok := found[ch.key]; ok && ch.after <= w.before {
					delete(found, ch.key)
				}
				if ch.rises() && !begins && !moves && !(alone && ch.adr != "") {
					found[ch.key] = wrong{ch.before, fmt.Sprintf("%s raised %s of %s from %s to %d: a rise is a commit that changes %s and docs/adr alone, with the number of a decision in the row. Take the rise back, or make it in a commit of its own.",
						c.name, ch.key.kind, ch.key.of, figureOr(ch.before), ch.after, listFile)}
				}
			}
		}
	}
	var out []string
	for _, w := range found {
		out = append(out, w.sentence)
	}
	slices.Sort(out)
	return out
}

func figureOr(n int) string {
	if n < 0 {
		return "the limit"
	}
	return fmt.Sprint(n)
}
