package main

import (
	"fmt"
	"slices"
)

// listFile is the list of limits and offenders, below the module's folder.
const listFile = "test/house/limits"

// verdict is a difference between a figure and the list.
type verdict struct {
	figure figure
	row    listed // the row today; the limit if the figure has no row
	has    bool   // a row of its own
	want   int    // the right figure of the row, 0 for no row
}

// rises reports whether the list forbids the figure.
func (v verdict) rises() bool { return v.want > v.row.value }

// judge compares figures with the list, and returns a verdict for each difference.
func judge(l list, figures []figure) ([]verdict, error) {
	rows, limits := l.byKey(), l.limits()
	var out []verdict
	seen := map[key]bool{}
	for _, f := range figures {
		k := key{f.kind, f.of}
		if seen[k] {
			return nil, fmt.Errorf("%s of %s was measured twice", f.kind, f.of)
		}
		seen[k] = true
		limit, err := limits.of(f)
		if err != nil {
			return nil, err
		}
		v := verdict{figure: f, row: rows[k]}
		_, v.has = rows[k]
		if !v.has {
			v.row = listed{kind: f.kind, of: f.of, value: limit}
		}
		if f.value > limit {
			v.want = f.value
		}
		if v.has && v.want != v.row.value || !v.has && v.want > 0 {
			out = append(out, v)
		}
	}
	for _, r := range l.rows {
		if r.of != anyone && !seen[r.key()] {
			out = append(out, verdict{figure: figure{kind: r.kind, of: r.of}, row: r, has: true})
		}
	}
	return out, nil
}

// sentence names the fault and the cure.
func (v verdict) sentence() string {
	k := kindOf(v.figure.kind)
	note := ""
	if v.figure.note != "" {
		note = " (" + v.figure.note + ")"
	}
	switch {
	case v.rises() && v.has:
		return fmt.Sprintf("%s has %d %s, and %s allows %d%s: %s. The figures of the list only fall.",
			v.figure.subject(), v.figure.value, k.counts, listFile, v.row.value, note, k.advice)
	case v.rises():
		return fmt.Sprintf("%s has %d %s, and the limit is %d%s: %s.",
			v.figure.subject(), v.figure.value, k.counts, v.row.value, note, k.advice)
	case v.want > 0:
		return fmt.Sprintf("%s fell to %d %s, and %s says %d: write the lower figure down in the same commit, with make house-lower.",
			v.figure.subject(), v.want, k.counts, listFile, v.row.value)
	}
	return fmt.Sprintf("%s keeps to the limit now: delete its row of %s in the same commit, with make house-lower.",
		v.figure.subject(), listFile)
}

// lower writes lower figures into a list, and deletes the rows of things within the
// limits. No figure rises.
func lower(l list, verdicts []verdict) list {
	return rewrite(l, slices.DeleteFunc(slices.Clone(verdicts), verdict.rises))
}

// move is lower for moved code: a higher figure or a new row is written too if the
// falls of the same kind cover the rise. move returns the other verdicts.
func move(l list, verdicts []verdict) (list, []verdict) {
	var kept, remain []verdict
	for _, k := range kinds {
		var of []verdict
		for _, v := range verdicts {
			if v.figure.kind == k.name {
				of = append(of, v)
			}
		}
		covered := covers(k, changesOf(of))
		for _, v := range of {
			if !v.rises() || covered {
				kept = append(kept, v)
			} else {
				remain = append(remain, v)
			}
		}
	}
	return rewrite(l, kept), remain
}

func changesOf(verdicts []verdict) []change {
	var all []change
	for _, v := range verdicts {
		c := change{key: key{v.figure.kind, v.figure.of}, before: -1, after: v.want}
		if v.has {
			c.before = v.row.value
		}
		if v.want == 0 {
			c.after = -1
		}
		all = append(all, c)
	}
	return all
}

// rewrite writes the right figures of verdicts into a list.
func rewrite(l list, verdicts []verdict) list {
	want := map[key]verdict{}
	for _, v := range verdicts {
		want[key{v.figure.kind, v.figure.of}] = v
	}
	out := list{head: l.head}
	for _, r := range l.rows {
		v, changed := want[r.key()]
		delete(want, r.key())
		switch {
		case changed && v.want == 0:
			continue
		case changed:
			r.value, r.adr = v.want, ""
		}
		out.rows = append(out.rows, r)
	}
	for k, v := range want {
		out.rows = append(out.rows, listed{kind: k.kind, of: k.of, value: v.want})
	}
	out.sort()
	return out
}
