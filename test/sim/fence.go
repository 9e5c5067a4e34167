package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/fence.go: nodes that are fenced, and confirmed dead.

// identity is the value of a node's identity.
type identity struct {
	incarnation  resource.Incarnation
	fenced, dead bool
}

// fence is what the store says against a node's incarnation.
type fence struct {
	revision resource.Revision
	dead     bool
}

func fenceOf(i identity, rev resource.Revision) *fence {
	if !i.fenced {
		return nil
	}
	return &fence{rev, i.dead}
}

// trusted reports whether the agent's incarnation may be counted on.
func (v *nodeView) trusted() bool {
	return v.registered != 0 && (v.fence == nil || v.registered > v.fence.revision)
}

// fenceAttempts bounds how often a fence is tried anew.
const fenceAttempts = 8

// fencing is what an operator asks for.
type fencing struct {
	node resource.NodeID
	// dead reports, at the moment when the store says who is registered, whether
	// the machine is confirmed dead.
	dead     func() bool
	force    bool
	first    resource.Incarnation // of which it was asked
	attempts int
}

// fence reads who is registered and heard, then fences that. A death is
// confirmed of the incarnation that was read first.
func (t *term) fence(f fencing) {
	t.sim.ask("who is to be fenced on "+string(f.node), func() func() {
		e := t.sim.store.keys[identityKey(f.node)]
		if dead := f.dead(); f.first.IsZero() {
			f.dead = func() bool { return dead }
		}
		return func() {
			who, registered := e.value.(identity)
			again := !f.first.IsZero() && who.incarnation != f.first && t.sim.bug != DeathRetried
			if t.ended || !registered || again && f.dead() {
				return
			}
			f.first = who.incarnation
			t.read("the lease of "+string(f.node), leaseKey(f.node), func(lease entry, _ resource.Revision) {
				t.fenceIncarnation(f, e, lease)
			})
		}
	})
}

func (t *term) fenceIncarnation(f fencing, e, lease entry) {
	id, dead := f.node, f.dead()
	who, key := e.value.(identity), identityKey(id)
	switch {
	case who.fenced && (who.dead || !dead):
		t.fenced(id, fenceOf(who, e.mod))
		return
	case lease.value != nil && !f.force:
		t.sim.logf("%s: %s is not fenced: it is heard", t.name, id)
		return
	}
	who.fenced, who.dead = true, dead
	d := decision{
		what: fmt.Sprintf("fence of %s (confirmed dead: %t)", id, dead), ops: []op{{key, who}},
		compares: []record.Compare{record.ModRevIs(key, e.mod), record.ModRevIs(leaseKey(id), lease.mod)},
	}
	if lease.value != nil {
		d.ops = append(d.ops, op{leaseKey(id), nil})
	}
	if h := t.sim.host(id); dead && h.off && t.sim.mishap(3) {
		h.powerOn() // the worst moment: who was dead is back before that is written
		h.startAgent()
		d.slow = true
	}
	d.done = func(o txn.Outcome, rev resource.Revision) {
		switch {
		case o == txn.Landed:
			t.sim.stats["fences"]++
			t.fenced(id, fenceOf(who, rev))
		case f.attempts > 1:
			f.attempts--
			t.fence(f)
		}
	}
	t.settle(d, key, func(e entry) bool { return e.value == who })
}

// fenced follows a fence that is durable, unless the agent has registered since.
func (t *term) fenced(id resource.NodeID, f *fence) {
	v := t.node(id)
	if v.fence != nil && v.fence.revision >= f.revision || v.registered > f.revision {
		return
	}
	t.sim.logf("%s: %s is fenced at %d (confirmed dead: %t)", t.name, id, f.revision, f.dead)
	v.fence = f
	t.unpresume(id)
	v.setReady()
	if v.stream != nil {
		v.stream.cut()
	}
	for _, tx := range t.attemptsOn(id) {
		if a := t.attempts[tx]; a != nil {
			t.forsake(a)
		}
	}
	t.wake()
}

// attemptsOn lists the transactions with a part on a node, in order.
func (t *term) attemptsOn(id resource.NodeID) []resource.TxID {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.attempts)), func(tx resource.TxID) bool {
		return !slices.Contains(t.attempts[tx].machine.Nodes(), id)
	})
}

// forsake goes on with an attempt that has members on fenced nodes.
func (t *term) forsake(a *attempt) {
	for _, part := range a.machine.Nodes() {
		v := t.nodes[part]
		if v.fence == nil {
			continue
		}
		switch state := a.machine.State(); {
		case state == txn.Reserving || state == txn.Displacing:
			t.step(a, txn.Refused{Node: part, Reasons: []resource.Reason{{Code: resource.ReasonUnregistered, Detail: string(part) + " is fenced"}}})
		case !v.fence.dead && t.sim.bug != FencedIsDead:
		case state == txn.Committed && a.unit.attempt == a && a.unit.ending == nil:
			t.sim.evictionAsked(a.machine.ID())
			t.step(a, txn.EvictAsked{GraceSeconds: int64(evictionGrace.Seconds()), Reason: string(part) + " is lost"})
		case (state == txn.Evicting || state == txn.Ending || state == txn.Releasing) && !a.machine.FreedAt(part):
			if a.presumed == nil {
				a.presumed = map[resource.NodeID]bool{}
			}
			a.presumed[part] = true
			t.sim.stats["presumed free"]++
			t.step(a, txn.Freed{Node: part})
		}
	}
}

// stillDead are the compares of a Txn to RELEASED: the nodes that count as freed
// without their word are dead when it lands.
func (t *term) stillDead(a *attempt) []record.Compare {
	var compares []record.Compare
	for _, id := range slices.Sorted(maps.Keys(a.presumed)) {
		if t.sim.bug != EndIgnoresFence {
			compares = append(compares, record.ModRevIs(identityKey(id), t.nodes[id].fence.revision))
		}
	}
	return compares
}

// returned ends the fence of a node whose agent has registered since.
func (t *term) returned(id resource.NodeID) {
	if v := t.nodes[id]; v.fence != nil && v.registered > v.fence.revision {
		t.unfence(id)
	}
}

func (t *term) unfence(id resource.NodeID) {
	t.nodes[id].fence = nil
	t.unpresume(id)
}

// unpresume takes back that a node counts as freed, unless it is dead: it may
// have registered, and been fenced anew without a word on its death.
func (t *term) unpresume(id resource.NodeID) {
	if f := t.nodes[id].fence; f != nil && f.dead || f != nil && t.sim.bug == DeathOutlived {
		return
	}
	for _, tx := range t.attemptsOn(id) {
		if a := t.attempts[tx]; a != nil && a.presumed[id] {
			delete(a.presumed, id)
			t.sim.stats["back from the dead"]++
			t.step(a, txn.Returned{Node: id})
		}
	}
}

// recheck reads whether the nodes that an attempt presumes dead still are, then
// goes on.
func (t *term) recheck(a *attempt, then func()) {
	ids := slices.Sorted(maps.Keys(a.presumed))
	if len(ids) == 0 {
		then()
		return
	}
	id := ids[0]
	v := t.nodes[id]
	if who, e := value[identity](t.sim.store, identityKey(id)); t.sim.bug == DeathOutlived && e.value != nil && !who.fenced {
		who.fenced = true // the worst moment: another operator does it
		t.sim.store.commit(nil, []op{{identityKey(id), who}})
	}
	t.read("whether "+string(id)+" still is dead", identityKey(id), func(e entry, _ resource.Revision) {
		if v.fence != nil && e.value != nil && e.mod > v.fence.revision {
			v.fence = fenceOf(e.value.(identity), e.mod)
			if v.fence == nil {
				if v.registered < e.mod {
					v.registered = 0
				}
				v.setReady()
			}
			t.unpresume(id)
		}
		then()
	})
}

// bury keeps a terminal record until every node has told that it holds nothing
// of it.
func (t *term) bury(tx resource.TxID, unheard []resource.NodeID) {
	if len(unheard) == 0 || t.sim.bug == CollectUnheard {
		t.terminal = append(t.terminal, tx)
		return
	}
	t.unheard[tx] = map[resource.NodeID]bool{}
	for _, id := range unheard {
		t.unheard[tx][id] = true
	}
}

// heardOf takes a node's word that it is rid of a transaction.
func (t *term) heardOf(tx resource.TxID, id resource.NodeID) {
	waits := t.unheard[tx]
	if !waits[id] {
		return
	}
	if delete(waits, id); len(waits) == 0 {
		delete(t.unheard, tx)
		t.bury(tx, nil)
	}
}

// hearsNothingOf takes everything that a registered agent holds.
func (t *term) hearsNothingOf(id resource.NodeID, present map[resource.TxID]bool) {
	if !t.nodes[id].trusted() {
		return
	}
	for _, tx := range slices.Sorted(maps.Keys(t.unheard)) {
		if t.unheard[tx][id] && !present[tx] {
			t.heardOf(tx, id)
		}
	}
}
