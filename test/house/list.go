package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// listed is a row of a list: the limit of a kind, or the figure of an offender.
type listed struct {
	kind  string
	of    string // anyone for the limit of the kind
	value int
	adr   string // the number of the decision behind a rise, or empty
}

// anyone is the name in the row of a kind's limit.
const anyone = "*"

// key names the row of a thing.
type key struct{ kind, of string }

func (l listed) key() key { return key{l.kind, l.of} }

// list is the rows of a file in order, with the first lines.
type list struct {
	head string // lines that begin with #
	rows []listed
}

// parseList reads a list: a line for each row, with tabs between the cells.
func parseList(text string) (list, error) {
	var l list
	seen := map[key]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") && len(l.rows) == 0 {
			l.head += line
			continue
		}
		row, err := parseRow(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return list{}, err
		}
		if seen[row.key()] {
			return list{}, fmt.Errorf("%s of %s has two rows; keep the lower", row.kind, row.of)
		}
		seen[row.key()] = true
		l.rows = append(l.rows, row)
	}
	return l, nil
}

func parseRow(line string) (listed, error) {
	cells := strings.Split(line, "\t")
	if len(cells) != 3 && len(cells) != 4 {
		return listed{}, fmt.Errorf("row %q: want kind, name and figure, and a number of docs/adr after a rise, parted by tabs", line)
	}
	value, err := strconv.Atoi(cells[2])
	if err != nil || value < 0 {
		return listed{}, fmt.Errorf("row %q: the figure %q is no count", line, cells[2])
	}
	row := listed{kind: cells[0], of: cells[1], value: value}
	if kindOf(row.kind) == nil {
		return listed{}, fmt.Errorf("row %q: no figure is of the kind %q", line, row.kind)
	}
	if len(cells) == 4 {
		row.adr = cells[3]
	}
	return row, nil
}

func (l list) String() string {
	var b strings.Builder
	b.WriteString(l.head)
	for _, r := range l.rows {
		fmt.Fprintf(&b, "%s\t%s\t%d", r.kind, r.of, r.value)
		if r.adr != "" {
			b.WriteString("\t" + r.adr)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// byKey returns the rows by their names.
func (l list) byKey() map[key]listed {
	all := map[key]listed{}
	for _, r := range l.rows {
		all[r.key()] = r
	}
	return all
}

// sort puts the rows in the order of kinds; the limit of a kind is first, then the
// offenders by figure.
func (l *list) sort() {
	slices.SortFunc(l.rows, func(a, b listed) int {
		at := func(r listed) int { return slices.IndexFunc(kinds, func(k kind) bool { return k.name == r.kind }) }
		first := func(r listed) int {
			if r.of == anyone {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(first(a), first(b)), cmp.Compare(b.value, a.value), cmp.Compare(a.of, b.of))
	})
}

// limits are the limits of kinds, by kind.
type limits map[string]int

func (l list) limits() limits {
	all := limits{}
	for _, r := range l.rows {
		if r.of == anyone {
			all[r.kind] = r.value
		}
	}
	return all
}

// of is the greatest allowed figure without a row.
func (l limits) of(f figure) (int, error) {
	limit, ok := l[f.kind]
	switch {
	case !ok:
		return 0, fmt.Errorf("the list has no row %q for the limit of %s", f.kind+"\t"+anyone+"\t…", f.kind)
	case kindOf(f.kind).isRate:
		return (limit*f.words + perWords - 1) / perWords, nil // a count is whole
	}
	return limit, nil
}
