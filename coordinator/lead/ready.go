package lead

import (
	"bytes"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/vacancy"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file writes that all members of a unit are held, so that every coordinator
// shows the unit as Ready; and which members of a unit that is ending are held no more.

// readyRate bounds the writes for units that an earlier leader has placed: after an
// election all their agents report at once. A unit that this leader has placed is
// written at once.
var readyRate = pace.Rate{Every: 5 * time.Millisecond, Burst: 100}

// confirmHeld notes that an agent holds its members. Once all do, the store gets to
// know: a unit that was READY before an election stays so.
func (l *Leader) confirmHeld(a *work.Attempt, node resource.NodeID) {
	if a.Held[node] {
		l.startWork(a, node) // the agent may have missed that
		return
	}
	a.AddHeld(node)
	l.startWork(a, a.Machine.Nodes()...)
	if len(a.Held) < len(a.Machine.Nodes()) || a.Ready.Revision != 0 {
		return
	}
	if a.Begun.IsZero() && !l.readyPace.Take(l.post.Now(), readyRate) {
		l.unwritten = append(l.unwritten, a.Machine.ID())
		return
	}
	l.writeReady(a)
}

// writeReady writes the key, unless the unit is on its way out. It compares the
// record, so that nothing lands beside another state of the record.
func (l *Leader) writeReady(a *work.Attempt) {
	if a.Machine.State() != txn.Committed || a.Ready.Revision != 0 {
		return
	}
	l.putReady(a, l.partly.First(a.Machine.ID(), l.post.Millis()))
}

// putReady writes the key beside the present state of the record.
func (l *Leader) putReady(a *work.Attempt, r record.Ready) {
	tx := a.Machine.ID()
	l.retired.keepReady(tx)
	key := record.ReadyKey(tx)
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.TxKey(tx), a.Machine.Revision())},
		Ops:      []record.Op{record.MustPutRecord(key, r)},
		Done: func(o txn.Outcome, rev resource.Revision, err error) {
			l.partly.Answered(tx, r)
			switch {
			case o == txn.Landed && rev > a.Ready.Revision:
				first := a.Ready.Revision == 0
				a.SetReady(a.Ready.Written(r, rev))
				l.noteStarted(a)
				l.notify(a.Unit)
				if !first && l.work.Attempts[tx] == a {
					l.noteIdle(a)
				}
				if first && l.work.Attempts[tx] == a {
					l.limitTime(a)
					l.noteSignaled(a)
				}
			case l.work.Attempts[tx] == a && len(r.Freed) == 0 && err != nil: // refused, e.g. for want of space
				l.unwritten = append(l.unwritten, tx)
			}
		},
	}, key, func(value []byte, found bool) bool { return found && bytes.Equal(value, record.MustEncode(r)) })
}

// writePartly writes which nodes have freed their members for a second.
func (l *Leader) writePartly() {
	for _, tx := range l.partly.Due(l.post.Now()) {
		a, freed := l.work.Attempts[tx], l.partly.Of(tx)
		switch {
		case a == nil:
			l.partly.Forget(tx)
		case !a.Ready.Lacks(freed):
		case !l.readyPace.Take(l.post.Now(), readyRate):
			return
		default:
			l.partly.Ask(tx, l.post.Now())
			l.putReady(a, l.partly.With(tx, a.Ready, freed))
		}
	}
}

// carryPartly adds the keys of other transactions to the commit of an attempt with their freed
// devices: a later leader would learn of the freeing too late.
func (l *Leader) carryPartly(a *work.Attempt, d *post.Decision) []vacancy.Write {
	nodes := a.Machine.Nodes()
	writes := l.partly.Ahead(nodes, l.post.Now(), func(tx resource.TxID) (vacancy.Key, []resource.NodeID, bool) {
		other := l.work.Attempts[tx]
		if other != nil && slices.ContainsFunc(nodes, other.Machine.Has) && !slices.Contains(a.Mates(), l.work.Attempts[other.Machine.By()]) { // no victim
			return other.Ready, other.Machine.Nodes(), true
		}
		return vacancy.Key{}, nil, false
	})
	for _, w := range writes {
		l.retired.keepReady(w.Tx)
		d.Also(nil, record.MustPutRecord(record.ReadyKey(w.Tx), w.Ready))
	}
	return writes
}

// writeUnwritten writes what the rate, or the store, did not let through before.
func (l *Leader) writeUnwritten() {
	for len(l.unwritten) > 0 && l.readyPace.Take(l.post.Now(), readyRate) {
		tx := l.unwritten[0]
		l.unwritten = l.unwritten[1:]
		if a := l.work.Attempts[tx]; a != nil {
			l.writeReady(a)
		}
	}
}

// loadReady takes over the keys of earlier leaders. Keys without a record go.
func (l *Leader) loadReady(kvs []record.KV) error {
	recorded := l.retired.all()
	for _, kv := range kvs {
		tx, err := record.ParseReadyKey(kv.Key)
		if err != nil {
			return err
		}
		r, err := record.Decode[record.Ready](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		l.retired.keepReady(tx)
		if a := l.work.Attempts[tx]; a != nil {
			a.SetReady(vacancy.Key{Ready: r, Revision: kv.ModRev})
			l.partly.Restore(tx, r.Freed)
		} else if !recorded[tx] {
			l.strays = append(l.strays, tx)
		}
	}
	return nil
}

// deleteStrays deletes keys that are beside no record.
func (l *Leader) deleteStrays() {
	if len(l.strays) == 0 {
		return
	}
	some := l.strays[:min(collectAtOnce, len(l.strays))]
	l.strays = l.strays[len(some):]
	var d post.Decision
	for _, tx := range some {
		d.Ops = append(d.Ops, record.Delete(record.ReadyKey(tx)))
	}
	d.Done = func(o txn.Outcome, _ resource.Revision, _ error) {
		if o != txn.Landed { // once more later
			l.strays = append(l.strays, some...)
			return
		}
		for _, tx := range some {
			l.retired.dropReady(tx)
		}
	}
	l.post.Submit(d)
}
