package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file carries out what the leader wants done.

// carryOut does what the effects of one input say, in order. None of it waits.
func (t *term) carryOut(effects []effect) {
	t.effects = effects
	for i := range effects {
		t.carry(&effects[i])
	}
	clear(effects) // they are reused
}

func (t *term) carry(e *effect) {
	switch e.kind {
	case sendCommand:
		t.pool.Send(e.node, e.command)
	case openStream:
		t.pool.Reconnect(e.node)
	case distrustNode:
		t.pool.Distrust(e.node)
	case trustNode:
		t.letBack(e.node)
		t.pool.Trust(e.node)
	case writeKeys:
		t.write(e.token, e.write)
	case readKey:
		t.readKey(e.token, e.key)
	case readNodeKeys:
		t.readNode(e.token, e.node)
	case readFenceKeys:
		t.readFences()
	case grantLease:
		t.grantLease()
	case revokeLease:
		t.revokeLease(e.lease, e.key)
	case compactStore:
		t.compact(e.revision)
	case wakeAt:
		t.alarm.Reset(max(0, time.Until(e.at)))
	case showChange:
		if c := t.watchers[e.key]; c != nil {
			close(c)
			delete(t.watchers, e.key)
		}
	case logEvent:
		t.writeLog(e.event)
	case measureValue:
		t.metrics.take(e.metric, e.value, e.key)
	case askToResign:
		if t.mayResign(e.node) {
			in := mayGo{e.node, e.epoch, e.revision}
			go t.tell(in)
		}
	case answerClient:
		t.answer(e)
	case askSettled:
		k := e.token
		go func() {
			t.settled(t.ctx)
			t.tell(hasSettled{k})
		}()
	case endTerm:
		t.commit.deposed(e.err)
	}
}

// answer hands a client its answer, if it still waits.
func (t *term) answer(e *effect) {
	if client := t.clients[e.token]; client != nil {
		delete(t.clients, e.token)
		client <- reply{e.result, e.status, e.final}
	}
}

// write has the committer write, and tells the leader of the outcome.
func (t *term) write(k token, d decision) {
	d.done = func(o txn.Outcome, rev resource.Revision, err error) { t.tell(wrote{k, o, rev, err}) }
	t.commit.submit(d)
}

// readKey reads a key until the store answers. The barrier ends when the effects
// of the answer have begun.
func (t *term) readKey(k token, key string) {
	id := t.commit.barrier.begin()
	go func() {
		for wait := firstReread; ; wait = min(2*wait, lastReread) {
			kv, found, revision, err := t.store.Get(t.ctx, key)
			if err == nil {
				t.post(func() {
					t.apply(hasRead{k, kv, found, revision})
					t.commit.barrier.end(id)
				})
				return
			}
			if !pause(t.ctx, wait) {
				return
			}
		}
	}()
}

// readNode reads all keys of a node, and its certificate's.
func (t *term) readNode(k token, id resource.NodeID) {
	go func() {
		in := hasReadNode{token: k}
		in.kvs, _, in.err = t.store.Range(t.ctx, record.NodeIn(id), store.RangeOptions{})
		if in.err == nil {
			in.certified, _, _, in.err = t.store.Get(t.ctx, record.EnrolledKey(id))
		}
		t.tell(in)
	}()
}

// readFences reads the records that agents had made by fences.
func (t *term) readFences() {
	go func() {
		found, err := readFences(t.ctx, t.store)
		if err != nil {
			t.log.Warn("fences_not_swept", "error", err)
			return
		}
		if len(found) > 0 {
			t.tell(hasReadFences{found})
		}
	}()
}

func (t *term) grantLease() {
	go func() {
		if lease, err := t.store.Grant(t.ctx, requestLeaseTTL); err == nil {
			t.tell(granted{lease.ID})
		}
	}()
}

// revokeLease ends a node's lease; key is that of the lease, for the log.
func (t *term) revokeLease(lease record.LeaseID, key string) {
	go func() {
		if err := t.store.Revoke(t.ctx, lease); err != nil && !errors.Is(err, record.ErrLeaseGone) {
			t.log.Warn("lease_not_revoked", "key", key, "error", err)
		}
	}()
}

// compact forgets the store's history up to a revision, and tells the leader
// where the store is now.
func (t *term) compact(upTo resource.Revision) {
	go func() {
		_, _, now, err := t.store.Get(t.ctx, record.LeaderPrefix)
		if err != nil {
			return
		}
		t.tell(storeIsAt{now})
		if upTo == 0 {
			return
		}
		if err := t.store.Compact(t.ctx, upTo); err != nil && !errors.As(err, new(*record.CompactedError)) {
			t.log.Warn("compaction_failed", "revision", int64(upTo), "error", err)
		}
	}()
}

func (t *term) writeLog(e event) {
	level := [...]slog.Level{severityDebug: slog.LevelDebug, severityInfo: slog.LevelInfo, severityWarn: slog.LevelWarn, severityError: slog.LevelError}[e.severity]
	t.log.Log(context.Background(), level, e.name, e.fields...)
}

// take adds to a counter or a histogram, or sets a gauge.
func (m *metrics) take(which metric, value float64, label string) {
	switch which {
	case metricCommits:
		m.commits.Add(value)
	case metricAborts:
		m.aborts.Add(value)
	case metricEvictions:
		m.evictions.Add(value)
	case metricPreemptions:
		m.preemptions.Add(value)
	case metricAstray:
		m.astray.Add(value)
	case metricViolations:
		m.violations.WithLabelValues(label).Add(value)
	case metricFaults:
		m.faults.WithLabelValues(label).Add(value)
	case metricLatency:
		m.latency.Observe(value)
	case metricReserve:
		m.reserve.Observe(value)
	case metricCommit:
		m.commit.Observe(value)
	case metricNodes:
		m.nodes.Set(value)
	case metricSuspect:
		m.suspect.Set(value)
	case metricUnapproved:
		m.unapproved.Set(value)
	case metricQueued:
		m.queued.Set(value)
	case metricRunning:
		m.running.Set(value)
	}
}
