// Package ratchet holds counted figures to a list in a file. A figure may only
// fall: a test fails above the figure of the list, and fails below the figure
// until the lower figure is written down. A commit may raise a figure if the commit
// changes the list alone and the row names an ADR. The package counts nothing.
//
// A list is text. Lines that begin with # are comments, each other line is a row:
// name, value, unit, tolerance, meaning, and after a rise the ADR, in columns at least
// two spaces apart. The tolerance is "exact" or percents, as "2%". Names have the form group/name: a
// test holds the rows of one group, so several tests share a file.
package ratchet

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Figure is a row of a list, or a counted figure.
type Figure struct {
	Name  string // group/name
	Value int64
	Unit  string
	// Within is the tolerance in percent of the row's value; 0: the figure is exact.
	Within int64
	Means  string
	ADR    string // behind a rise, as "ADR 131"; else empty
}

func (f Figure) tolerance() string {
	if f.Within == 0 {
		return "exact"
	}
	return fmt.Sprintf("%d%%", f.Within)
}

// group is the part of the name before the last slash.
func (f Figure) group() string {
	return f.Name[:max(0, strings.LastIndexByte(f.Name, '/'))]
}

// List is the content of a file.
type List struct {
	Comments []string // the lines that begin with #
	Rows     []Figure
}

var columns = regexp.MustCompile(`\t+| {2,}`)

// Parse reads a list.
func Parse(text string) (List, error) {
	var l List
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "#") {
			l.Comments = append(l.Comments, line)
			continue
		}
		f, err := parseRow(line)
		if err == nil && seen[f.Name] {
			err = fmt.Errorf("%s has two rows", f.Name)
		}
		if err != nil {
			return List{}, fmt.Errorf("line %d: %w", i+1, err)
		}
		seen[f.Name] = true
		l.Rows = append(l.Rows, f)
	}
	return l, nil
}

func parseRow(line string) (Figure, error) {
	words := append(columns.Split(line, 6), "")
	if len(words) < 6 {
		return Figure{}, fmt.Errorf("%q has %d columns, want name, value, unit, tolerance and meaning, two spaces apart", line, len(words)-1)
	}
	f := Figure{Name: words[0], Unit: words[2], Means: words[4], ADR: words[5]}
	var err error
	if f.Value, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return Figure{}, fmt.Errorf("the value of %s: %w", f.Name, err)
	}
	if words[3] != "exact" {
		percent, found := strings.CutSuffix(words[3], "%")
		if f.Within, err = strconv.ParseInt(percent, 10, 64); err != nil || !found || f.Within < 1 {
			return Figure{}, fmt.Errorf("the tolerance of %s is %q, want exact, or percents such as 2%%", f.Name, words[3])
		}
	}
	return f, nil
}

// String is the list as text, its rows in the order of their names.
func (l List) String() string {
	var b bytes.Buffer
	for _, c := range l.Comments {
		fmt.Fprintln(&b, c)
	}
	rows := slices.SortedFunc(slices.Values(l.Rows), func(a, b Figure) int { return cmp.Compare(a.Name, b.Name) })
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range rows {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s", f.Name, f.Value, f.Unit, f.tolerance(), f.Means)
		if f.ADR != "" {
			fmt.Fprintf(w, "\t%s", f.ADR)
		}
		fmt.Fprintln(w)
	}
	w.Flush() //nolint:errcheck // a buffer takes everything
	return b.String()
}

// Read reads a list from a file. An absent file is an empty list.
func Read(path string) (List, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return List{}, nil
	}
	if err != nil {
		return List{}, err
	}
	l, err := Parse(string(text))
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Write writes the list to a file.
func (l List) Write(path string) error {
	return os.WriteFile(path, []byte(l.String()), 0o644)
}
