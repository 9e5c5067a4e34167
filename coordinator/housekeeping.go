package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// requestLeaseTTL: request ids are idempotent for 24 h; those of one hour share
// a lease.
const requestLeaseTTL = 25 * time.Hour

// collectAtOnce bounds one Txn of the collection.
const collectAtOnce = 64

// prepare writes what a new term needs before it serves: the lease for this
// hour's request ids, and the configured limits.
func (l *term) prepare(ctx context.Context) error {
	lease, err := l.store.Grant(ctx, requestLeaseTTL)
	if err != nil {
		return fmt.Errorf("grant the request lease: %w", err)
	}
	l.apply(granted{lease.ID})
	return l.prepareQuotas(ctx)
}

// prepareQuotas writes the quotas of the configuration. It runs before the loop.
func (t *term) prepareQuotas(ctx context.Context) error {
	ops := t.configOps(time.Now())
	for part := range slices.Chunk(ops, t.store.MaxTxnOps()) {
		result, err := t.store.Txn(ctx, record.Txn{If: []record.Compare{t.office}, Then: part})
		if err != nil {
			return fmt.Errorf("write the limits of the namespaces: %w", err)
		}
		if !result.Succeeded {
			return fmt.Errorf("write the limits of the namespaces: another leader was elected")
		}
		t.apply(configWritten{len(part), result.Revision})
	}
	if len(ops) == 0 {
		t.apply(configWritten{})
	}
	return nil
}

// housekeep runs every second: nodes that are assumed dead, gauges, expired
// requests, terminal records.
func (l *leader) housekeep() {
	ready, suspect, unapproved := 0, 0, 0
	for _, n := range l.order {
		at := l.nodes[n.ID]
		l.mend(at)
		if at.breaker.trips > 0 {
			suspect++
		}
		at.setUnheard()
		l.assumeDead(at)
		if n.Ready && !n.Unschedulable {
			ready++
		}
		if !at.unapproved.IsZero() {
			unapproved++
		}
	}
	l.out.measure(metricNodes, float64(ready))
	l.out.measure(metricSuspect, float64(suspect))
	l.out.measure(metricUnapproved, float64(unapproved))
	l.out.measure(metricQueued, float64(l.queue.Len()))
	l.out.measure(metricRunning, float64(len(l.attempts)))
	l.requests.expire(l.now.Add(-requestLeaseTTL))
	if l.now.Sub(l.leasedAt) > time.Hour {
		l.leasedAt = l.now
		l.out.add(effect{kind: grantLease})
	}
	l.compact()
	l.collect()
	l.sweepFences()
	l.sampleQuotas()
	l.audit()
}

// compactEvery is how much of the store's history stays readable, at least.
const compactEvery = 5 * time.Minute

// compact forgets the history that was old at the last compaction. The
// embedded store does the same by itself; whoever is first, the other finds it
// done.
func (l *leader) compact() {
	if l.now.Sub(l.compactedAt) < compactEvery {
		return
	}
	l.compactedAt = l.now
	l.out.add(effect{kind: compactStore, revision: l.compactRev})
}

// collect deletes terminal records that are old enough: every member has
// acknowledged a RELEASED one, and no commit of an ABORTED one is in doubt. One
// that a victim's record names stays as long as that: were it absent, the next
// leader could take the preemptor for undecided and adopt it.
func (l *leader) collect() {
	named := map[resource.TxID]bool{}
	for _, a := range l.attempts {
		named[a.by] = true // model: mutant ATTEMPT_REUSED
	}
	var d decision
	var rest []terminalRecord
	l.terminal = slices.DeleteFunc(l.terminal, func(r terminalRecord) bool {
		if len(rest) == collectAtOnce || named[r.tx] || l.now.Sub(r.when) <= l.rules.recordRetention {
			return false
		}
		d.ops = append(d.ops, record.Delete(record.TxKey(r.tx)))
		rest = append(rest, r)
		return true
	})
	if len(rest) == 0 {
		return
	}
	d.done = func(o txn.Outcome, _ resource.Revision, _ error) {
		if o == txn.Landed {
			return
		}
		// Once more later.
		l.terminal = append(rest, l.terminal...)
		slices.SortStableFunc(l.terminal, func(a, b terminalRecord) int { return cmp.Compare(a.when.UnixNano(), b.when.UnixNano()) })
	}
	l.submit(d)
}

// attemptsOn lists the transactions with a part on a node, in order.
func (l *leader) attemptsOn(node resource.NodeID) []resource.TxID {
	var txs []resource.TxID
	for tx, a := range l.attempts {
		if slices.Contains(a.machine.Nodes(), node) {
			txs = append(txs, tx)
		}
	}
	slices.Sort(txs)
	return txs
}
