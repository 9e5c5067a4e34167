package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// tally adds up amounts by CPU, NUMA node and GPU.
type tally struct {
	cpus   map[int]resource.Millicores
	memory map[int]resource.Bytes
	gpus   map[int]resource.Milli
}

func (t *tally) add(a resource.Assignment, sign int64) {
	if t.cpus == nil {
		*t = tally{map[int]resource.Millicores{}, map[int]resource.Bytes{}, map[int]resource.Milli{}}
	}
	for _, c := range a.CPUs {
		t.cpus[c.ID] += resource.Millicores(sign) * c.Milli
	}
	for _, g := range a.Memory {
		t.memory[g.Node] += resource.Bytes(sign) * g.Bytes
	}
	for _, g := range a.GPUs {
		t.gpus[g.Index] += resource.Milli(sign) * g.Milli
	}
}

// positive returns the amounts above zero as an assignment.
func (t *tally) positive(l *Ledger) resource.Assignment {
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
	for _, at := range slices.Sorted(maps.Keys(t.gpus)) {
		if m := t.gpus[at]; m > 0 && at < len(l.host.Inventory().Devices) {
			a.GPUs = append(a.GPUs, resource.GPUGrant{Index: at, UUID: l.host.Inventory().Devices[at].UUID, Milli: m})
		}
	}
	return a
}

// block takes what of a Waiting grant no live victim of it covers.
func (l *Ledger) block(g *grant) error {
	var t tally
	for _, m := range g.Members {
		t.add(m.Assignment, 1)
	}
	for _, v := range g.Victims {
		victim := l.grants[v]
		for i := range victim.Members {
			t.add(victim.part(i), -1)
		}
	}
	part, _, err := l.take(l.free, t.positive(l))
	if err != nil {
		return err
	}
	g.blocked = part
	return nil
}

// promote makes a Waiting grant without victims Reserved: it now owns what it
// blocked, which is all of its assignment.
func (l *Ledger) promote(g *grant) {
	l.give(g.blocked)
	g.blocked = resource.Assignment{}
	for i, m := range g.Members {
		part, exact, err := l.take(l.free, m.Assignment)
		if err != nil {
			panic("ledger: what " + string(g.Tx) + " blocked is not its assignment: " + err.Error())
		}
		if !exact && g.taken == nil {
			g.taken = make([]resource.Assignment, len(g.Members))
			for k := range i {
				g.taken[k] = g.Members[k].Assignment
			}
		}
		if g.taken != nil {
			g.taken[i] = part
		}
	}
	g.State, g.WasWaiting, g.Victims = Reserved, true, nil
}

// claimants returns the victims of a Reserve that hold something here, sorted;
// ok is false where one is claimed by another Waiting grant.
func (l *Ledger) claimants(after []resource.TxID) (live []resource.TxID, claimed resource.TxID) {
	for _, v := range after {
		g := l.grants[v]
		if g == nil || !g.State.Holds() {
			continue
		}
		if g.claimed != "" {
			return nil, g.claimed
		}
		live = append(live, v)
	}
	slices.SortFunc(live, cmp.Compare)
	return slices.Compact(live), ""
}
