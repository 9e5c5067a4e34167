package main

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"

	"github.com/musterd/muster/test/house/budget"
	"github.com/musterd/muster/test/source"
)

// summary are the figures of the whole product, as rows of name and value: sizes of
// files, functions and packages, and words of comment.
func (c *code) summary() [][2]string {
	var files, functions, tests, comments int
	var sizes, bodies []int
	packages, exported := map[string]int{}, c.exportedNames()
	for _, f := range c.counted() {
		switch {
		case f.IsTest() || isOfTests(f.Folder):
			tests += f.Lines
			continue
		case !isProduct(f):
			continue
		}
		files++
		sizes = append(sizes, f.Lines)
		packages[f.Folder] += f.Lines
		comments += c.commentLines(f)
		for _, d := range f.Syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				functions++
				bodies = append(bodies, c.tree.Set.Position(d.End()).Line-c.tree.Line(d)+1)
			}
		}
	}
	total := c.totals()[budget.Lines]
	row := func(name, format string, values ...any) [2]string {
		return [2]string{name, fmt.Sprintf(format, values...)}
	}
	rows := [][2]string{
		row("product lines", "%d", total),
		row("packages, files, functions", "%d, %d, %d", len(packages), files, functions),
		row("lines of a file: median, p90, greatest", "%s", spread(sizes, 90)),
		row("lines of a function: median, p99, greatest", "%s", spread(bodies, 99)),
		row("lines of a package: median, p90, greatest", "%s", spread(slices.Collect(maps.Values(packages)), 90)),
		row("exported names of a package: median, p90, greatest", "%s", spread(slices.Collect(maps.Values(exported)), 90)),
		row("comment lines, in percent", "%d", comments*100/max(1, total)),
		row("lines of tests and of test/, in percent of the product", "%d", tests*100/max(1, total)),
	}
	return append(rows, c.ratesOfWords()...)
}

// spread is the median, a percentile and the greatest of some numbers.
func spread(of []int, percentile int) string {
	if len(of) == 0 {
		return "-"
	}
	slices.Sort(of)
	return fmt.Sprintf("%d, %d, %d", of[len(of)/2], of[(len(of)-1)*percentile/100], of[len(of)-1])
}

func (c *code) commentLines(f *source.File) int {
	n := 0
	for _, group := range f.Syntax.Comments {
		n += c.tree.Set.Position(group.End()).Line - c.tree.Line(group) + 1
	}
	return n
}

// ratesOfWords are the words of each kind in perWords words of comment, of the
// product and of test.
func (c *code) ratesOfWords() [][2]string {
	type sums struct{ value, words int }
	product, test := map[string]*sums{}, map[string]*sums{}
	for kind := range words {
		product[kind], test[kind] = &sums{}, &sums{}
	}
	for _, f := range c.wordsOfComments() {
		s := product[f.kind]
		if f.tests {
			s = test[f.kind]
		}
		s.value += f.value
		s.words += f.words
	}
	var rows [][2]string
	for _, kind := range slices.Sorted(maps.Keys(words)) {
		rate := func(s *sums) float64 { return float64(s.value) * 1000 / float64(max(1, s.words)) }
		rows = append(rows, [2]string{fmt.Sprintf("%q in 1,000 words of comment: product, tests and test/", kind), fmt.Sprintf("%.1f, %.1f", rate(product[kind]), rate(test[kind]))})
	}
	return rows
}
