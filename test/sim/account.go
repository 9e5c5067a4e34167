package sim

import (
	"strings"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file reads the account that each term keeps of what it decides, with the
// checker of that coordinator's log.

// Append implements lead.DecisionLog.
func (t *term) Append(r decisions.Record) (again bool) {
	s := t.sim
	log := s.logs[t.coordinator.name]
	if log == nil {
		log = decisions.NewChecker()
		s.logs[t.coordinator.name] = log
	}
	known := len(log.Report().Violations)
	log.Record(r)
	for _, v := range log.Report().Violations[known:] {
		if v.Rule == decisions.RuleNominated && (t.renumbered || s.isVoid(v) || s.ofLiar(v)) {
			continue
		}
		s.fail("I7", "%s: the decision log: %s", t.name, v)
	}
	switch {
	case r.Place != nil:
		s.stats["placements verified"]++
		t.placed(r.Place)
	case r.Commit != nil:
		s.checkAcknowledged(r.Commit.Tx)
	}
	return false
}

// placed notes that an attempt is charged from now on, under the limit of its
// namespace as the leader knows it.
func (t *term) placed(p *decisions.Place) {
	path, err := record.ParseUnitPath(p.Unit)
	must(err)
	limit, limited := t.limitNow[path.Namespace]
	if !limited { // of a unit that was adopted without the name of its namespace
		limit = unbounded
	}
	t.sim.admitted(p.Tx, limit)
	t.began[p.Tx] = true
}

// isVoid reports whether a device was nominated to a transaction that is ABORTED
// by then: its agents have given it up, and its leader has not heard of that.
func (s *Sim) isVoid(v decisions.Violation) bool {
	tx := v.Detail[strings.LastIndexByte(v.Detail, ' ')+1:]
	return s.checker.LastState(resource.TxID(tx)) == grant.RecordAborted
}

// ofLiar reports whether a breach of the decision log is about a device of the
// liar's own host.
func (s *Sim) ofLiar(v decisions.Violation) bool {
	return s.liar.host != nil && strings.Contains(v.Detail, " of "+string(s.liar.host.node)+",")
}
