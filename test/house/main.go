// Command house measures the shape of the code: the lines of packages and files,
// the methods of types, the circles of calls, the writers of structs and the words
// of comments. `make house` prints a table, to compare with the table of another
// commit. The package's tests compare the figures with the limits in the file
// limits; docs/adr/0129 says why, and how a figure may rise.
//
// The package does not judge imports (test/layers does) or costs at run time.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterd/muster/test/house/budget"
)

func main() {
	root := flag.String("root", ".", "the module's folder")
	rows := flag.Int("n", 5, "rows of each figure")
	flag.Parse()
	if err := run(os.Stdout, *root, *rows, generatedBy); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, rows int, generatedBy map[string]string) error {
	c, err := load(root, generatedBy)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(listFile)))
	if err != nil {
		return err
	}
	l, err := parseList(string(text))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| figure | value | limit | of | |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	for _, k := range kinds {
		figures := k.measure(c)
		slices.SortFunc(figures, byValue)
		for _, f := range figures[:min(rows, len(figures))] {
			limit, err := l.limits().of(f)
			if err != nil {
				return err
			}
			if f.value > 0 {
				fmt.Fprintf(out, "| %s: %s | %d | %d | %s | %s |\n", k.name, k.counts, f.value, limit, f.of, f.note)
			}
		}
	}
	for _, row := range c.summary() {
		fmt.Fprintf(out, "| %s | %s | | | |\n", row[0], row[1])
	}
	allowed, err := budget.Sum()
	if err != nil {
		return err
	}
	total := c.totals()
	for _, column := range []string{budget.Lines, budget.Names} {
		fmt.Fprintf(out, "| budget: %s of the product | %d | %d | | |\n", column, total[column], allowed[column])
	}
	return nil
}
