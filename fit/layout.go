package fit

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// maxDomains bounds the domains of a host, so that a set of them is a word.
const maxDomains = 64

// unknownDistance is the distance of nodes whose host reports none (10 is local,
// 20 the customary remote, both from ACPI's SLIT).
const unknownDistance = 20

// domain is a place for CPUs and memory: an ordinary NUMA node, or the CPUs
// whose node the host does not report.
type domain struct {
	node   int // position in Topology.Nodes, or numa.Unknown
	cpus   extent
	cores  extent
	groups extent
}

// extent is a half-open range of positions in another list.
type extent struct{ from, to int32 }

// core is a physical core: threads that share execution units.
type core struct {
	cpus   extent // its usable CPUs, in layout.order
	group  int32
	domain int32
	// full counts its online threads, usable or not: a core with a thread that
	// is reserved or isolated is never intact, so odd CPUs go there first.
	full int32
	kind numa.CoreKind
}

// whole reports whether all threads of the core are usable.
func (c *core) whole() bool { return c.cpus.to-c.cpus.from == c.full }

// group is the cores of one domain that share a level 3 cache.
type group struct {
	cores extent
	full  int32 // threads of its largest core
}

// layout orders the usable CPUs so that those to be handed out together stand
// together. It is immutable.
//
// Invariant: order lists each usable CPU once, by domain, L3 group, core, ID;
// cpus, cores and groups of the domains, groups and cores partition it.
type layout struct {
	domains  []domain
	domainOf []int32 // by position in Topology.Nodes; -1 for nodes that are no domain
	order    []int32 // positions in Topology.CPUs
	cores    []core
	groups   []group
	coreOf   []int32 // by position in Topology.CPUs; -1 where not usable
	position []int32 // by CPU ID; -1 where there is none
	distance [][]int // by domain
	hybrid   bool    // cores are of several kinds
}

// newLayout arranges the CPUs of t that are usable and not reserved.
func newLayout(t *numa.Topology, reserved bitset.Set) layout {
	l := layout{domainOf: make([]int32, len(t.Nodes)), coreOf: make([]int32, len(t.CPUs))}
	for i := range t.Nodes {
		l.domainOf[i] = -1
	}
	for _, i := range offeredNodes(t) {
		l.domainOf[i] = int32(len(l.domains))
		l.domains = append(l.domains, domain{node: i})
	}
	l.index(t)
	l.fill(l.keys(t, reserved))
	l.measure(t)
	return l
}

func (l *layout) index(t *numa.Topology) {
	if len(t.CPUs) > 0 {
		l.position = make([]int32, t.CPUs[len(t.CPUs)-1].ID+1)
	}
	for i := range l.position {
		l.position[i] = -1
	}
	for i, c := range t.CPUs {
		l.position[c.ID] = int32(i)
		l.coreOf[i] = -1
	}
}

// placeKey sorts one usable CPU into the layout.
type placeKey struct {
	domain, l3, core int
	position         int32
	full             int32
	kind             numa.CoreKind
}

// offers reports whether the node at a position of Topology.Nodes hands out
// memory.
func (l *layout) offers(node int) bool { return l.domainOf[node] >= 0 }

// keys lists the usable CPUs in layout order. CPUs on no node, or on a node that
// is no domain, go to a domain of their own, which it appends if needed.
func (l *layout) keys(t *numa.Topology, reserved bitset.Set) []placeKey {
	threads := make(map[int]int32, len(t.CPUs))
	for _, c := range t.CPUs {
		if c.Online {
			threads[c.Siblings.Min()]++
		}
	}
	var keys []placeKey
	homeless := -1
	for i, c := range t.CPUs {
		if !c.Usable() || reserved.Has(c.ID) {
			continue
		}
		d := -1
		if n := t.NodeIndex(c.NUMA); n != numa.Unknown {
			d = int(l.domainOf[n])
		}
		if d < 0 {
			if homeless < 0 {
				homeless = len(l.domains)
				l.domains = append(l.domains, domain{node: numa.Unknown})
			}
			d = homeless
		}
		first := c.Siblings.Min()
		keys = append(keys, placeKey{domain: d, l3: c.L3, core: first, position: int32(i), full: threads[first], kind: knownKind(c.Kind)})
	}
	slices.SortFunc(keys, func(a, b placeKey) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.l3, b.l3),
			cmp.Compare(a.core, b.core), cmp.Compare(a.position, b.position))
	})
	return keys
}

// knownKind is the kind itself, or UnknownKind for any other value.
func knownKind(k numa.CoreKind) numa.CoreKind {
	if k > numa.LowPower {
		return numa.UnknownKind
	}
	return k
}

// fill cuts the ordered CPUs into cores, groups and domains.
func (l *layout) fill(keys []placeKey) {
	for i, k := range keys {
		at := int32(i)
		newDomain := i == 0 || keys[i-1].domain != k.domain
		newGroup := newDomain || keys[i-1].l3 != k.l3
		newCore := newGroup || keys[i-1].core != k.core
		if newCore {
			l.cores = append(l.cores, core{cpus: extent{at, at}, domain: int32(k.domain), full: k.full, kind: k.kind})
			l.hybrid = l.hybrid || k.kind != l.cores[0].kind
		}
		c := int32(len(l.cores) - 1)
		if newGroup {
			l.groups = append(l.groups, group{cores: extent{c, c}})
		}
		g := int32(len(l.groups) - 1)
		d := &l.domains[k.domain]
		if newDomain {
			d.cpus.from, d.cores.from, d.groups.from = at, c, g
		}
		d.cpus.to, d.cores.to, d.groups.to = at+1, c+1, g+1
		l.groups[g].cores.to = c + 1
		l.groups[g].full = max(l.groups[g].full, k.full)
		l.cores[c].cpus.to = at + 1
		l.cores[c].group = g
		l.order = append(l.order, k.position)
		l.coreOf[k.position] = c
	}
}

func (l *layout) measure(t *numa.Topology) {
	l.distance = make([][]int, len(l.domains))
	for i, a := range l.domains {
		l.distance[i] = make([]int, len(l.domains))
		for j, b := range l.domains {
			l.distance[i][j] = unknownDistance
			if len(t.Distances) > 0 && a.node != numa.Unknown && b.node != numa.Unknown {
				l.distance[i][j] = t.Distances[a.node][b.node]
			}
		}
	}
}
