package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/nominate.go: who gives way for whom.

// evictable reports whether a unit may be chosen to give way.
func (u *unit) evictable() bool {
	return u.attempt != nil && u.attempt.machine.State() == txn.Committed && u.ending == nil && u.attempt.prey == nil
}

// leavesSoon reports whether a unit that holds something is on its way out.
func (u *unit) leavesSoon() bool {
	return u.attempt != nil && !u.attempt.machine.Undecided() && u.attempt.machine.State() > txn.Claimed
}

// mayEvict reports whether others may be evicted for a unit: not before it is
// stored, for the next leader must know for whom it was.
func (t *term) mayEvict(u *unit) bool { return u.stored != 0 && u.client.lower }

// preempts starts a preemption for a unit that was admitted and has no place.
func (t *term) preempts(u *unit) bool {
	if !t.mayEvict(u) || u.helpless == t.generation {
		return false
	}
	u.helpless, u.counted = t.generation, nil
	if t.hasRoomSoon(u) {
		for _, h := range t.leaving() {
			u.counted = append(u.counted, t.units[h.Unit].attempt)
		}
		return false
	}
	plan, ok := preempt.Find(t.order, u.client.demand, u.client.priority, t.preemptible(u))
	if !ok || len(plan.Victims) == 0 {
		t.expectant = t.expectant || t.expects(u)
		return false
	}
	var victims []*attempt
	for _, name := range plan.Victims {
		victims = append(victims, t.units[name].attempt)
	}
	slices.SortFunc(victims, byTx)
	t.preempt(u, plan.Members, victims)
	return true
}

// hasRoomSoon reports whether the units that are leaving make room for a unit.
func (t *term) hasRoomSoon(u *unit) bool {
	leaving := t.leaving()
	if len(leaving) == 0 {
		return false
	}
	_, ok := preempt.With(t.order, u.client.demand, leaving)
	return ok
}

func (t *term) preempt(u *unit, plan []place.Choice, victims []*attempt) {
	t.sim.stats["preemptions begun"]++
	t.start(u, plan, victims)
	a := u.attempt
	for _, v := range victims {
		v.prey = a
	}
	for _, n := range a.machine.Nodes() {
		t.nodes[n].rebuild()
	}
}

// preemptible are the units that may give way for one.
func (t *term) preemptible(u *unit) []preempt.Holder {
	var all []preempt.Holder
	for _, name := range slices.Sorted(maps.Keys(t.units)) {
		v := t.units[name]
		if less := v.client.priority < u.client.priority; v.evictable() && !t.contested(v) && (less || t.sim.bug == EvictEquals && v.client.priority == u.client.priority) {
			h := v.holder(v.client.priority)
			if !less {
				h.Priority--
			}
			all = append(all, h)
		}
	}
	return all
}

// expects reports whether a unit that found no victims would find them once the
// units of lower priority can give way that cannot yet.
func (t *term) expects(u *unit) bool {
	holders := t.preemptible(u)
	known := len(holders)
	for _, tx := range slices.Sorted(maps.Keys(t.attempts)) {
		a := t.attempts[tx]
		v := a.unit
		if v.client.priority >= u.client.priority || v.ending != nil || v.leavesSoon() || v.evictable() && !t.contested(v) {
			continue
		}
		h := preempt.Holder{Unit: v.client.name, Priority: v.client.priority}
		for _, node := range a.machine.Nodes() {
			if held := t.nodes[node].held[tx]; held != nil {
				for _, m := range held.members {
					h.Parts = append(h.Parts, preempt.Part{Node: node, Assignment: m.Assignment})
				}
			}
		}
		holders = append(holders, h)
	}
	if len(holders) == known {
		return false
	}
	_, ok := preempt.Find(t.order, u.client.demand, u.client.priority, holders)
	return ok
}

// wakeExpectant runs when a unit has become evictable.
func (t *term) wakeExpectant() {
	if t.expectant && t.sim.bug != VictimUnnoticed {
		t.expectant = false
		t.wake()
	}
}

// leavesFrom reports whether a unit with members on a node is leaving.
func (t *term) leavesFrom(id resource.NodeID) bool {
	return slices.ContainsFunc(t.attemptsOn(id), func(tx resource.TxID) bool {
		a := t.attempts[tx]
		return a.unit.leavesSoon() || a.machine.State() == txn.Reading
	})
}

// contested reports whether a unit has something that is nominated to another,
// which does not know that: its agent has refused that, or will.
func (t *term) contested(u *unit) bool {
	for _, node := range u.attempt.machine.Nodes() {
		vote, _ := u.attempt.machine.Vote(node)
		for tx, h := range t.nodes[node].held {
			if h.waiting && tx != u.attempt.machine.ID() && shareGPU(h.members, vote.Members) {
				return true
			}
		}
	}
	return false
}

func shareGPU(a, b []grant.Member) bool {
	return slices.ContainsFunc(a, func(x grant.Member) bool {
		return slices.ContainsFunc(x.Assignment.GPUs, func(g resource.GPUGrant) bool {
			return slices.ContainsFunc(b, func(y grant.Member) bool {
				return slices.ContainsFunc(y.Assignment.GPUs, func(o resource.GPUGrant) bool { return o.UUID == g.UUID })
			})
		})
	})
}

func (u *unit) holder(priority int32) preempt.Holder {
	h := preempt.Holder{Unit: u.client.name, Priority: priority, Started: int64(u.attempt.committed)}
	for _, node := range u.attempt.machine.Nodes() {
		v, _ := u.attempt.machine.Vote(node)
		for _, m := range v.Members {
			h.Parts = append(h.Parts, preempt.Part{Node: node, Assignment: m.Assignment})
		}
	}
	return h
}

// leaving are the units that are on their way out, and make room for nobody in
// particular.
func (t *term) leaving() []preempt.Holder {
	var all []preempt.Holder
	for _, name := range slices.Sorted(maps.Keys(t.units)) {
		u := t.units[name]
		away := func(n resource.NodeID) bool { return !t.nodes[n].view.Ready }
		if u.leavesSoon() && u.attempt.prey == nil && u.attempt.machine.By() == "" && !slices.ContainsFunc(u.attempt.machine.Nodes(), away) {
			all = append(all, u.holder(0))
		}
	}
	return all
}

func byTx(a, b *attempt) int {
	if a.machine.ID() < b.machine.ID() {
		return -1
	}
	return 1
}

func idsOf(attempts []*attempt) []resource.TxID {
	var list []resource.TxID
	for _, a := range attempts {
		list = append(list, a.machine.ID())
	}
	return list
}

func after(victims []*attempt) string {
	s := ""
	for _, v := range victims {
		s += fmt.Sprintf(" after %s (%s)", v.unit.client.name, short(v.machine.ID()))
	}
	return s
}

// devicesOf lists the devices that an assignment is from, ascending.
func devicesOf(a resource.Assignment) []int {
	var list []int
	for _, g := range a.GPUs {
		list = append(list, g.Index)
	}
	slices.Sort(list)
	return list
}
