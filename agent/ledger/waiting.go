package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// tally adds up amounts by CPU, NUMA node, pool of huge pages, GPU and MIG
// instance. Devices are distinguished by UUID, for one that is gone has no
// index of its own.
type tally struct {
	cpus    map[int]resource.Millicores
	memory  map[int]resource.Bytes
	pages   map[pool]resource.Bytes
	gpus    map[string]resource.Milli
	mig     map[string]int
	profile map[string]string // of an instance
	counts  map[resource.Name]int64
}

func (t *tally) add(a resource.Assignment, sign int) {
	for _, c := range a.CPUs {
		add(&t.cpus, c.ID, resource.Millicores(sign)*c.Milli)
	}
	for _, g := range a.Memory {
		add(&t.memory, g.Node, resource.Bytes(sign)*g.Bytes)
	}
	for _, g := range a.Hugepages {
		add(&t.pages, pool{g.Node, g.Size}, resource.Bytes(sign)*g.Bytes)
	}
	for _, g := range a.GPUs {
		add(&t.gpus, g.UUID, resource.Milli(sign)*g.Milli)
	}
	for _, g := range a.MIG {
		if t.mig == nil {
			t.mig, t.profile = map[string]int{}, map[string]string{}
		}
		t.mig[g.UUID] += sign
		t.profile[g.UUID] = g.Profile
	}
	for _, g := range a.Counts {
		add(&t.counts, g.Name, int64(sign)*g.Amount)
	}
}

// positive returns the amounts above zero as an assignment with the indices of
// this host.
func (t *tally) positive(p *places) resource.Assignment {
	var a resource.Assignment
	for _, id := range slices.Sorted(maps.Keys(t.cpus)) {
		if m := t.cpus[id]; m > 0 {
			a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id, Milli: m})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(t.memory)) {
		if b := t.memory[node]; b > 0 {
			a.Memory = append(a.Memory, resource.MemoryGrant{Node: node, Bytes: b})
		}
	}
	for at, b := range t.pages {
		if b > 0 {
			a.Hugepages = append(a.Hugepages, resource.HugepageGrant{Node: at.node, Size: at.size, Bytes: b})
		}
	}
	slices.SortFunc(a.Hugepages, func(x, y resource.HugepageGrant) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Size, y.Size))
	})
	for uuid, m := range t.gpus {
		if m > 0 {
			a.GPUs = append(a.GPUs, resource.GPUGrant{UUID: uuid, Milli: m})
		}
	}
	for uuid, n := range t.mig {
		for range n { // more than one is refused as a contradiction
			a.MIG = append(a.MIG, resource.MIGGrant{UUID: uuid, Profile: t.profile[uuid]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		if n := t.counts[name]; n > 0 {
			a.Counts = append(a.Counts, resource.CountGrant{Name: name, Amount: n})
		}
	}
	return p.renumbered(a)
}

// block takes the part of a Waiting grant that no live victim of it covers.
func (l *Ledger) block(g *entry) error {
	var t tally
	for _, m := range g.Members {
		t.add(m.Assignment, 1)
	}
	for _, v := range g.Victims {
		for _, m := range l.grants[v].Members {
			t.add(m.Assignment, -1)
		}
	}
	blocked := t.positive(l.places)
	if err := l.own.take(&blocked); err != nil {
		return err
	}
	g.blocked = blocked
	return nil
}

// promote makes a Waiting grant without victims Reserved: it now owns the
// blocked part, which is all of its assignment.
func (l *Ledger) promote(g *entry) {
	l.own.give(&g.blocked)
	g.blocked = resource.Assignment{}
	for _, m := range g.Members {
		if err := l.own.take(&m.Assignment); err != nil {
			panic("ledger: what " + string(g.Tx) + " blocked is not its assignment: " + err.Error())
		}
	}
	g.State, g.WasWaiting, g.Victims = grant.Reserved, true, nil
}

// claimants returns the victims of a Reserve that hold something here, sorted;
// claimed is the Waiting grant that has claimed one of them, or "".
func (l *Ledger) claimants(after []resource.TxID) (live []resource.TxID, claimed resource.TxID) {
	for _, v := range after {
		g := l.grants[v]
		if g == nil || g.Origin != OriginTxn || !g.State.Holds() {
			continue
		}
		if g.claimed != "" { // model: mutant WAITING_NOT_EXCLUSIVE
			return nil, g.claimed
		}
		live = append(live, v)
	}
	slices.SortFunc(live, cmp.Compare)
	return slices.Compact(live), ""
}
