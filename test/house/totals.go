package main

import (
	"github.com/musterd/muster/test/house/budget"
	"github.com/musterd/muster/test/source"
)

// totals measures the columns of the budget for the product: the packages outside
// test and tools, without tests and generated files.
func (c *code) totals() map[string]int {
	total := map[string]int{}
	for _, f := range c.counted() {
		if !f.IsTest() && isProduct(f) {
			total[budget.Lines] += f.Lines
		}
	}
	for _, n := range c.exportedNames() {
		total[budget.Names] += n
	}
	return total
}

// exportedNames counts the exported names of each product package, without those of
// generated files.
func (c *code) exportedNames() map[string]int {
	generated := map[string]bool{}
	for _, f := range c.tree.Files {
		generated[c.tree.Set.Position(f.Syntax.Package).Filename] = c.isGenerated(f)
	}
	counts := map[string]int{}
	for _, p := range c.checked {
		if isOfTests(p.Folder) {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			object := p.Types.Scope().Lookup(name)
			if object.Exported() && !generated[c.tree.Set.Position(object.Pos()).Filename] {
				counts[p.Folder]++
			}
		}
	}
	return counts
}

func isProduct(f *source.File) bool { return !isOfTests(f.Folder) && f.Folder != "tools" }
