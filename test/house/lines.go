package main

import (
	"fmt"
	"go/ast"
	"slices"

	"github.com/musterd/muster/test/source"
)

// checkGenerated refuses a table with a missing test.
func (c *code) checkGenerated() error {
	for folder, test := range c.generatedBy {
		if !slices.ContainsFunc(c.tree.Files, func(f *source.File) bool { return f.IsTest() && declares(f, test) }) {
			return fmt.Errorf("the generated files of %s count as generated because of %s, and no test has this name: write a test that generates the same bytes, or let the files count", folder, test)
		}
	}
	return nil
}

func declares(f *source.File, function string) bool {
	return slices.ContainsFunc(f.Syntax.Decls, func(d ast.Decl) bool {
		fd, ok := d.(*ast.FuncDecl)
		return ok && fd.Recv == nil && fd.Name.Name == function
	})
}

// isGenerated reports whether the figures of lines and words leave a file out: the
// file has the line for generated files, and a test generates the same bytes.
func (c *code) isGenerated(f *source.File) bool {
	return c.generatedBy[f.Folder] != "" && ast.IsGenerated(f.Syntax)
}

// counted returns the files without the generated files.
func (c *code) counted() []*source.File {
	var all []*source.File
	for _, f := range c.tree.Files {
		if !c.isGenerated(f) {
			all = append(all, f)
		}
	}
	return all
}

// perUnit sums the counts of files by unit, in the order of files.
func (c *code) perUnit(count func(*source.File) int) (order []string, sums map[string]int) {
	sums = map[string]int{}
	for _, f := range c.counted() {
		of := unit(f)
		if _, known := sums[of]; !known {
			order = append(order, of)
		}
		sums[of] += count(f)
	}
	return order, sums
}

// linesOfPackages counts the lines of each package, and of its tests apart.
func (c *code) linesOfPackages() []figure {
	order, sums := c.perUnit(func(f *source.File) int { return f.Lines })
	var out []figure
	for _, of := range order {
		out = append(out, figure{kind: "package", of: of, value: sums[of]})
	}
	return out
}

// linesOfFiles counts the lines of each file.
func (c *code) linesOfFiles() []figure {
	var out []figure
	for _, f := range c.counted() {
		out = append(out, figure{kind: "file", of: f.Path, value: f.Lines})
	}
	return out
}
