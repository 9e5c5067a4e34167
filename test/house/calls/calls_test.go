package calls

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/source"
)

// code has a function for each way of a call; each calls a leaf or a hit.
const code = `package sample

import (
	"slices"
	"sync"
)

type target interface{ hit(func()) }

type near struct{}

func (near) hit(f func()) { f() }

type far struct{ near }

type other struct{}

func (other) hit(int) {}

type hook func()

func (h hook) hit(func()) { h() }

func leaf()      {}
func leaf2()     {}
func leaf3(int)  {}

type box[T any] struct{ kept []T }

func (b *box[T]) put(v T) { b.kept = append(b.kept, v) }
func (b *box[T]) take() T { return b.kept[0] }

type holder struct{ do, undo func() }

var table = map[string]func(){"a": leaf}

func byName()            { leaf() }
func byMethod(n near)    { n.hit(nil) }
func byPromotion(f far)  { f.hit(nil) }
func byInterface(t target) { t.hit(nil) }
func byConstraint[T target](t T) { t.hit(nil) }
func byVariable()        { f := leaf; f() }
func byParameter(f func()) { f() }
func handsOver()         { byParameter(leaf2) }
func byResult()          { gives()() }
func gives() func()      { return leaf }
func byField(h *holder)  { h.do() }
func setsField(h *holder) { h.do = leaf2 }
func makesFields() holder { return holder{undo: leaf} }
func byTable()           { table["b"]() }
func byRange()           { for _, f := range []func(){leaf, leaf2} { f() } }
func byChannel(c chan func()) { (<-c)() }
func sends(c chan func()) { byChannel(c); c <- leaf }
func byAssertion(v any)  { v.(func())() }
func boxes()             { byAssertion(leaf2) }
func bySwitch(v any)     { switch f := v.(type) { case func(): f(); case func(int): f(1) } }
func boxesBoth()         { bySwitch(leaf); bySwitch(leaf3) }
func byGeneric(b *box[func()]) { b.take()() }
func puts(b *box[func()]) { b.put(leaf) }
func byMethodValue(n near) { f := n.hit; f(nil) }
func byExpression(n near) { f := near.hit; f(n, nil) }
func byGo()              { go leaf() }
func byDefer()           { defer leaf() }
func byClosure()         { f := func() { leaf() }; f() }
func byOutside(s []int)  { slices.SortFunc(s, compare) }
func compare(a, b int) int { return a - b }
func byOnce()            { sync.OnceFunc(leaf)() }
func byIterator()        { for range count { leaf() } }
func count(yield func(int) bool) { yield(1) }
func bySeveral()         { f, g := both(); f(); g() }
func both() (func(), func()) { return leaf, leaf2 }
func byHook()            { byInterface(hook(leaf2)) }
func byNothing(h *holder) { _ = leaf; _ = h.do }
`

func TestEachWayToCallIsResolved(t *testing.T) {
	g := graphOf(t, code)
	got := map[string]string{}
	for _, f := range g.Funcs {
		if f.Object != nil {
			got[strings.TrimPrefix(f.Name(), "..")] = called(f)
		}
	}
	want := map[string]string{
		"byName": "leaf", "byMethod": "near.hit", "byPromotion": "near.hit",
		"byInterface": "hook.hit near.hit", "byConstraint": "hook.hit near.hit", "byVariable": "leaf",
		"byParameter": "leaf2", "handsOver": "byParameter", "byResult": "gives leaf", "byField": "leaf2",
		"byTable": "leaf", "byRange": "leaf leaf2", "byChannel": "leaf", "sends": "byChannel",
		"byAssertion": "leaf2", "bySwitch": "leaf leaf3", "byGeneric": "box.take leaf", "puts": "box.put",
		"byMethodValue": "near.hit", "byExpression": "near.hit", "byGo": "leaf", "byDefer": "leaf",
		"byClosure": "byClosure leaf", "byOutside": "compare", "byOnce": "leaf", "byIterator": "byIterator count leaf",
		"count": "byIterator", "bySeveral": "both leaf leaf2", "hook.hit": "leaf2", "byNothing": "",
	}
	for name, calls := range want {
		if d := cmp.Diff(calls, got[name]); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

// called names the functions that a function calls, by itself or in closures.
func called(f *Func) string {
	names := map[string]bool{}
	var add func(*Func)
	add = func(f *Func) {
		for _, to := range f.Calls {
			name := strings.TrimPrefix(to.Name(), "..")
			if to.Object == nil && to.Writer == f.Writer && !names[name] {
				names[name] = true
				add(to)
			}
			names[name] = true
		}
	}
	add(f)
	var sorted []string
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return strings.Join(sorted, " ")
}

func graphOf(t *testing.T, text string) *Graph {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/sample\n\ngo 1.26\n", "sample.go": text} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := source.Parse(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := tree.Check()
	if err != nil {
		t.Fatal(err)
	}
	return Build(checked)
}

func TestCirclesAreFound(t *testing.T) {
	g := graphOf(t, `package sample

func a() { b() }
func b() { c(); leaf() }
func c() { each(func() { a() }) }
func each(do func()) { do() }
func leaf() { leaf() }
func d() { each(func() { leaf() }) }
func e() { f() }
func f() { e() }
`)
	var got []string
	for _, circle := range g.Circles() {
		names := map[string]bool{}
		for _, f := range circle {
			names[strings.TrimPrefix(f.Name(), "..")] = true
		}
		var sorted []string
		for name := range names {
			sorted = append(sorted, name)
		}
		slices.Sort(sorted)
		got = append(got, strings.Join(sorted, " "))
	}
	slices.Sort(got)
	// each is in the circle of c by c's closure; d calls each, and nothing calls d.
	if d := cmp.Diff([]string{"a b c each", "e f"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
