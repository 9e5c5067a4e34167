package ratchet

import (
	"flag"
	"fmt"
	"slices"
	"testing"
)

var lower = flag.Bool("lower", false, "write figures that have fallen, and new ones, into the lists of package ratchet")

// Lowers reports whether the command writes lower figures down.
func Lowers() bool { return *lower }

// Compare compares counted figures with the rows of their group, and returns a
// sentence for each figure that does not agree, and the list with each lower and each
// new figure written down. A figure that has risen keeps its row. command lowers.
func Compare(l List, group, command string, counted []Figure) (faults []string, lowered List) {
	lowered = List{Comments: l.Comments}
	for _, row := range l.Rows {
		if row.group() != group {
			lowered.Rows = append(lowered.Rows, row)
		} else if !slices.ContainsFunc(counted, func(f Figure) bool { return f.Name == row.Name }) {
			faults = append(faults, fmt.Sprintf("%s has a row, and no test counts it: remove the row by hand, and say in the commit why the figure is not needed", row.Name))
			lowered.Rows = append(lowered.Rows, row)
		}
	}
	for _, f := range counted {
		row, fault := f, ""
		if i := slices.IndexFunc(l.Rows, func(r Figure) bool { return r.Name == f.Name }); i < 0 {
			fault = fmt.Sprintf("%s (%d %s) has no row: `%s` adds the row", f.Name, f.Value, f.Unit, command)
		} else {
			row, fault = compare(l.Rows[i], f, command)
		}
		if fault != "" {
			faults = append(faults, fault)
		}
		lowered.Rows = append(lowered.Rows, row)
	}
	return faults, lowered
}

// compare returns the row to write, and the fault of the present row.
func compare(row, f Figure, command string) (Figure, string) {
	play := row.Value * f.Within / 100
	switch {
	case f.Value > row.Value+play:
		return row, fmt.Sprintf("%s has risen from %d to %d %s (%s): find the cause and take it out. If the rise is worth its price, raise the row in a commit that does nothing else, with an ADR in a column behind the meaning",
			f.Name, row.Value, f.Value, f.Unit, f.tolerance())
	case f.Value < row.Value-play:
		return f, fmt.Sprintf("%s has fallen from %d to %d %s: write the lower figure down in the same commit, `%s` does",
			f.Name, row.Value, f.Value, f.Unit, command)
	}
	if f.Value, f.ADR = row.Value, row.ADR; f != row {
		return f, fmt.Sprintf("the row of %s has another unit, tolerance or meaning than its test: `%s` writes them anew", f.Name, command)
	}
	return row, ""
}

// Hold fails a test where counted figures do not agree with the rows of their group in
// a file. With -lower it writes the figures that have fallen, and new ones, and fails
// for the others.
func Hold(t testing.TB, path, group, command string, counted []Figure) {
	t.Helper()
	for _, f := range counted {
		if f.group() != group {
			t.Fatalf("%s is no figure of the group %s", f.Name, group)
		}
	}
	l, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	faults, lowered := Compare(l, group, command, counted)
	if *lower {
		if err := lowered.Write(path); err != nil {
			t.Fatal(err)
		}
		faults, _ = Compare(lowered, group, command, counted)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}
