package bitset_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/resource/bitset"
)

func TestTheZeroSetIsEmpty(t *testing.T) {
	var s bitset.Set
	if !s.IsEmpty() || s.Len() != 0 || s.Min() != -1 || s.Has(0) || s.String() != "" {
		t.Errorf("the zero set has len %d, min %d, list %q", s.Len(), s.Min(), s)
	}
	s.Remove(3)
	if !s.Equal(bitset.Of()) {
		t.Error("removing from the zero set changed it")
	}
}

func TestMembersOutsideTheRangePanicOnAddAndAreAbsentElsewhere(t *testing.T) {
	for _, m := range []int{-1, bitset.MaxMember + 1} {
		var s bitset.Set
		s.Remove(m)
		if s.Has(m) {
			t.Errorf("the empty set has %d", m)
		}
		want := "bitset: member " + strconv.Itoa(m) + " outside 0..65535"
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("Add(%d) panicked with %v, want %q", m, got, want)
				}
			}()
			s.Add(m)
		}()
	}
}

func TestACloneIsIndependent(t *testing.T) {
	s := bitset.Of(1, 2)
	c := s.Clone()
	c.Add(3)
	c.Remove(1)
	if s.String() != "1-2" || c.String() != "2-3" {
		t.Errorf("the original is %s and its clone %s, want 1-2 and 2-3", s, c)
	}
}

func TestAllStopsWhenAsked(t *testing.T) {
	var got []int
	for m := range bitset.Of(1, 64, 200).All() {
		if got = append(got, m); len(got) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]int{1, 64}, got); diff != "" {
		t.Errorf("first two members (-want +got):\n%s", diff)
	}
}

// model is a set as a map, and its list as a loop over sorted numbers.
type model map[int]bool

func (m model) members() []int { return append([]int{}, slices.Sorted(maps.Keys(m))...) }

func (m model) list() string {
	var elements []string
	for _, i := range m.members() {
		if m[i-1] {
			continue
		}
		last := i
		for m[last+1] {
			last++
		}
		element := strconv.Itoa(i)
		if last > i {
			element += "-" + strconv.Itoa(last)
		}
		elements = append(elements, element)
	}
	return strings.Join(elements, ",")
}

// pair is a set and its model, changed together.
type pair struct {
	set   bitset.Set
	model model
}

func drawPair(t *rapid.T, label string) pair {
	p := pair{model: model{}}
	// Members near word borders, and seldom a distant one.
	member := rapid.OneOf(rapid.IntRange(0, 140), rapid.IntRange(0, 140), rapid.IntRange(0, bitset.MaxMember))
	for _, m := range rapid.SliceOfN(member, 0, 60).Draw(t, label+" added") {
		p.set.Add(m)
		p.model[m] = true
	}
	for _, m := range rapid.SliceOfN(rapid.IntRange(-2, bitset.MaxMember+2), 0, 5).Draw(t, label+" removed at random") {
		p.set.Remove(m)
		delete(p.model, m)
	}
	for _, m := range rapid.SliceOfN(rapid.IntRange(-2, 140), 0, 30).Draw(t, label+" removed") {
		p.set.Remove(m)
		delete(p.model, m)
	}
	return p
}

func (p pair) check(t *rapid.T, what string) {
	t.Helper()
	want := p.model.members()
	if diff := cmp.Diff(want, p.set.Members()); diff != "" {
		t.Fatalf("%s: Members (-want +got):\n%s", what, diff)
	}
	if got := append([]int{}, slices.Collect(p.set.All())...); !slices.Equal(got, want) {
		t.Fatalf("%s: All yields %v, want %v", what, got, want)
	}
	least := -1
	if len(want) > 0 {
		least = want[0]
	}
	if p.set.Len() != len(want) || p.set.IsEmpty() != (len(want) == 0) || p.set.Min() != least {
		t.Fatalf("%s: len %d, empty %t, min %d of %v", what, p.set.Len(), p.set.IsEmpty(), p.set.Min(), want)
	}
	for m := -2; m < 140; m++ {
		if p.set.Has(m) != p.model[m] {
			t.Fatalf("%s: Has(%d) is %t of %v", what, m, p.set.Has(m), want)
		}
	}
	if got := p.set.String(); got != p.model.list() {
		t.Fatalf("%s: prints %q, want %q", what, got, p.model.list())
	}
	read, err := bitset.Parse(p.set.String())
	if err != nil {
		t.Fatalf("%s: Parse(%q): %v", what, p.set, err)
	}
	if !read.Equal(p.set) || !p.set.Equal(read) || !p.set.Equal(bitset.Of(want...)) {
		t.Fatalf("%s: %q reads back as %q", what, p.set, read)
	}
}

func TestASetBehavesAsAMapOfItsMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPair(t, "a"), drawPair(t, "b")
		a.check(t, "a")
		b.check(t, "b")
		if a.set.Equal(b.set) != maps.Equal(a.model, b.model) {
			t.Fatalf("Equal(%s, %s) is %t", a.set, b.set, a.set.Equal(b.set))
		}
		union, both, minus := maps.Clone(a.model), model{}, model{}
		maps.Copy(union, b.model)
		for m := range a.model {
			if b.model[m] {
				both[m] = true
			} else {
				minus[m] = true
			}
		}
		pair{a.set.Union(b.set), union}.check(t, "union")
		pair{a.set.Intersect(b.set), both}.check(t, "intersection")
		pair{a.set.Minus(b.set), minus}.check(t, "difference")
		a.check(t, "a afterwards")
		b.check(t, "b afterwards")
	})
}

func TestAStridedRangeHoldsTheUsedPartOfEachGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(0, 300).Draw(t, "low")
		high := rapid.IntRange(low, low+400).Draw(t, "high")
		group := rapid.IntRange(1, 150).Draw(t, "group")
		used := rapid.IntRange(1, group).Draw(t, "used")
		want := model{}
		for i := low; i <= high; i++ {
			if (i-low)%group < used {
				want[i] = true
			}
		}
		list := strconv.Itoa(low) + "-" + strconv.Itoa(high) + ":" + strconv.Itoa(used) + "/" + strconv.Itoa(group)
		got, err := bitset.Parse(list)
		if err != nil {
			t.Fatalf("Parse(%q): %v", list, err)
		}
		pair{got, want}.check(t, list)
	})
}
