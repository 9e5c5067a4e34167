package lead

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// returned is a record that came back: its unit had ended after the backup was
// made.
type returned struct {
	tx   resource.TxID
	path string // of the unit
	unit resource.UnitUID
	// state is that of the machine when the record was judged. outcome is the effect
	// on the unit, for the report.
	state   txn.State
	outcome string
}

// endReturned releases the next unit that the agent does not hold, and waits
// until that is durable, so that the agent's next registration finds it.
func (r *reconciliation) endReturned() bool {
	if r.next == len(r.back) {
		return r.enter(deciding)
	}
	b := r.back[r.next]
	switch {
	case !r.begun && !r.l.isReleasing(b.tx):
		r.begun = true
		r.askToEnd(b)
		return true
	case r.l.isReleasing(b.tx): // a release that was durable before has settled what becomes of the unit
		r.ended = append(r.ended, b.tx)
		r.begun = false
		r.next++
		return true
	}
	return false
}

// askToEnd asks for the end of a unit whose record came back, unless the unit is
// gone by itself.
func (r *reconciliation) askToEnd(b returned) {
	u := r.l.work.Units[b.path]
	if u == nil || u.Record.UID != b.unit {
		return
	}
	if a := u.Attempt; a != nil && a.LeavesEvicted() { // else the unit would not wait again
		r.l.step(a, txn.ReleaseAsked{GraceSeconds: a.Notice.GraceSeconds, Reason: a.Notice.Reason, Evicted: true})
		return
	}
	asked := txn.ReleaseAsked{GraceSeconds: int64(r.grace / time.Second), Reason: storeRestored}
	if u.Job == nil {
		r.l.end(u, asked)
		return
	}
	r.await(func(done func(*api.Status)) { r.l.cancelJob(u.Job, cancellationOf(asked), done) })
}

// outcomeWhereBack says what the reconciliation does to a unit whose record came back.
func outcomeWhereBack(a *work.Attempt) string {
	switch {
	case a.Machine.State() >= txn.Releasing:
		return "its release goes on"
	case a.LeavesEvicted():
		return "its eviction goes on"
	}
	return "ended: " + storeRestored
}

// isReleasing reports whether the release of a transaction that was committed is
// durable.
func (l *Leader) isReleasing(tx resource.TxID) bool {
	a := l.work.Attempts[tx]
	return a == nil || a.Machine.State() >= txn.Releasing
}

// disown decides that a grant without a record never gets one, on no node.
// Those that hold members beside this one find it when they are reconciled; what
// is not in quarantine is told at once.
func (r *reconciliation) disown(g *lost, done func(*api.Status)) {
	holders := slices.Sorted(maps.Keys(g.holders))
	tell := func() {
		for _, id := range holders {
			if id != r.id {
				r.l.send(id, grant.Release{Tx: g.Tx, Epoch: r.l.post.Epoch(), Grace: r.grace, Reason: storeRestored})
			}
		}
		done(nil)
	}
	if g.record != grant.RecordAbsent {
		tell()
		return
	}
	// model: mutant DISOWN_WITHOUT_RECORD
	key := record.TxKey(g.Tx)
	_, epoch, _, _ := g.Tx.Attempt() // one that cannot be read is of no epoch
	rec := record.Tx{State: grant.RecordAborted, Epoch: epoch, UnitUID: g.Unit, Reason: storeRestored, Unheard: holders, Ended: r.l.post.Stamp()}
	r.l.post.Settle(post.Decision{
		Compares: []record.Compare{record.Absent(key)}, Ops: []record.Op{record.Put(key, record.MustEncode(rec))},
		Done: func(o txn.Outcome, _ resource.Revision, err error) {
			if o != txn.Landed {
				done(api.Errorf(409, "transaction %s was decided while node %s was reconciled (%v); ask again", g.Tx, r.id, err))
				return
			}
			r.l.retired.add(g.Tx, holders, r.l.post.Now())
			r.l.post.Warn("grant_disowned", "node", r.id, "tx", g.Tx, "unit", g.Name)
			tell()
		},
	}, key, post.Wrote(key, func(written record.Tx) bool {
		return written.State == grant.RecordAborted && written.Reason == storeRestored
	}))
}

// tell reads which revision the store has now, then tells the agent.
func (r *reconciliation) tell() bool {
	if !r.begun {
		r.begun = true
		r.read(record.NodeIdentityKey(r.id), func(_ record.KV, _ bool, revision resource.Revision) { r.revision = revision })
		return true
	}
	n := r.l.nodes[r.id]
	if n.quarantine != "" {
		if !n.connected {
			return r.refuse(api.Errorf(409, "the agent of node %s was disconnected before it was told; ask again: what was adopted is not adopted twice", r.id).Because(api.FailedPrecondition))
		}
		n.clearRegistration()
		r.l.post.Command(r.id, grant.Reconcile{Epoch: r.l.post.Epoch(), Revision: r.revision, Adopted: r.adopted, Released: r.released, Grace: r.grace})
	}
	r.l.post.Warn("node_reconciled", "node", r.id, "mode", r.options.Mode, "adopted", r.adopted, "released", r.released, "ended", r.ended)
	r.bePatient()
	return r.enter(registering)
}

// awaitRegistration waits until the agent has registered.
func (r *reconciliation) awaitRegistration() bool {
	switch n := r.l.nodes[r.id]; {
	case n.quarantine == "" && n.revision != 0:
		return r.end(r.report, nil)
	case r.late:
		return r.refuse(api.Errorf(409, "the agent of node %s has not registered since it was told, if it was; ask again: what was adopted is not adopted twice", r.id).Because(api.FailedPrecondition))
	}
	return false
}
