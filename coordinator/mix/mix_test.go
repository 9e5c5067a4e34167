package mix_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/mix"
	"github.com/musterd/muster/resource"
)

const gib = resource.Bytes(1) << 30

// learned is a mix of shapes, as many members of each, and more until there is a table.
func learned(shapes ...mix.Shape) *mix.Table {
	var m mix.Mix
	for m.Table() == nil {
		for _, s := range shapes {
			m.Observe(s, 1)
		}
	}
	return m.Table()
}

func TestUnusable(t *testing.T) {
	share, whole, eight := mix.Shape{Share: 300, CPU: 1000}, mix.Shape{GPUs: 1, CPU: 8000}, mix.Shape{GPUs: 8, CPU: 64_000}
	on := mix.Shape{GPUs: 1, CPU: 8000, Products: "A100|H100"}
	for name, c := range map[string]struct {
		shapes  []mix.Shape
		product string
		node    mix.Profile
		want    int64 // milli
	}{
		"a part that is too small for a share":           {[]mix.Shape{share}, "", mix.Profile{CPU: 9000, Whole: 1, GPU: 1200, Parts: []uint16{200}}, 200},
		"a part that is just large enough":               {[]mix.Shape{share}, "", mix.Profile{CPU: 9000, GPU: 300, Parts: []uint16{300}}, 0},
		"no device for the share":                        {[]mix.Shape{share}, "", mix.Profile{CPU: 9000, GPU: 299, Parts: []uint16{299}}, 299},
		"parts are nothing for whole devices":            {[]mix.Shape{whole}, "", mix.Profile{CPU: 9000, Whole: 1, GPU: 1900, Parts: []uint16{500, 400}}, 900},
		"too few whole devices":                          {[]mix.Shape{eight}, "", mix.Profile{CPU: 64_000, Whole: 7, GPU: 7000}, 7000},
		"too little CPU":                                 {[]mix.Shape{whole}, "", mix.Profile{CPU: 7999, Whole: 2, GPU: 2000}, 2000},
		"too little memory":                              {[]mix.Shape{{GPUs: 1, Memory: 9 * gib}}, "", mix.Profile{Memory: 8 * gib, Whole: 2, GPU: 2000}, 2000},
		"half of the mix finds no place":                 {[]mix.Shape{share, eight}, "", mix.Profile{CPU: 64_000, Whole: 4, GPU: 4000}, 2000},
		"a model on which no member of the mix may run":  {[]mix.Shape{on}, "T4", mix.Profile{CPU: 9000, Whole: 2, GPU: 2000}, 2000},
		"a model on which they may run":                  {[]mix.Shape{on}, "H100", mix.Profile{CPU: 9000, Whole: 2, GPU: 2000}, 0},
		"a node without free devices has none to lose":   {[]mix.Shape{eight}, "", mix.Profile{CPU: 9000}, 0},
		"CPU that one shape has and another one has not": {[]mix.Shape{whole, {GPUs: 1, CPU: 20_000}}, "", mix.Profile{CPU: 8000, Whole: 1, GPU: 1000}, 500},
	} {
		table := learned(c.shapes...)
		if got := table.View(c.product).Unusable(&c.node); got != c.want*table.Weight() {
			t.Errorf("%s: %d milli times %d, want %d", name, got/table.Weight(), table.Weight(), c.want)
		}
	}
}

// unusable is Unusable, counted shape by shape.
func unusable(shapes map[mix.Shape]int64, product string, p *mix.Profile) int64 {
	var sum int64
	for s, weight := range shapes {
		runs := s.Products == "" || slices.Contains(strings.Split(s.Products, "|"), product)
		lost, has := int64(0), p.Whole >= max(1, s.GPUs)
		for _, part := range p.Parts {
			if s.Share > 0 && resource.Milli(part) >= s.Share {
				has = true
			} else {
				lost += int64(part)
			}
		}
		if !runs || !has || s.CPU > p.CPU || s.Memory > p.Memory {
			lost = int64(p.GPU)
		}
		sum += weight * lost
	}
	return sum
}

func drawShape(t *rapid.T) mix.Shape {
	s := mix.Shape{
		CPU:      resource.Millicores(rapid.SampledFrom([]int{0, 1000, 4000, 8000, 9000}).Draw(t, "CPU")),
		Memory:   resource.Bytes(rapid.IntRange(0, 3).Draw(t, "memory")) * gib,
		Products: rapid.SampledFrom([]string{"", "", "a", "b", "a|b"}).Draw(t, "products"),
	}
	if rapid.Bool().Draw(t, "share") {
		s.Share = resource.Milli(rapid.SampledFrom([]int{1, 250, 500, 999}).Draw(t, "of a device"))
	} else {
		s.GPUs = rapid.IntRange(1, 8).Draw(t, "GPUs")
	}
	return s
}

// TestUnusableAgreesWithACountByShapes: the table, which groups shapes, is exact.
func TestUnusableAgreesWithACountByShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m mix.Mix
		counts := map[mix.Shape]int64{}
		shapes := rapid.SliceOfNDistinct(rapid.Custom(drawShape), 1, 16, rapid.ID).Draw(t, "shapes")
		for range mix.Enough / 16 * 16 { // equal counts, so that the weights are known
			for _, s := range shapes {
				if m.Observe(s, 1); m.Table() == nil {
					counts[s]++
				}
			}
			if m.Table() != nil {
				break
			}
		}
		if m.Table() == nil {
			t.Skip("too few members")
		}
		table := m.Table()
		// The weights are those of a count of Enough members: the last one observed made it.
		total := int64(0)
		counts = map[mix.Shape]int64{}
		for i := range mix.Enough {
			counts[shapes[i%len(shapes)]]++
			total++
		}
		for s, n := range counts {
			counts[s] = (n*mix.Whole + total - 1) / total
		}
		p := mix.Profile{
			CPU: resource.Millicores(rapid.IntRange(0, 10_000).Draw(t, "free CPU")), Memory: resource.Bytes(rapid.IntRange(0, 3).Draw(t, "free memory")) * gib,
			Whole: rapid.IntRange(0, 8).Draw(t, "whole devices"),
		}
		p.GPU = resource.Milli(p.Whole) * resource.WholeDevice
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			p.Parts = append(p.Parts, uint16(rapid.SampledFrom([]int{1, 100, 250, 499, 500, 998, 999}).Draw(t, "part")))
			p.GPU += resource.Milli(p.Parts[len(p.Parts)-1])
		}
		slices.SortFunc(p.Parts, func(a, b uint16) int { return int(b) - int(a) })
		for _, product := range []string{"", "a", "b", "c"} {
			if got, want := table.View(product).Unusable(&p), unusable(counts, product, &p); got != want {
				t.Fatalf("on %q of %+v: %d, counted %d", product, p, got, want)
			}
		}
	})
}

// TestTheOrderOfArrivalChangesNoTable: a table is a function of the counts.
func TestTheOrderOfArrivalChangesNoTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shapes := rapid.SliceOfN(rapid.Custom(drawShape), mix.Enough, mix.Enough).Draw(t, "members")
		other := rapid.Permutation(shapes).Draw(t, "in another order")
		var m, n mix.Mix
		for i := range shapes {
			m.Observe(shapes[i], 1)
			n.Observe(other[i], 1)
		}
		p := mix.Profile{CPU: 8000, Memory: 2 * gib, Whole: 2, GPU: 2749, Parts: []uint16{500, 249}}
		for _, product := range []string{"", "a", "b"} {
			if a, b := m.Table().View(product), n.Table().View(product); a.Unusable(&p) != b.Unusable(&p) || a.Unserved(&p) != b.Unserved(&p) {
				t.Fatalf("on %q: %d and %d, unserved %d and %d", product, a.Unusable(&p), b.Unusable(&p), a.Unserved(&p), b.Unserved(&p))
			}
		}
	})
}

func TestUnserved(t *testing.T) {
	table := learned(mix.Shape{GPUs: 1, CPU: 8000}, mix.Shape{GPUs: 1, CPU: 4000}) // 6 CPUs for each GPU
	for name, c := range map[string]struct {
		node mix.Profile
		want int64
	}{
		"as much CPU as the GPUs need":  {mix.Profile{CPU: 12_000, GPU: 2000}, 0},
		"half as much":                  {mix.Profile{CPU: 6000, GPU: 2000}, 1000},
		"none":                          {mix.Profile{GPU: 2000}, 2000},
		"more CPU than the GPUs need":   {mix.Profile{CPU: 99_000, GPU: 2000}, 0},
		"no GPU, which needs no CPU":    {mix.Profile{CPU: 1000}, 0},
		"a part of a device needs less": {mix.Profile{CPU: 3000, GPU: 500}, 0},
	} {
		if got := table.View("").Unserved(&c.node); got != c.want*table.Weight() {
			t.Errorf("%s: %d, want %d times %d", name, got, c.want, table.Weight())
		}
	}
}

func TestTheMixFollowsTheRecentPast(t *testing.T) {
	var m mix.Mix
	node := mix.Profile{CPU: 9000, Whole: 1, GPU: 1000}
	for range 1000 {
		m.Observe(mix.Shape{GPUs: 8}, 64) // no node of one device has room for it
	}
	if got := m.Table().View("").Unusable(&node); got != 1000*m.Table().Weight() {
		t.Errorf("unusable: %d, want all of it", got)
	}
	for range 20_000 {
		m.Observe(mix.Shape{GPUs: 1}, 64)
	}
	if got := m.Table().View("").Unusable(&node); got > 10*m.Table().Weight() {
		t.Errorf("unusable: %d, want less than a hundredth of %d", got, 1000*m.Table().Weight())
	}
}

func TestMembersWithoutGPUsAndTheFirstOnesSayNothing(t *testing.T) {
	var m mix.Mix
	m.Observe(mix.Shape{CPU: 1000}, 5000)
	for range mix.Enough - 1 {
		if m.Observe(mix.Shape{GPUs: 1}, 1); m.Table() != nil {
			t.Fatal("there is a table too early")
		}
	}
	if m.Observe(mix.Shape{GPUs: 1}, 1); m.Table() == nil {
		t.Error("there is no table")
	}
}

// TestAMixIsBounded: a client may ask for another shape each time.
func TestAMixIsBounded(t *testing.T) {
	var m mix.Mix
	for i := range 5000 {
		m.Observe(mix.Shape{GPUs: 1, CPU: resource.Millicores(i)}, 1)
		m.Observe(mix.Shape{GPUs: 8, Products: fmt.Sprint("p", i)}, 1)
	}
	for range 20_000 {
		m.Observe(mix.Shape{GPUs: 2}, 1)
	}
	if n := len(m.Table().Products()); n > 1024 {
		t.Errorf("the table has %d products, want at most 1024", n)
	}
}

func ExampleMix() {
	var m mix.Mix
	for range 64 {
		m.Observe(mix.Shape{GPUs: 1, CPU: 8000}, 1)
		m.Observe(mix.Shape{Share: 500, CPU: 4000}, 1)
	}
	// A node with one and a half free GPUs: half of the members cannot use the half.
	node := mix.Profile{CPU: 64_000, Memory: 1 << 38, Whole: 1, GPU: 1500, Parts: []uint16{500}}
	t := m.Table()
	fmt.Println(t.View("").Unusable(&node)/t.Weight(), "milli")
	// Output: 250 milli
}

// BenchmarkUnusable: a mix of 128 shapes on a node whose devices are partly used.
func BenchmarkUnusable(b *testing.B) {
	var shapes []mix.Shape
	for i := range 128 {
		s := mix.Shape{CPU: resource.Millicores(1000 * (i % 9)), Memory: resource.Bytes(i) * gib}
		if i%2 == 0 {
			s.Share = resource.Milli(50 + 40*(i%20))
		} else {
			s.GPUs = 1 << (i % 4)
		}
		shapes = append(shapes, s)
	}
	v := learned(shapes...).View("")
	p := mix.Profile{CPU: 6000, Memory: 200 * gib, Whole: 3, GPU: 4350, Parts: []uint16{700, 400, 250}}
	for b.Loop() {
		v.Unusable(&p)
	}
}

// TestARestoredMixGoesOn: a Mix that is made of the state of another one rates nodes as
// the other does, now and after each further member.
func TestARestoredMixGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m mix.Mix
		for range rapid.IntRange(0, 200).Draw(t, "members before") {
			m.Observe(drawShape(t), rapid.SampledFrom([]int{1, 1, 2, 64}).Draw(t, "members"))
		}
		other, err := mix.Restore(m.State())
		if err != nil {
			t.Fatal(err)
		}
		p := mix.Profile{CPU: 8000, Memory: 2 * gib, Whole: 2, GPU: 2749, Parts: []uint16{500, 249}}
		for range rapid.IntRange(1, 100).Draw(t, "members after") {
			a, b := m.Table(), other.Table()
			if (a == nil) != (b == nil) {
				t.Fatal("one of them alone has a table")
			}
			for _, product := range []string{"", "a", "b", "c"} {
				if a != nil && (a.View(product).Unusable(&p) != b.View(product).Unusable(&p) || a.View(product).Unserved(&p) != b.View(product).Unserved(&p)) {
					t.Fatalf("on %q the restored mix rates otherwise", product)
				}
			}
			s := drawShape(t)
			m.Observe(s, 1)
			other.Observe(s, 1)
		}
	})
}

func TestAStateThatNoMixHasIsRefused(t *testing.T) {
	good := mix.Shape{GPUs: 1}
	for name, c := range map[string]struct {
		state mix.State
		want  string
	}{
		"no members":            {mix.State{Due: 64, Shapes: []mix.Counted{{Shape: good}}}, "shapes[0]: 0 members"},
		"fewer than none":       {mix.State{Due: 64, Shapes: []mix.Counted{{Shape: good, Members: -1}}}, "shapes[0]: -1 members"},
		"too many":              {mix.State{Due: 64, Shapes: []mix.Counted{{Shape: good, Tabled: 1 << 40}}}, "in the table"},
		"no GPU":                {mix.State{Due: 64, Shapes: []mix.Counted{{Members: 1}}}, "0 GPUs"},
		"a shape twice":         {mix.State{Due: 64, Shapes: []mix.Counted{{Shape: good, Members: 1}, {Shape: good, Members: 1}}}, "shapes[1]: is not after"},
		"no instant of a table": {mix.State{Shapes: []mix.Counted{{Shape: good, Members: 1}}}, "due: 0"},
	} {
		if _, err := mix.Restore(c.state); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
