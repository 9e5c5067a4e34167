package lead

import (
	"errors"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// decision is a write and what follows from its outcome. done is called once, with
// a definite answer or Unknown.
type decision struct {
	compares       []record.Compare
	ops            []record.Op
	anyEpoch, once bool // as of Write
	done           func(txn.Outcome, resource.Revision, error)
}

// settle submits a decision that is not a transaction's, and follows it until
// its outcome is known: after an unknown one key is read, and what is there is
// this decision's work if mine says so. If it is not, the decision is sent
// again; its compares are of revisions, which never come back, so that only one
// of them can land. d.done runs in the loop, with Landed or Conflict, unless
// the term ends before.
func (l *Leader) settle(d decision, key string, mine func(value []byte, found bool) bool) {
	done := d.done
	doubt := false
	d.done = func(o txn.Outcome, rev resource.Revision, err error) {
		if doubt = doubt || o == txn.Unknown; o == txn.Landed || !doubt {
			done(o, rev, err)
			return
		}
		l.out.warn("outcome_unknown", "key", key, "outcome", o, "error", err)
		l.read(key, func(kv record.KV, found bool, revision resource.Revision) {
			switch {
			case !d.isAsBefore(key, kv) && mine(kv.Value, found):
				if found {
					revision = kv.ModRev
				}
				done(txn.Landed, revision, nil)
			case o == txn.Unknown && !errors.Is(err, ErrDeposed):
				l.submit(d)
			case err != nil:
				// Refused: the Txn without an answer may still land. After the end of the
				// office each write is answered at once: without the pause it would be sent
				// again without end until the leader stops.
				l.after(lastBackoff, func() { l.submit(d) })
			default:
				done(txn.Conflict, revision, err)
			}
		})
	}
	l.submit(d)
}

// isAsBefore reports whether a key that was read is at the revision from which the decision
// was made: then the decision has not landed, also where it writes the value that is there.
func (d *decision) isAsBefore(key string, kv record.KV) bool {
	return kv.ModRev != 0 && slices.Contains(d.compares, record.ModRevIs(key, kv.ModRev))
}

// settleFence is settle for a decision that creates a key, and that has no end
// before the key is there: a store that refuses it, e.g. for want of space, has
// decided nothing.
func (l *Leader) settleFence(d decision, key string) {
	fence := d
	fence.done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Landed && err != nil {
			l.after(lastBackoff, func() { l.settleFence(d, key) })
			return
		}
		d.done(o, rev, err)
	}
	l.settle(fence, key, func(_ []byte, found bool) bool { return found })
}

// creating names what a decision creates, and how it is known again.
type creating struct {
	what string           // for the log
	uid  resource.UnitUID // of what is created
	key  string
	mine func(value []byte) bool
}

// creating is the creation of a unit.
func (u *unit) creating() creating {
	key := u.record.Path().Key()
	return creating{u.path, u.record.UID, key, func(value []byte) bool {
		rec, err := record.Decode[record.Unit](key, value)
		return err == nil && rec.UID == u.record.UID
	}}
}

// settleCreation is settle for a decision that compares with "absent", which
// may come back: were it only sent again, the one without an answer could land
// much later, when what was created has been deleted. So it carries a
// transaction's identifier that is nobody else's, and is fenced like a
// transaction whose commit has no answer.
func (l *Leader) settleCreation(c creating, d decision) {
	guard := l.nextTx(c.uid)
	sent := d
	sent.compares = append(slices.Clip(d.compares), record.Absent(record.TxKey(guard))) // model: mutant CREATE_WITHOUT_GUARD
	sent.done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Unknown {
			d.done(o, rev, err)
			return
		}
		l.out.warn("outcome_unknown", "creating", c.what, "error", err)
		l.fence(guard, c, func() { l.reread(c, d) }) // model: mutant READ_BEFORE_FENCE
	}
	l.submit(sent)
}

// fence makes sure that nothing which compares with the absence of guard lands
// any more. Its record stays for the rest of the epoch.
func (l *Leader) fence(guard resource.TxID, c creating, then func()) {
	key := record.TxKey(guard)
	rec := record.Tx{State: grant.RecordAborted, Epoch: l.epoch, UnitUID: c.uid, Reason: "a creation had no answer", Ended: l.stamp()}
	l.settleFence(decision{
		compares: []record.Compare{record.Absent(key)}, ops: []record.Op{record.Put(key, record.MustEncode(rec))},
		done: func(txn.Outcome, resource.Revision, error) { then() },
	}, key)
}

// reread decides a creation that was fenced: it has landed, or never will and
// is sent anew.
func (l *Leader) reread(c creating, d decision) {
	l.read(c.key, func(kv record.KV, found bool, _ resource.Revision) {
		if found && c.mine(kv.Value) {
			d.done(txn.Landed, kv.ModRev, nil)
			return
		}
		l.settleCreation(c, d)
	})
}
