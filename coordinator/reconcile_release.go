package coordinator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// endWhatCameBack releases the units that the agent does not hold: they had
// ended after the backup was made. It returns once that is durable, so that the
// agent's next registration finds it.
func (r *reconciliation) endWhatCameBack(ctx context.Context) error {
	asked := txn.ReleaseAsked{GraceSeconds: int64(r.grace / time.Second), Reason: storeRestored}
	for _, a := range r.back {
		u := a.unit
		err := r.await(ctx, func(done func(error)) {
			if u.job == nil {
				r.l.end(u, asked)
				done(nil)
				return
			}
			r.l.cancelJob(u.job, asked, false, func(status *api.Status) {
				if status != nil {
					done(status)
					return
				}
				done(nil)
			})
		})
		if err != nil {
			return err
		}
		if err := r.awaitReleasing(ctx, a); err != nil {
			return err
		}
		r.ended = append(r.ended, a.machine.ID())
	}
	return nil
}

func (r *reconciliation) awaitReleasing(ctx context.Context, a *attempt) error {
	for {
		var changed <-chan struct{}
		durable := false
		if err := r.l.do(ctx, func() { changed, durable = r.l.changes(a.unit.path), a.machine.State() >= txn.Releasing }); err != nil || durable {
			return err
		}
		select {
		case <-changed:
		case <-r.l.ended:
			return errDeposed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// disown decides that a grant without a record never gets one, on no node.
// Those that hold members beside this one find it when they are reconciled; what
// is not in quarantine is told at once.
func (r *reconciliation) disown(g *lost, done func(error)) {
	holders := slices.Sorted(maps.Keys(g.holders))
	tell := func() {
		for _, id := range holders {
			if id != r.id {
				r.l.send(id, grant.Release{Tx: g.Tx, Epoch: r.l.epoch, Grace: r.grace, Reason: storeRestored})
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
	rec := record.Tx{State: grant.RecordAborted, Epoch: epoch, UnitUID: g.Unit, Reason: storeRestored, Unheard: holders, Ended: r.l.stamp()}
	r.l.settle(decision{
		compares: []record.Compare{record.Absent(key)}, ops: []record.Op{record.Put(key, record.MustEncode(rec))},
		done: func(o txn.Outcome, _ resource.Revision, err error) {
			if o != txn.Landed {
				done(api.Errorf(409, "transaction %s was decided while node %s was reconciled (%v); ask again", g.Tx, r.id, err))
				return
			}
			r.l.bury(g.Tx, holders)
			r.l.out.warn("grant_disowned", "node", r.id, "tx", g.Tx, "unit", g.Name)
			tell()
		},
	}, key, func(value []byte, found bool) bool {
		written, err := record.Decode[record.Tx](key, value)
		return found && err == nil && written.State == grant.RecordAborted && written.Reason == storeRestored
	})
}

// finish tells the agent, and waits until it has registered.
func (r *reconciliation) finish(ctx context.Context, adopted, released []resource.TxID) error {
	_, _, revision, err := r.l.store.Get(ctx, record.NodeIdentityKey(r.id))
	if err != nil {
		return err
	}
	var n *node
	sent := false
	if err := r.l.do(ctx, func() {
		n = r.l.nodes[r.id]
		if sent = n.quarantine == "" || n.connected; n.quarantine != "" && sent {
			r.l.out.command(r.id, grant.Reconcile{Epoch: r.l.epoch, Revision: revision, Adopted: adopted, Released: released, Grace: r.grace})
		}
	}); err != nil {
		return err
	}
	if !sent {
		return api.Errorf(409, "the agent of node %s was disconnected before it was told; ask again: what was adopted is not adopted twice", r.id)
	}
	r.l.out.warn("node_reconciled", "node", r.id, "mode", r.options.Mode, "adopted", adopted, "released", released, "ended", r.ended)
	ctx, cancel := context.WithTimeout(ctx, occupancyPatience)
	defer cancel()
	err = r.l.awaitNode(ctx, n, func() bool { return n.quarantine == "" && n.revision != 0 })
	if errors.Is(err, context.DeadlineExceeded) {
		return api.Errorf(409, "the agent of node %s has not registered since it was told, if it was; ask again: what was adopted is not adopted twice", r.id)
	}
	return err
}
