// Package budget holds the amounts that grow with capabilities: the lines of the
// product, exported names, and the sizes of the programs. The file capabilities
// has a row for each capability with its part of each amount, and the sum of the
// rows is the budget.
//
// The package does not measure: test/house and test/programs do.
package budget

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// File is the file with the rows, below the module's folder.
const File = "test/house/budget/capabilities"

//go:embed capabilities
var capabilities string

// The columns of the file. A program has a column with its size in MB (1,000,000
// bytes) without symbols.
const (
	Lines = "lines" // of Go in product packages, without tests
	Names = "names" // exported names of product packages
)

// Sum returns the budget by column. Sizes of programs are in bytes.
func Sum() (map[string]int, error) { return sum(capabilities) }

func sum(text string) (map[string]int, error) {
	var columns []string
	total := map[string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if columns == nil {
			columns = cells
			continue
		}
		if len(cells) != len(columns) || strings.TrimSpace(cells[0]) == "" {
			return nil, fmt.Errorf("%s: row %q has %d cells, want a name and a number for each of %q", File, line, len(cells), columns[1:])
		}
		for i, cell := range cells[1:] {
			column := columns[i+1]
			n, err := strconv.ParseFloat(cell, 64)
			if err != nil || column == Lines && n != math.Trunc(n) || column == Names && n != math.Trunc(n) {
				return nil, fmt.Errorf("%s: %s of %q: %q is no count, and no MB for a program", File, column, cells[0], cell)
			}
			if column != Lines && column != Names {
				n *= 1e6
			}
			total[column] += int(math.Round(n))
		}
	}
	if !slices.Contains(columns, Lines) || !slices.Contains(columns, Names) {
		return nil, fmt.Errorf("%s has the columns %q, want %s and %s among them", File, columns, Lines, Names)
	}
	return total, nil
}

// Judge returns a sentence for an amount above the budget, or "".
func Judge(total map[string]int, column string, measured int) string {
	allowed, ok := total[column]
	switch {
	case !ok:
		return fmt.Sprintf("%s has no column %s: add the column, with the size today in the first row", File, column)
	case measured <= allowed:
		return ""
	case column == Lines || column == Names:
		return fmt.Sprintf("the product has %d %s, and the rows of %s allow %d: name the capability's %s in test/house/budget, in a row of its own, or cut %d.",
			measured, column, File, allowed, column, measured-allowed)
	}
	return fmt.Sprintf("%s has %.1f MB, and the rows of %s allow %.1f MB: name the capability's MB in test/house/budget, in a row of its own, or cut %.1f MB.",
		column, float64(measured)/1e6, File, float64(allowed)/1e6, float64(measured-allowed)/1e6)
}
