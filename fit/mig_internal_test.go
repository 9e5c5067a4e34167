package fit

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// migHost is up to 16 devices in MIG mode over some nodes of two CPUs each.
func migHost(t *rapid.T) *Host {
	topology, inventory := &numa.Topology{}, &devices.Inventory{}
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	for n := range nodes {
		cpus := bitset.Of(2*n, 2*n+1)
		topology.Nodes = append(topology.Nodes, numa.Node{ID: n, CPUs: cpus, Memory: 10})
		for id := range cpus.All() {
			topology.CPUs = append(topology.CPUs, numa.CPU{ID: id, NUMA: n, Online: true, Siblings: bitset.Of(id)})
		}
	}
	for i := range rapid.IntRange(8, maxExact).Draw(t, "devices") {
		d := devices.Device{Index: i, UUID: fmt.Sprint("GPU-", i), NUMANode: rapid.IntRange(-1, nodes-1).Draw(t, "node"), MIG: devices.MIG{Enabled: true}}
		for k := range rapid.SampledFrom([]int{7, 7, 3, 2, 4}).Draw(t, "instances") {
			d.MIG.Instances = append(d.MIG.Instances, devices.MIGInstance{
				UUID: fmt.Sprint("MIG-", i, "-", k), Profile: rapid.SampledFrom([]string{"1g.10gb", "1g.10gb", "2g.20gb"}).Draw(t, "profile"),
			})
		}
		inventory.Devices = append(inventory.Devices, d)
		inventory.Links = append(inventory.Links, nil)
	}
	for i := range inventory.Links {
		inventory.Links[i] = make([]devices.Link, len(inventory.Devices))
		for j := range inventory.Links {
			if i != j {
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

// TestGatheredMIGFindsWhatTheExactSearchFinds runs the greedy search for large
// hosts on small ones: it finds a choice wherever there is one, on as few
// nodes under a policy that limits them, and never a better one.
func TestGatheredMIGFindsWhatTheExactSearchFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := migHost(t)
		f := h.NewFree()
		for i := range f.MIG {
			f.MIG[i] &= rapid.Uint16().Draw(t, "free")
		}
		req := resource.Request{
			MIG: rapid.IntRange(1, 30).Draw(t, "instances"), MIGProfile: "1g.10gb", CPU: resource.Millicores(rapid.IntRange(0, 4000).Draw(t, "cpu")),
			NUMA: resource.NUMAPolicy(rapid.IntRange(0, 3).Draw(t, "policy")),
		}
		var s search
		if !s.start(h, f, &req, everyDevice) {
			return
		}
		exact, exactOK := s.chooseMIG()
		greedy, greedyOK := s.chooseMIGWide()
		if exactOK != greedyOK {
			t.Fatalf("the exact search says %v, the greedy one %v, for %+v of %x", exactOK, greedyOK, req, f.MIG)
		}
		if exactOK && s.scoreOf(greedy) < s.scoreOf(exact) {
			t.Fatalf("greedy set %016b scores %x, exact set %016b %x", greedy, s.scoreOf(greedy), exact, s.scoreOf(exact))
		}
		if exactOK && req.NUMA == resource.NUMASingleNode && s.scoreOf(greedy).span() > 1 {
			t.Fatalf("greedy set %016b spans %d nodes", greedy, s.scoreOf(greedy).span())
		}
	})
}

// scoreOf is the score of a set, by its definition.
func (s *search) scoreOf(set uint64) migScore {
	var score migScore
	for i := range s.h.inventory.Devices {
		if set&(1<<i) != 0 {
			score += s.mig.devices[i].score()
		}
	}
	if s.req.NUMA == resource.NUMANone {
		return score
	}
	return score.spanning(s.span(s.h.domainsOf(set)))
}
