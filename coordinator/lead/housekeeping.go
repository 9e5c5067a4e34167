package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// RequestLeaseTTL: request ids are idempotent for 24 h; those of one hour share
// a lease.
const RequestLeaseTTL = 25 * time.Hour

// collectAtOnce bounds the records of one Txn of the collection, each of which has
// up to two keys.
const collectAtOnce = 60

// housekeep runs every second: nodes that are assumed dead, gauges, expired
// requests, terminal records.
func (l *Leader) housekeep() {
	ready, suspect, unapproved := 0, 0, 0
	for _, n := range l.state.Nodes() {
		at := l.nodes[n.ID]
		l.resumeDeferredWork(at)
		if at.breaker.IsSuspect() {
			suspect++
		}
		at.setUnheard()
		l.assumeDead(at)
		l.evictHoldersOfLost(at)
		l.writeLost(at)
		l.evictUntolerating(at)
		if n.Ready && !n.Unschedulable {
			ready++
		}
		if !at.unapproved.IsZero() {
			unapproved++
		}
	}
	l.post.Measure(post.MetricNodes, float64(ready))
	l.post.Measure(post.MetricSuspect, float64(suspect))
	l.post.Measure(post.MetricUnapproved, float64(unapproved))
	l.post.Measure(post.MetricQueued, float64(l.room.Order().Len()))
	l.post.Measure(post.MetricRunning, float64(len(l.work.Attempts)))
	l.requests.Expire(post.InstantOf(l.post.Millis()).Add(-RequestLeaseTTL))
	l.post.RenewLease()
	l.compact()
	l.collect()
	l.removeFinished()
	l.writeObserved()
	l.writeUnwritten()
	l.writePartly()
	l.writeWaiting()
	l.deleteStrays()
	l.sweepFences()
	l.sampleQuotas()
	l.takeNews() // those that it wakes are not the backstop's
	l.room.Backstop(backstopCalls)
	l.audit()
}

// backstopCalls are the seconds in which each class that sleeps is tried once,
// whatever has happened.
const backstopCalls = 60

// compactEvery is how much of the store's history stays readable, at least.
const compactEvery = 5 * time.Minute

// compact forgets the history that was old at the last compaction. The
// embedded store does the same by itself; whoever is first, the other finds it
// done.
func (l *Leader) compact() {
	if l.post.Now().Sub(l.compactedAt) < compactEvery {
		return
	}
	l.compactedAt = l.post.Now()
	l.post.Add(post.Effect{Kind: post.CompactStore, Revision: l.compactRev})
}

// collect deletes terminal records that are old enough: every member has
// acknowledged a RELEASED one, and no commit of an ABORTED one is in doubt. One
// that a victim's record names stays as long as that: were it absent, the next
// leader could take the preemptor for undecided and adopt it.
func (l *Leader) collect() {
	before := l.post.Now().Add(-l.rules.RecordRetention)
	if !l.retired.hasOld(before) {
		return
	}
	named := map[resource.TxID]bool{}
	for _, a := range l.work.Attempts {
		if a.By != "" {
			named[a.By] = true // model: mutant ATTEMPT_REUSED
		}
	}
	old := l.retired.takeOld(before, named, collectAtOnce)
	if len(old) == 0 {
		return
	}
	var d post.Decision
	for _, r := range old {
		d.Ops = append(d.Ops, record.Delete(record.TxKey(r.tx)))
		if l.retired.ready[r.tx] {
			d.Ops = append(d.Ops, record.Delete(record.ReadyKey(r.tx)))
		}
	}
	d.Done = func(o txn.Outcome, _ resource.Revision, _ error) {
		l.retired.finishCollection(old)
		if o == txn.Landed {
			for _, r := range old {
				l.retired.dropReady(r.tx)
			}
			return
		}
		l.retired.putBack(old) // once more later
	}
	l.post.Submit(d)
}
