package sysfs

import (
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// checkPlaces warns where cores, L3 caches, sockets and nodes cut across each
// other in ways that no hardware has. Each file is shown as it is: nothing says
// which one is wrong.
func (r *reader) checkPlaces(t *numa.Topology) {
	sockets, nodes, l3s := newPlaces(), newPlaces(), newPlaces()
	for _, c := range t.CPUs {
		if c.Online {
			sockets.enter(c.Socket, c.ID)
			nodes.enter(c.NUMA, c.ID)
			l3s.enter(c.L3, c.ID)
		}
	}
	var overSockets, overNodes, cacheOverSockets, cut bitset.Set
	for _, c := range t.CPUs {
		if !c.Online {
			continue
		}
		if sockets.splits(c.Siblings, c.Socket) {
			overSockets.Add(c.ID)
		}
		if nodes.splits(c.Siblings, c.NUMA) {
			overNodes.Add(c.ID)
		}
		if sockets.splits(l3s.of[c.L3], c.Socket) {
			cacheOverSockets.Add(c.ID)
		}
		if sockets.splits(nodes.of[c.NUMA], c.Socket) && nodes.splits(sockets.of[c.Socket], c.NUMA) {
			cut.Add(c.ID)
		}
	}
	tell := func(which bitset.Set, problem string) {
		if !which.IsEmpty() {
			r.warn(cpuDir, "cpus %s: %s", brief(which), problem)
		}
	}
	tell(overSockets, "their cores have threads on several sockets")
	tell(overNodes, "their cores have threads on several NUMA nodes")
	tell(cacheOverSockets, "their L3 caches are shared by several sockets")
	tell(cut, "their NUMA nodes and sockets overlap, and neither holds the other")
}

// places are the online CPUs of each socket, node or cache; known are all of
// them together. A CPU whose place is unknown is nowhere.
type places struct {
	of    map[int]bitset.Set
	known bitset.Set
}

func newPlaces() *places { return &places{of: map[int]bitset.Set{}} }

func (p *places) enter(place, cpu int) {
	if place == numa.Unknown {
		return
	}
	set := p.of[place]
	set.Add(cpu)
	p.of[place] = set
	p.known.Add(cpu)
}

// splits reports whether some of the CPUs are in another place than the given.
func (p *places) splits(cpus bitset.Set, place int) bool {
	return place != numa.Unknown && !cpus.Intersect(p.known).Minus(p.of[place]).IsEmpty()
}
