package layers_test

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clocks are the functions with the time of the host.
var clocks = map[string][]string{
	"time":                  {"Now", "Since", "Until"},
	"syscall":               {"Gettimeofday", "Time"},
	"golang.org/x/sys/unix": {"Gettimeofday", "Time", "ClockGettime"},
}

const clockRows = "testdata/clocks.txt"

// TestEachReadingOfTheClockHasAReason: instants in the store are of the leader's clock.
// A reading of another clock needs a row with the reason.
func TestEachReadingOfTheClockHasAReason(t *testing.T) {
	text, err := os.ReadFile(clockRows)
	if err != nil {
		t.Fatal(err)
	}
	rows, reasons, err := readClockRows(string(text))
	if err != nil {
		t.Fatal(err)
	}
	_, files := production(t)
	read := map[string]int{}
	for _, f := range files {
		for _, d := range f.Syntax.Decls {
			in := *f
			syntax := *f.Syntax
			syntax.Decls = []ast.Decl{d}
			in.Syntax = &syntax
			for from, names := range clocks {
				uses(&in, from, func(name string, _ ast.Node) {
					if slices.Contains(names, name) {
						read[f.Folder+" "+nameOf(d)]++
					}
				})
			}
		}
	}
	for _, complaint := range judgeClocks(rows, read, reasons) {
		t.Error(complaint)
	}
}

// nameOf is the name of a function, with the type of the receiver; "var" for others.
func nameOf(d ast.Decl) string {
	f, is := d.(*ast.FuncDecl)
	switch {
	case !is:
		return "var"
	case f.Recv == nil:
		return f.Name.Name
	}
	for receiver := f.Recv.List[0].Type; ; {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// readClockRows reads the number of readings of each function, and the reasons.
func readClockRows(text string) (rows map[string]int, reasons []string, err error) {
	rows = map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		if comment, is := strings.CutPrefix(line, "# "); is || line == "" || line == "#" {
			if reason, explained, found := strings.Cut(comment, ": "); found && !strings.Contains(reason, " ") && explained != "" {
				reasons = append(reasons, reason)
			}
			continue
		}
		head, functions, found := strings.Cut(line, ": ")
		reason, folder, two := strings.Cut(head, " ")
		if !found || !two || !slices.Contains(reasons, reason) {
			return nil, nil, fmt.Errorf("%s:%d: %q: want REASON PACKAGE: FUNCTION …, below a line # REASON: TEXT", clockRows, i+1, line)
		}
		for f := range strings.FieldsSeq(functions) {
			name, times, several := strings.Cut(f, "×")
			n := 1
			if several {
				if n, err = strconv.Atoi(times); err != nil || n < 2 {
					return nil, nil, fmt.Errorf("%s:%d: %q: want FUNCTION×N with N from 2", clockRows, i+1, f)
				}
			}
			if _, twice := rows[folder+" "+name]; twice {
				return nil, nil, fmt.Errorf("%s:%d: %s of %s has two rows: give each function the strictest of its reasons", clockRows, i+1, name, folder)
			}
			rows[folder+" "+name] = n
		}
	}
	return rows, reasons, nil
}

// judgeClocks compares the rows with the code.
func judgeClocks(rows, read map[string]int, reasons []string) (complaints []string) {
	all := maps.Clone(rows)
	maps.Copy(all, read)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		folder, function, _ := strings.Cut(at, " ")
		switch want, got := rows[at], read[at]; {
		case got > want:
			complaints = append(complaints, fmt.Sprintf("%s of %s reads the wall clock %d times, and %s has %d: take the time as an argument, or in a decision the leader's instant; else add the function to a row, with one of the reasons %s", function, folder, got, clockRows, want, strings.Join(reasons, ", ")))
		case got < want:
			complaints = append(complaints, fmt.Sprintf("%s of %s reads the wall clock %d times, and %s has %d: lower the number or delete the function there", function, folder, got, clockRows, want))
		}
	}
	return complaints
}

func TestReadingsOfTheClockAreJudged(t *testing.T) {
	rows, reasons, err := readClockRows("# What this is\n\n# log: a line of a log.\nlog a/b: F T.g×2\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a/b F": 1, "a/b T.g": 2}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		read map[string]int
		want string
	}{
		"as the rows":      {want, ""},
		"a new function":   {map[string]int{"a/b F": 1, "a/b T.g": 2, "a H": 1}, "H of a reads the wall clock 1 times"},
		"one reading more": {map[string]int{"a/b F": 2, "a/b T.g": 2}, "take the time as an argument"},
		"one reading less": {map[string]int{"a/b F": 1, "a/b T.g": 1}, "lower the number"},
		"none any more":    {map[string]int{"a/b T.g": 2}, "delete the function"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(judgeClocks(rows, c.read, reasons), "\n")
			if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for name, text := range map[string]string{
		"an unknown reason": "log a: F\n", "no package": "# log: x\nlog: F\n", "twice": "# log: x\nlog a: F\nlog a: F\n", "one time is no number": "# log: x\nlog a: F×1\n",
	} {
		if _, _, err := readClockRows(text); err == nil {
			t.Errorf("%s: %q is read", name, text)
		}
	}
}
