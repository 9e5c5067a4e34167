package ledger

import (
	"fmt"
	"maps"

	"github.com/musterd/muster/resource"
)

// lost is the owned part that the host does not have, or does not hand out: a
// card is gone or went into MIG mode, CPUs are offline or newly reserved, a
// node reports less memory. It stays owned, so that it is not free if it comes
// back. The zero value is of a host that has all that is owned.
type lost struct {
	cpus   map[int]resource.Millicores
	memory map[int]resource.Bytes // by node: the owned amount beyond the node's own
	pages  map[pool]resource.Bytes
	gpus   map[string]resource.Milli
	mig    map[string]bool
	counts map[resource.Name]int64 // the owned amount beyond the host's own
}

// mostBytes bounds the owned amount beyond a node's own: far above any host, so
// that sums do not overflow.
const mostBytes resource.Bytes = 1 << 62

// pool is the huge pages of one size on one NUMA node.
type pool struct {
	node int
	size resource.Bytes
}

func (l *lost) isZero() bool {
	return len(l.cpus) == 0 && len(l.memory) == 0 && len(l.pages) == 0 && len(l.gpus) == 0 && len(l.mig) == 0 && len(l.counts) == 0
}

func (l *lost) clone() lost {
	if l.isZero() {
		return lost{}
	}
	return lost{maps.Clone(l.cpus), maps.Clone(l.memory), maps.Clone(l.pages), maps.Clone(l.gpus), maps.Clone(l.mig), maps.Clone(l.counts)}
}

// refuses names a part of an assignment that another grant has lost already.
func (l *lost) refuses(a resource.Assignment) error {
	for _, g := range a.CPUs {
		if owned := l.cpus[g.ID]; owned+g.Milli > resource.WholeCPU {
			return fmt.Errorf("take cpu %d, which is not there: %d millicores of it are owned, want %d", g.ID, owned, g.Milli)
		}
	}
	for _, g := range a.Memory {
		if owned := l.memory[g.Node]; g.Bytes > mostBytes-owned {
			return fmt.Errorf("take memory of node %d: %d bytes beyond what it has are owned, want %d", g.Node, owned, g.Bytes)
		}
	}
	for _, g := range a.Hugepages {
		if owned := l.pages[pool{g.Node, g.Size}]; g.Bytes > mostBytes-owned {
			return fmt.Errorf("take pages of %d bytes of node %d: %d bytes beyond what it has are owned, want %d", g.Size, g.Node, owned, g.Bytes)
		}
	}
	for i, g := range a.GPUs {
		if owned := l.gpus[g.UUID]; owned+g.Milli > resource.WholeDevice || i > 0 && a.GPUs[i-1].UUID == g.UUID {
			return fmt.Errorf("take GPU %s, which is not there: %d milli of it are owned, want %d", g.UUID, owned, g.Milli)
		}
	}
	for i, g := range a.MIG {
		if l.mig[g.UUID] || i > 0 && a.MIG[i-1].UUID == g.UUID {
			return fmt.Errorf("take MIG instance %s, which is not there: it is owned", g.UUID)
		}
	}
	for _, g := range a.Counts {
		if owned := l.counts[g.Name]; g.Amount > int64(mostBytes)-owned {
			return fmt.Errorf("take %s: %d beyond what the host has are owned, want %d", g.Name, owned, g.Amount)
		}
	}
	return nil
}

// add notes an assignment that the host lacks.
func (l *lost) add(a resource.Assignment) {
	for _, g := range a.CPUs {
		add(&l.cpus, g.ID, g.Milli)
	}
	for _, g := range a.Memory {
		add(&l.memory, g.Node, g.Bytes)
	}
	for _, g := range a.Hugepages {
		add(&l.pages, pool{g.Node, g.Size}, g.Bytes)
	}
	for _, g := range a.GPUs {
		add(&l.gpus, g.UUID, g.Milli)
	}
	for _, g := range a.MIG {
		if l.mig == nil {
			l.mig = map[string]bool{}
		}
		l.mig[g.UUID] = true
	}
	for _, g := range a.Counts {
		add(&l.counts, g.Name, g.Amount)
	}
}

func add[K comparable, V ~int64](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] += v
}

// sub removes the part that the host lacks of an assignment and returns the
// part that the host has.
func (l *lost) sub(p *places, a *resource.Assignment) resource.Assignment {
	var part resource.Assignment
	for _, g := range a.CPUs {
		if p.hasCPU(g.ID) {
			part.CPUs = append(part.CPUs, g)
			continue
		}
		if got := subtract(l.cpus, g.ID, g.Milli); got != g.Milli {
			panic(fmt.Sprintf("ledger: give cpu %d, which is not there: %d millicores of it were owned, want %d", g.ID, got, g.Milli))
		}
	}
	for _, g := range a.Memory {
		left := g.Bytes - subtract(l.memory, g.Node, g.Bytes)
		part.Memory, _ = parted(part.Memory, nil, g, left)
	}
	for _, g := range a.Hugepages {
		left := g.Bytes - subtract(l.pages, pool{g.Node, g.Size}, g.Bytes)
		part.Hugepages, _ = partedPages(part.Hugepages, nil, g, left)
	}
	for _, g := range a.GPUs {
		if p.hasGPU(g.Index, g.UUID) {
			part.GPUs = append(part.GPUs, g)
			continue
		}
		if got := subtract(l.gpus, g.UUID, g.Milli); got != g.Milli {
			panic(fmt.Sprintf("ledger: give GPU %s, which is not there: %d milli of it were owned, want %d", g.UUID, got, g.Milli))
		}
	}
	for _, g := range a.MIG {
		if p.hasMIG(g.UUID) {
			part.MIG = append(part.MIG, g)
			continue
		}
		if !l.mig[g.UUID] {
			panic(fmt.Sprintf("ledger: give MIG instance %s, which is not there: it was not owned", g.UUID))
		}
		delete(l.mig, g.UUID)
	}
	for _, g := range a.Counts {
		left := g.Amount - subtract(l.counts, g.Name, g.Amount)
		part.Counts, _ = partedCounts(part.Counts, nil, g, left)
	}
	return part
}

// subtract takes v from an entry, at most the entry's value, and returns the
// amount.
func subtract[K comparable, V ~int64](m map[K]V, k K, v V) V {
	switch have := m[k]; {
	case have == 0:
		return 0
	case have <= v:
		delete(m, k)
		return have
	default:
		m[k] = have - v
		return v
	}
}

// differs names the first difference.
func (l *lost) differs(m *lost) string {
	switch {
	case !maps.Equal(l.cpus, m.cpus):
		return fmt.Sprintf("CPUs owned and not there are %v, the grants say %v", l.cpus, m.cpus)
	case !maps.Equal(l.memory, m.memory):
		return fmt.Sprintf("memory owned and not there is %v, the grants say %v", l.memory, m.memory)
	case !maps.Equal(l.pages, m.pages):
		return fmt.Sprintf("huge pages owned and not there are %v, the grants say %v", l.pages, m.pages)
	case !maps.Equal(l.counts, m.counts):
		return fmt.Sprintf("counted resources owned and not there are %v, the grants say %v", l.counts, m.counts)
	case !maps.Equal(l.gpus, m.gpus):
		return fmt.Sprintf("GPUs owned and not there are %v, the grants say %v", l.gpus, m.gpus)
	case !maps.Equal(l.mig, m.mig):
		return fmt.Sprintf("MIG instances owned and not there are %v, the grants say %v", l.mig, m.mig)
	}
	return ""
}
