package ranked

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type number int

func (n number) Compare(o number) int { return cmp.Compare(n, o) }

// digit is a value whose sum tells the order of the entries: a polynomial hash.
type digit uint64

type polynomial struct{ hash, power, stamps uint64 }

const base = 0x9E3779B97F4A7C15

func (p polynomial) times() uint64 {
	if p.power == 0 { // of no entries
		return 1
	}
	return p.power
}

func (p polynomial) then(o polynomial) polynomial {
	return polynomial{p.hash*o.times() + o.hash, p.times() * o.times(), p.stamps + o.stamps}
}

func (d digit) Sum(left, right polynomial) polynomial {
	return left.then(polynomial{uint64(d), base, uint64(d) % 2}).then(right)
}

type tree = Tree[number, digit, polynomial]

// check verifies the invariant of all entries.
func check(t *tree) error {
	if t.root != nil && t.root.parent != nil {
		return fmt.Errorf("the root %d has a parent", t.root.key)
	}
	return checkEntry(t.root)
}

func checkEntry(e *Entry[number, digit, polynomial]) error {
	if e == nil {
		return nil
	}
	for _, child := range []*Entry[number, digit, polynomial]{e.left, e.right} {
		if child != nil && (child.parent != e || child.stale && !e.stale) {
			return fmt.Errorf("%d below %d: parent %v, stale %t below %t", child.key, e.key, child.parent, child.stale, e.stale)
		}
	}
	left, right := e.left.weight(), e.right.weight()
	if e.size != e.left.len()+e.right.len()+1 || left > delta*right || right > delta*left {
		return fmt.Errorf("%d has size %d and weights %d and %d", e.key, e.size, left, right)
	}
	if !e.stale && e.sum != e.value.Sum(e.left.total(), e.right.total()) {
		return fmt.Errorf("%d has sum %v, its sides %v and %v", e.key, e.sum, e.left.total(), e.right.total())
	}
	if err := checkEntry(e.left); err != nil {
		return err
	}
	return checkEntry(e.right)
}

// slice is the same as the tree, naively.
type slice []pair

type pair struct {
	key   number
	value digit
}

func (s slice) find(k number) (int, bool) {
	return slices.BinarySearchFunc(s, k, func(p pair, k number) int { return cmp.Compare(p.key, k) })
}

func (s slice) sum() (sum polynomial) {
	for _, p := range s {
		sum = p.value.Sum(sum, polynomial{})
	}
	return sum
}

func odd(p polynomial) bool { return p.stamps > 0 }

// model drives a tree and a slice with the same operations.
type model struct {
	tree  tree
	slice slice
}

func (m *model) insert(k number, v digit) error {
	i, found := m.slice.find(k)
	if !found {
		m.slice = slices.Insert(m.slice, i, pair{k, v})
	}
	if e, added := m.tree.Insert(k, v); added == found || e.Key() != k || e.Value() != m.slice[i].value {
		return fmt.Errorf("insert %d: entry %d with %d, added %t; want value %d, added %t", k, e.Key(), e.Value(), added, m.slice[i].value, !found)
	}
	return nil
}

func (m *model) set(k number, v digit) {
	if i, found := m.slice.find(k); found {
		m.slice[i].value = v
		m.tree.At(i).Set(v)
	}
}

func (m *model) delete(k number) {
	if i, found := m.slice.find(k); found {
		m.slice = slices.Delete(m.slice, i, i+1)
		m.tree.Delete(m.tree.Find(k))
	}
}

// compare looks up one key in all ways.
func (m *model) compare(k number) error {
	want, found := m.slice.find(k)
	e := m.tree.Find(k)
	if found != (e != nil) || m.tree.From(k) != m.tree.At(want) || m.tree.Len() != len(m.slice) {
		return fmt.Errorf("find %d: entry %v of %d, from it %v; want %t of %d", k, e, m.tree.Len(), m.tree.From(k), found, len(m.slice))
	}
	if !found {
		return nil
	}
	if e.Key() != k || e.Value() != m.slice[want].value || e.Position() != want || m.tree.At(want) != e {
		return fmt.Errorf("entry %d with %d at %d; want %v at %d", e.Key(), e.Value(), e.Position(), m.slice[want], want)
	}
	if got, want := m.tree.SumBefore(e), m.slice[:want].sum(); got != want {
		return fmt.Errorf("sum before %d: %v, want %v", k, got, want)
	}
	return nil
}

// compareAll compares all entries, and those that are selected.
func (m *model) compareAll() error {
	var all, selected slice
	for e := range m.tree.All() {
		all = append(all, pair{e.Key(), e.Value()})
	}
	for e := range m.tree.Select(odd) {
		selected = append(selected, pair{e.Key(), e.Value()})
	}
	if !slices.Equal(all, m.slice) {
		return fmt.Errorf("entries %v, want %v", all, m.slice)
	}
	if want := slices.DeleteFunc(all, func(p pair) bool { return p.value%2 == 0 }); !slices.Equal(selected, want) {
		return fmt.Errorf("selected %v, want %v", selected, want)
	}
	return check(&m.tree)
}

func TestAgainstASortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m model
		first := rapid.IntRange(0, 40).Draw(t, "sorted")
		keys := make([]number, first)
		for i := range keys {
			keys[i] = number(2 * i)
			m.slice = append(m.slice, pair{keys[i], 0})
		}
		m.tree = FromSorted[number, digit, polynomial](keys)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			k, v := number(rapid.IntRange(-5, 90).Draw(t, "key")), digit(rapid.Uint8().Draw(t, "value"))
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0:
				if err := m.insert(k, v); err != nil {
					t.Fatal(err)
				}
			case 1:
				m.set(k, v)
			case 2:
				m.delete(k)
			default:
				if err := m.compare(k); err != nil {
					t.Fatal(err)
				}
			}
			if err := check(&m.tree); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.compareAll(); err != nil {
			t.Fatal(err)
		}
	})
}

// A large tree stays balanced when its entries come and go in order, and at
// random.
func TestLargeTreeStaysBalanced(t *testing.T) {
	const n = 5000
	random := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func(i int) number{
		"ascending":  func(i int) number { return number(i) },
		"descending": func(i int) number { return number(-i) },
		"random":     func(int) number { return number(random.IntN(1 << 20)) },
		"both ends":  func(i int) number { return number(i * (1 - 2*(i%2))) },
	} {
		t.Run(name, func(t *testing.T) {
			var m model
			for i := range n {
				if err := m.insert(next(i), digit(i)); err != nil {
					t.Fatal(err)
				}
			}
			for len(m.slice) > 10 {
				at := random.IntN(10) // most leave from the front
				if len(m.slice)%3 == 0 {
					at = random.IntN(len(m.slice))
				}
				if err := m.compare(m.slice[at].key); err != nil {
					t.Fatal(err)
				}
				m.delete(m.slice[at].key)
				if len(m.slice)%100 != 0 {
					continue
				}
				if err := m.compareAll(); err != nil {
					t.Fatal(err)
				}
				if depth, most := depthOf(m.tree.root), 5*bits.Len(uint(len(m.slice)))/2; depth > most {
					t.Fatalf("depth %d with %d entries, want at most %d", depth, len(m.slice), most)
				}
			}
		})
	}
}

func depthOf(e *Entry[number, digit, polynomial]) int {
	if e == nil {
		return 0
	}
	return 1 + max(depthOf(e.left), depthOf(e.right))
}

// The same operations make the same tree: it has no random source.
func TestShapeFollowsFromOperations(t *testing.T) {
	grown := func() (shape []int) {
		random := rand.New(rand.NewPCG(3, 4))
		var m model
		for range 2000 {
			_ = m.insert(number(random.IntN(500)), 0)
			m.delete(number(random.IntN(500)))
		}
		for e := range m.tree.All() {
			shape = append(shape, e.size)
		}
		return shape
	}
	if one, two := grown(), grown(); !slices.Equal(one, two) {
		t.Errorf("two trees of the same operations differ:\n%v\n%v", one, two)
	}
}

func TestYieldedEntriesMayBeDeleted(t *testing.T) {
	var m model
	for i := range 100 {
		_ = m.insert(number(i), digit(i))
	}
	for e := range m.tree.All() {
		if e.Key()%3 > 0 {
			m.tree.Delete(e)
		}
	}
	m.slice = slices.DeleteFunc(m.slice, func(p pair) bool { return p.key%3 > 0 })
	if err := m.compareAll(); err != nil {
		t.Error(err)
	}
}

func TestKeysThatDoNotAscend(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("FromSorted took 1, 3, 3")
		}
	}()
	FromSorted[number, digit, polynomial]([]number{1, 3, 3})
}
