package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written is a folder with these files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhoWritesAStruct(t *testing.T) {
	c, err := load(written(t, map[string]string{
		"go.mod": "module example.org/sample\n\ngo 1.26\n",
		"types.go": `package sample

type inner struct{ a int; list []int }

type outer struct {
	inner
	named inner
	far   *inner
	index map[string]int
	array [2]inner
}
`,
		"functions.go": `package sample

func assigns(o *outer)           { o.index = nil }
func assignsElement(o *outer)    { o.index["a"]++ }
func deletes(o *outer)           { delete(o.index, "b") }
func assignsPart(o *outer)       { o.named.a = 1 }
func assignsPromoted(o *outer)   { o.a = 1 }
func assignsArray(o *outer)      { o.array[1].a = 1 }
func assignsAll(o *outer)        { *o = outer{} }
func assignsElsewhere(o *outer)  { o.far.a = 1 }
func assignsInLoop(o *outer)     { for o.a = range 3 {} }
func assignsInClosure(o *outer)  { func() { o.index = nil }() }
func assignsGiven(o []*outer)    { o[0].index = nil }
func makes() *outer              { return &outer{index: map[string]int{}} }
func copies(o *outer) int        { a := o.named.a; a++; return a }
func builds() (o outer)          { o.a = 1; o.array[0].a = 2; return o }
func changesItsOwn(o outer)      { o.a = 1 }
func changesShared(o outer)      { o.index["a"] = 1 }
`,
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]bool{}
	for _, w := range c.writes {
		of := w.of.Obj().Name()
		if got[of] == nil {
			got[of] = map[string]bool{}
		}
		got[of][w.by.Name()] = true
	}
	for name, want := range map[string][]string{
		"outer": {
			"assigns", "assignsAll", "assignsArray", "assignsElement", "assignsGiven", "assignsInClosure", "assignsInLoop",
			"assignsPart", "assignsPromoted", "changesShared", "deletes",
		},
		"inner": {"assignsArray", "assignsElsewhere", "assignsInLoop", "assignsPart", "assignsPromoted"},
	} {
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(got[name]))); d != "" {
			t.Errorf("writers of %s (-want +got)\n%s", name, d)
		}
	}
}
