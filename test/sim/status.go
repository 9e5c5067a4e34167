package sim

import (
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// This file is about writes that only readers need (ADR 33). No decision rests on
// them, so they land at once and take no step of a run: the same seed meets the same
// faults with them and without. What becomes of a late one is tested with
// coordinator/lead.

// seatsPrefix is that of the keys which say where quota trees count units.
var seatsPrefix = record.SeatsKey("")

// isStatus reports whether a write is only for readers.
func isStatus(w post.Write) bool {
	return len(w.Ops) > 0 && !slices.ContainsFunc(w.Ops, func(o record.Op) bool {
		written := strings.HasPrefix(o.Key, record.OrderPrefix) || strings.HasPrefix(o.Key, record.NodesPrefix) && strings.HasSuffix(o.Key, "/observed")
		forReaders := strings.HasPrefix(o.Key, record.ReadyPrefix) || strings.HasPrefix(o.Key, seatsPrefix)
		return !forReaders && (o.Delete || !written)
	})
}

// landStatus lands the writes of status, and answers them.
func (t *term) landStatus() {
	for len(t.status) > 0 && !t.ended {
		e := t.status[0]
		t.status = t.status[1:]
		in := lead.WriteAnswer{Token: e.Token, Outcome: txn.Conflict}
		if t.sim.store.commit(append([]record.Compare{t.coordinator.held()}, e.Write.Compares...), e.Write.Ops) {
			in.Outcome, in.Revision = txn.Landed, t.sim.store.rev
		}
		t.sim.stats["writes of status"]++
		t.apply(in)
	}
}
