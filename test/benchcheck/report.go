package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// outcome is a row after the sitting: the new figures, or the reason for none.
type outcome struct {
	row
	now    []figure
	reason string // the row has no new figures because of that
	failed bool   // the reason is a mistake, not the end of the time
}

// judge compares the results with a row. missing is the reason where there are none.
func judge(r row, got results, missing string, failed bool) outcome {
	o := outcome{row: r}
	for _, f := range r.figures {
		value, ok := got.median(r.run.name, f.unit)
		switch {
		case ok:
			o.now = append(o.now, figure{value, f.unit})
		case len(got[r.run.name]) > 0:
			return outcome{row: r, reason: fmt.Sprintf("%s reports no %s", r.run.name, f.unit), failed: true}
		default:
			return outcome{row: r, reason: missing, failed: failed}
		}
	}
	return o
}

// write prints a line for each figure, then the rows without new figures, then the
// totals. It returns how many figures are off and how many rows have failed.
func write(w io.Writer, all []outcome) (off, failed int) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\tdocumented\tnow\tratio")
	figures := 0
	for _, o := range all {
		for i, now := range o.now {
			was := o.figures[i]
			by, mark := ratio(was.value, now.value), ""
			if isOff(by) {
				off++
				mark = "OFF"
			}
			figures++
			fmt.Fprintln(table, strings.TrimRight(fmt.Sprintf("%s\t%s\t%s\t%.2f\t%s", o.run.short(), was, now, by, mark), "\t"))
		}
	}
	_ = table.Flush() // into the same writer as below, whose end is the program's
	without := slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return o.reason == "" })
	for _, o := range without {
		word := "not run"
		if o.failed {
			word, failed = "FAILED", failed+1
		}
		fmt.Fprintf(w, "%s: %s (%s): %s\n", word, o.run.short(), o.what, o.reason)
	}
	fmt.Fprintf(w, "%d rows, %d of them not run and %d failed; %d figures, %d off by more than %g ×\n", len(all), len(without)-failed, failed, figures, off, offBeyond)
	return off, failed
}
