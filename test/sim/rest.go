package sim

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// This file is I13: at rest everything agrees, also with what the leader knows.

// knowledge is what the checks at rest read of whoever leads.
type knowledge interface {
	// phaseOf is a unit's phase; not known where the leader has no such unit.
	phaseOf(unit string) (phase string, known bool)
	// hasRoomFor reports whether a unit that waits could be admitted and placed.
	hasRoomFor(unit string) bool
	// freeOn is what the leader takes for free on a node.
	freeOn(id resource.NodeID) *place.Node
	// awaited are the terminal records that are kept until nodes have told of
	// themselves, with these nodes.
	awaited() map[resource.TxID]map[resource.NodeID]bool
}

// checkI13 verifies that everything agrees.
func (s *Sim) checkI13() {
	for _, h := range s.hosts {
		s.show(h, nil)
	}
	s.violated(s.checker.Quiet())
	if len(s.terms) != 1 {
		s.fail("I13", "%d leaders", len(s.terms))
		return
	}
	s.checkKnowledge(s.terms[0])
}

// checkKnowledge compares what the leader knows with the store and the ledgers.
func (s *Sim) checkKnowledge(k knowledge) {
	awaited := k.awaited()
	for _, tx := range slices.Sorted(maps.Keys(awaited)) {
		s.fail("I13", "the record of %s is kept until %v have told of themselves", short(tx), slices.Sorted(maps.Keys(awaited[tx])))
	}
	for _, key := range s.store.under(unitKey("")) {
		r, _ := value[unitRecord](s.store, key)
		s.checkUnit(k, s.clients[r.client].name, r.phase)
	}
	for _, h := range s.hosts {
		if !h.lying() {
			s.checkFree(k, h)
		}
	}
}

// checkUnit verifies that a unit runs, or waits with a reason.
func (s *Sim) checkUnit(k knowledge, name, stored string) {
	switch phase, known := k.phaseOf(name); {
	case !known:
		s.fail("I13", "the leader does not know %s", name)
	case stored != phase:
		s.fail("I13", "%s is %s, the leader says %s", name, stored, phase)
	case stored == pending && k.hasRoomFor(name):
		s.fail("I13", "%s waits although there is room", name)
	case stored == pending:
		s.stats["waiting at the end"]++
	default:
		s.stats["running at the end"]++
	}
}

// checkFree compares what the leader takes for free with an agent's ledger.
func (s *Sim) checkFree(k knowledge, h *host) {
	v, l := k.freeOn(h.node), h.agent.l.Snapshot()
	for i, d := range l.GPUs {
		healthy := d.Health == devices.OK || d.Health.Allocatable()
		if v.Free.GPU[i] != l.Free.GPU[i] || healthy != (v.Free.Unhealthy&(1<<i) == 0) {
			s.fail("I13", "%s has %d milli of %s free, the leader's view %d", h.node, l.Free.GPU[i], d.UUID, v.Free.GPU[i])
		}
	}
	if v.Unschedulable != l.Cordoned {
		s.fail("I13", "%s is cordoned: %t, for the leader: %t", h.node, l.Cordoned, v.Unschedulable)
	}
}

func (t *term) phaseOf(name string) (string, bool) {
	u := t.units[name]
	if u == nil {
		return "", false
	}
	return u.record.phase, true
}

func (t *term) hasRoomFor(name string) bool {
	u := t.units[name]
	if u.attempt != nil || u.writing || !t.admit(u) {
		return false
	}
	must(t.trees.UndoAllocate(treeName, u.client.name))
	plan, ok := place.Place(t.order, u.client.demand)
	if ok {
		place.Undo(plan)
	}
	if !ok && t.mayEvict(u) {
		_, ok = preempt.Find(t.order, u.client.demand, u.client.priority, t.preemptible(u))
	}
	return ok
}

func (t *term) freeOn(id resource.NodeID) *place.Node { return &t.nodes[id].view }

func (t *term) awaited() map[resource.TxID]map[resource.NodeID]bool { return t.unheard }
