package sim

import (
	"slices"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/housekeeping.go: terminal records are deleted.

// collect deletes a terminal record, unless a victim's names it.
func (t *term) collect(i int) {
	tx := t.terminal[i]
	if t.named(tx) && t.sim.bug != CollectNamed {
		return
	}
	t.terminal = slices.Delete(t.terminal, i, i+1)
	t.submit(decision{what: "collection of " + short(tx), ops: []op{{txKey(tx), nil}}, done: func(o txn.Outcome, _ resource.Revision) {
		switch {
		case o != txn.Landed:
			t.terminal = append(t.terminal, tx)
		case t.sim.bug == CollectNamed && t.named(tx): // the worst moment: the next leader takes it for undecided
			t.sim.expire(t.key)
			t.sim.depose(t, "its process is killed")
		}
	}})
}

// named reports whether the record of a victim names a preemptor.
func (t *term) named(tx resource.TxID) bool {
	for _, a := range t.attempts {
		if a.by == tx {
			return true
		}
	}
	return false
}
