package sim

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
)

// This file is I13: at rest everything agrees, also with what the leader knows.

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
	s.checkReaders(s.terms[0])
	s.checkRules()
	s.checkLostDevices()
}

// checkKnowledge compares what the leader knows with the store and the ledgers.
func (s *Sim) checkKnowledge(t *term) {
	for tx, nodes := range t.Unheard() {
		s.fail("I13", "the record of %s is kept until %v have told of themselves", short(tx), slices.Sorted(maps.Keys(nodes)))
	}
	for _, kv := range s.store.all(record.UnitsPrefix) {
		u := s.store.units.of(kv)
		s.checkUnit(t, u.Path().String(), u.Phase)
	}
	for _, h := range s.hosts {
		if !h.lying() {
			s.checkFree(t.Offer(h.node), h)
		}
	}
}

// checkUnit verifies that a unit runs, or waits with a reason.
func (s *Sim) checkUnit(t *term, path, stored string) {
	switch phase, known := t.Phase(path); {
	case !known:
		s.fail("I13", "the leader does not know %s", path)
	case stored != string(phase):
		s.fail("I13", "%s is %s, the leader says %s", path, stored, phase)
	case stored == pending:
		s.stats["waiting at the end"]++
	default:
		s.stats["running at the end"]++
	}
}

// checkFree compares what the leader takes for free with an agent's ledger.
func (s *Sim) checkFree(v *cluster.Node, h *host) {
	l := h.agent.l.Snapshot()
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
