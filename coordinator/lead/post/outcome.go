package post

import (
	"errors"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Decision is a write, and the code for the outcome. Done is called once, with
// a definite answer or Unknown.
type Decision struct {
	Compares       []record.Compare
	Ops            []record.Op
	AnyEpoch, Once bool // as of Write
	Done           func(txn.Outcome, resource.Revision, error)
}

// Also adds conditions and changes to a decision.
func (d *Decision) Also(compares []record.Compare, ops ...record.Op) {
	d.Compares, d.Ops = append(d.Compares, compares...), append(d.Ops, ops...)
}

// Settle submits a decision outside of transactions, and follows the decision until
// the outcome is known: after an unknown outcome a key is read, whose value is
// this decision's work if mine reports true. Otherwise the decision is sent
// again; the compares are of revisions, which never come back, so only one of the two
// can land. d.Done runs in the loop, with Landed or Conflict, unless
// the term ends before.
func (p *Post) Settle(d Decision, key string, mine func(value []byte, found bool) bool) {
	done := d.Done
	doubt := false
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if doubt = doubt || o == txn.Unknown; o == txn.Landed || !doubt {
			done(o, rev, err)
			return
		}
		p.Warn("outcome_unknown", "key", key, "outcome", o, "error", err)
		p.Read(key, func(kv record.KV, found bool, revision resource.Revision) {
			switch {
			case !d.isAsBefore(key, kv) && mine(kv.Value, found):
				if found {
					revision = kv.ModRev
				}
				done(txn.Landed, revision, nil)
			case o == txn.Unknown && !errors.Is(err, ErrDeposed):
				p.Submit(d)
			case err != nil:
				// Refused: the Txn without an answer may still land. After the end of the
				// office each write is answered at once: without the pause the leader would
				// send without end until it stops.
				p.After(retryAfter, func() { p.Submit(d) })
			default:
				done(txn.Conflict, revision, err)
			}
		})
	}
	p.Submit(d)
}

// Wrote recognises the work of a decision by the value of a key.
func Wrote[R record.Type](key string, same func(written R) bool) func(value []byte, found bool) bool {
	return func(value []byte, found bool) bool {
		written, err := record.Decode[R](key, value)
		return found && err == nil && same(written)
	}
}

// Removed recognises the work of a decision that deletes a key.
func Removed(_ []byte, found bool) bool { return !found }

// Change is the change of a record, for Settle: at is the store's revision of the record
// before, and same recognises the change.
func Change[R record.Type](key string, at resource.Revision, changed R, done func(txn.Outcome, resource.Revision, error), same func(written R) bool) (d Decision, of string, mine func([]byte, bool) bool) {
	return Decision{
		Compares: []record.Compare{record.ModRevIs(key, at)},
		Ops:      []record.Op{record.Put(key, record.MustEncode(changed))},
		Done:     done,
	}, key, Wrote(key, same)
}

// isAsBefore reports whether a key that was read is at the revision from which the decision
// was made: then the decision has not landed, also where the key has the value already.
func (d *Decision) isAsBefore(key string, kv record.KV) bool {
	return kv.ModRev != 0 && slices.Contains(d.Compares, record.ModRevIs(key, kv.ModRev))
}

// SettleFence is Settle for a decision that creates a key, and that has no end
// before the key is there: a store that refuses the write, e.g. for want of space, leaves
// all undecided.
func (p *Post) SettleFence(d Decision, key string) {
	fence := d
	fence.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Landed && err != nil {
			p.After(retryAfter, func() { p.SettleFence(d, key) })
			return
		}
		d.Done(o, rev, err)
	}
	p.Settle(fence, key, func(_ []byte, found bool) bool { return found })
}

// Creating names the object of a creation, and recognises the object in the store.
type Creating struct {
	What string           // for the log
	UID  resource.UnitUID // of the object
	Key  string
	Mine func(value []byte) bool
}

// SettleCreation is Settle for a decision that compares with "absent", which
// may come back: were the decision only sent again, the first Txn could land
// much later, after the object was deleted. So the decision carries a
// transaction's identifier of its own, and is fenced like a
// transaction whose commit has no answer.
func (p *Post) SettleCreation(c Creating, d Decision) {
	guard := p.NextTx(c.UID)
	sent := d
	sent.Compares = append(slices.Clip(d.Compares), record.Absent(record.TxKey(guard))) // model: mutant CREATE_WITHOUT_GUARD
	reread := func() {                                                                  // it has landed, or never will and is sent anew
		p.Read(c.Key, func(kv record.KV, found bool, _ resource.Revision) {
			if found && c.Mine(kv.Value) {
				d.Done(txn.Landed, kv.ModRev, nil)
				return
			}
			p.SettleCreation(c, d)
		})
	}
	sent.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Unknown {
			d.Done(o, rev, err)
			return
		}
		p.Warn("outcome_unknown", "creating", c.What, "error", err)
		p.fence(guard, c, reread) // model: mutant READ_BEFORE_FENCE
	}
	p.Submit(sent)
}

// fence keeps each Txn that compares with the absence of guard from landing
// later. The record of the fence stays for the rest of the epoch.
func (p *Post) fence(guard resource.TxID, c Creating, then func()) {
	key := record.TxKey(guard)
	rec := record.Tx{State: grant.RecordAborted, Epoch: p.epoch, UnitUID: c.UID, Reason: "a creation had no answer", Ended: p.Stamp()}
	p.SettleFence(Decision{
		Compares: []record.Compare{record.Absent(key)}, Ops: []record.Op{record.Put(key, record.MustEncode(rec))},
		Done: func(txn.Outcome, resource.Revision, error) { then() },
	}, key)
}
