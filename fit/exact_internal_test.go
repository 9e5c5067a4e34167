package fit

import (
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// islandHost is 12 devices in nested islands of the given sizes, four to a
// node.
func islandHost(t *rapid.T, inner, outer int) *Host {
	topology := &numa.Topology{}
	inventory := &devices.Inventory{Links: make([][]devices.Link, 12)}
	for n := range 3 {
		cpus := bitset.Of(2*n, 2*n+1)
		topology.Nodes = append(topology.Nodes, numa.Node{ID: n, CPUs: cpus, Memory: 10})
		for id := range cpus.All() {
			topology.CPUs = append(topology.CPUs, numa.CPU{ID: id, NUMA: n, Online: true, Siblings: bitset.Of(id)})
		}
	}
	for i := range 12 {
		inventory.Devices = append(inventory.Devices, devices.Device{Index: i, UUID: fmt.Sprint("GPU-", i), NUMANode: i / 4})
		inventory.Links[i] = make([]devices.Link, 12)
		for j := range 12 {
			switch {
			case i == j:
			case i/inner == j/inner:
				inventory.Links[i][j] = devices.NVLink(4)
			case i/outer == j/outer:
				inventory.Links[i][j] = devices.LinkPIX
			default:
				inventory.Links[i][j] = devices.LinkSYS
			}
		}
	}
	h, err := NewHost(topology, inventory, Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestGrownSetsAreAsWellLinkedAsTheExact runs the search for large hosts on
// small ones of nested islands, where the exact answer is known.
func TestGrownSetsAreAsWellLinkedAsTheExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "inner")
		h := islandHost(t, inner, inner*rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "outer"))
		f := h.NewFree()
		for i := range f.GPU {
			if rapid.IntRange(0, 3).Draw(t, "held") == 0 {
				f.GPU[i] = 0
			}
		}
		req := resource.Request{
			GPUs: rapid.IntRange(1, 8).Draw(t, "gpus"), CPU: 1000,
			NUMA: resource.NUMAPolicy(rapid.IntRange(0, 3).Draw(t, "policy")),
			Link: resource.LinkRequirement(rapid.IntRange(0, 2).Draw(t, "link")),
		}
		var s search
		if !s.start(h, f, &req, everyDevice) {
			return
		}
		exact, exactOK := s.chooseExact()
		grown, grownOK := s.chooseWide()
		if exactOK != grownOK {
			t.Fatalf("exact search says %v, grown %v, for %+v of %012b", exactOK, grownOK, req, s.usable)
		}
		if exactOK && h.weakestOf(exact) != h.weakestOf(grown) {
			t.Fatalf("exact set %012b has weakest link %s, grown set %012b %s", exact, h.weakestOf(exact), grown, h.weakestOf(grown))
		}
	})
}

func (h *Host) weakestOf(set uint64) devices.Link {
	least := devices.NVLink(devices.MaxNVLinks)
	for a := set; a != 0; a &= a - 1 {
		for b := a & (a - 1); b != 0; b &= b - 1 {
			least = min(least, h.inventory.Links[bits.TrailingZeros64(a)][bits.TrailingZeros64(b)])
		}
	}
	return least
}

func TestLikeHostsShareTheirTables(t *testing.T) {
	topology := &numa.Topology{Nodes: []numa.Node{{ID: 0, Memory: 1}}}
	inventory := func(link devices.Link) *devices.Inventory {
		return &devices.Inventory{
			Devices: []devices.Device{{Index: 0, UUID: "a"}, {Index: 1, UUID: "b"}},
			Links:   [][]devices.Link{{0, link}, {link, 0}},
		}
	}
	first, err := NewHost(topology, inventory(devices.LinkPIX), Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	for link, want := range map[devices.Link]bool{devices.LinkPIX: true, devices.LinkSYS: false} {
		next, err := NewHostLike(first, topology, inventory(link), Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		if shared := next.links == first.links; shared != want {
			t.Errorf("tables of %s shared: %v, want %v", link, shared, want)
		}
	}
}

func TestLinkTableListsEverySetOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 9).Draw(t, "devices")
		bonds := make([][]bond, n)
		for i := range bonds {
			bonds[i] = make([]bond, n)
			for j := range i {
				b := bond(rapid.IntRange(1, 8).Draw(t, "link"))<<bondLink + bond(rapid.IntRange(0, 1).Draw(t, "node"))
				bonds[i][j], bonds[j][i] = b, b
			}
		}
		table := newLinkTable(bonds)
		seen := 0
		for size, sets := range table.sets {
			from := int32(0)
			for _, run := range table.runs[size] {
				for i := from; i < run.end; i++ {
					set := sets[i]
					if bits.OnesCount16(set) != size || (i > from && !lower(uint64(sets[i-1]), uint64(set))) || table.worth[set]>>bondLink != table.worth[sets[from]]>>bondLink {
						t.Fatalf("set %016b is misplaced among those of %d", set, size)
					}
					seen++
				}
				from = run.end
			}
		}
		if seen != 1<<n {
			t.Fatalf("%d sets of %d devices, want %d", seen, n, 1<<n)
		}
	})
}
