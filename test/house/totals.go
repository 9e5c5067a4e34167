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
	generated := map[string]bool{}
	for _, f := range c.tree.Files {
		generated[c.tree.Set.Position(f.Syntax.Package).Filename] = c.isGenerated(f)
	}
	for _, p := range c.checked {
		if isOfTests(p.Folder) {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			object := p.Types.Scope().Lookup(name)
			if object.Exported() && !generated[c.tree.Set.Position(object.Pos()).Filename] {
				total[budget.Names]++
			}
		}
	}
	return total
}

func isProduct(f *source.File) bool { return !isOfTests(f.Folder) && f.Folder != "tools" }
