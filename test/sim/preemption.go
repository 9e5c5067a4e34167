package sim

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file disturbs preemptions that are under way: such moments are short, and
// much can go wrong in them.

// leavesFor reports whether a victim is leaving for a transaction, as the store
// has it.
func (s *Sim) leavesFor(by resource.TxID) bool {
	return slices.ContainsFunc(s.store.all(record.TxPrefix), func(kv record.KV) bool {
		r := s.store.txs.of(kv)
		return r.State == grant.RecordEvicting && r.By == by
	})
}

// isPreempting reports whether a victim is leaving for an undecided transaction.
func (s *Sim) isPreempting() bool {
	return slices.ContainsFunc(s.store.all(record.TxPrefix), func(kv record.KV) bool {
		r := s.store.txs.of(kv)
		return r.State == grant.RecordEvicting && r.By != "" && s.store.keys[record.TxKey(r.By)].ModRev == 0
	})
}

// actDisturb disturbs a preemption, if one is under way: another leader is
// elected, or the present leader's alarm goes off, so that it gives up.
func (s *Sim) actDisturb() bool {
	if !s.isPreempting() {
		return false
	}
	return s.withTerm(func(t *term) bool { return t.epoch == s.elected() }, func(t *term) {
		if !t.wakeAt.IsZero() && s.rng.IntN(2) == 0 {
			t.ring()
			return
		}
		s.stats["elections amid a preemption"]++
		s.expire(t.key)
		if s.rng.IntN(4) > 0 {
			s.depose(t, "it was deposed amid a preemption")
		}
	})
}
