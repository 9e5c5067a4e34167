package coordinator

import (
	"context"
	"errors"
	"log/slog"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file carries out the leader's effects.

// carryOut carries out the effects of one input, in order. None of them blocks.
func (t *term) carryOut(effects []post.Effect) {
	t.effects = effects
	if t.observeEffects != nil {
		t.observeEffects(effects)
	}
	for i := range effects {
		t.carry(&effects[i])
	}
	clear(effects) // they are reused
}

func (t *term) carry(e *post.Effect) {
	switch e.Kind {
	case post.SendCommand:
		t.pool.Send(e.Node, e.Command)
	case post.OpenStream:
		t.pool.Reconnect(e.Node)
	case post.DistrustNode:
		t.pool.Distrust(e.Node)
	case post.TrustNode:
		t.letBack(e.Node)
		t.pool.Trust(e.Node)
	case post.WriteKeys:
		t.write(e.Token, e.Write)
	case post.ReadKey:
		t.readKey(e.Token, e.Key)
	case post.ReadNodeKeys:
		t.readNode(e.Token, e.Node)
	case post.ReadFenceKeys:
		t.readFences()
	case post.GrantLease:
		t.grantLease()
	case post.RevokeLease:
		t.revokeLease(e.Lease, e.Key)
	case post.CompactStore:
		t.compact(e.Revision)
	case post.WakeAt:
		t.alarm.Reset(max(0, e.At.Sub(t.clock.now())))
	case post.LogEvent:
		t.writeLog(e.Event)
	case post.MeasureValue:
		t.metrics.take(e.Metric, e.Value, e.Key)
	case post.AskToResign:
		if t.mayResign(e.Node) {
			in := lead.ResignAllowed{Node: e.Node, Epoch: e.Epoch, Revision: e.Revision}
			go t.tell(in)
		}
	case post.AnswerClient:
		t.answer(e)
	case post.AskSettled:
		k := e.Token
		go func() {
			t.settled(t.ctx)
			t.tell(lead.SettleAnswer{Token: k})
		}()
	case post.EndTerm:
		t.commit.deposed(e.Err)
	}
}

// answer hands a client its answer, if it still waits.
func (t *term) answer(e *post.Effect) {
	if client := t.clients[e.Token]; client != nil {
		delete(t.clients, e.Token)
		client <- reply{e.Result, e.Status, e.Final}
	}
}

// write has the committer write, and hands the leader the outcome.
func (t *term) write(k post.Token, w post.Write) {
	t.commit.submit(pendingWrite{
		compares: w.Compares, ops: w.Ops, anyEpoch: w.AnyEpoch, once: w.Once,
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			t.tell(lead.WriteAnswer{Token: k, Outcome: o, Revision: rev, Err: err})
		},
	})
}

// readKey reads a key until the store answers. The barrier ends when the effects
// of the answer have begun.
func (t *term) readKey(k post.Token, key string) {
	id := t.commit.barrier.begin()
	go func() {
		for wait := firstReread; ; wait = min(2*wait, lastReread) {
			kv, found, revision, err := t.store.Get(t.ctx, key)
			if err == nil {
				t.post(func() {
					t.apply(lead.ReadAnswer{Token: k, Kv: kv, Found: found, Revision: revision})
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
func (t *term) readNode(k post.Token, id resource.NodeID) {
	go func() {
		in := lead.NodeReadAnswer{Token: k}
		in.Kvs, _, in.Err = t.store.Range(t.ctx, record.NodeIn(id), store.RangeOptions{})
		if in.Err == nil {
			in.Certified, _, _, in.Err = t.store.Get(t.ctx, record.EnrolledKey(id))
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
			t.tell(lead.FenceReadAnswer{Found: found})
		}
	}()
}

func (t *term) grantLease() {
	go func() {
		if lease, err := t.store.Grant(t.ctx, lead.RequestLeaseTTL); err == nil {
			t.tell(lead.LeaseAnswer{Lease: lease.ID})
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

// compact forgets the store's history up to a revision, and hands the leader
// the store's present revision.
func (t *term) compact(upTo resource.Revision) {
	go func() {
		_, _, now, err := t.store.Get(t.ctx, record.LeaderPrefix)
		if err != nil {
			return
		}
		t.tell(lead.CompactAnswer{Revision: now})
		if upTo = t.forgettable(upTo); upTo == 0 {
			return
		}
		if err := t.store.Compact(t.ctx, upTo); err != nil && !errors.As(err, new(*record.CompactedError)) {
			t.log.Warn("compaction_failed", "revision", int64(upTo), "error", err)
		}
	}()
}

func (t *term) writeLog(e post.Event) {
	level := [...]slog.Level{post.SeverityDebug: slog.LevelDebug, post.SeverityInfo: slog.LevelInfo, post.SeverityWarn: slog.LevelWarn, post.SeverityError: slog.LevelError}[e.Severity]
	t.log.Log(context.Background(), level, e.Name, e.Fields...)
}

// take adds to a counter or a histogram, or sets a gauge.
func (m *metrics) take(which post.Metric, value float64, label string) {
	switch which {
	case post.MetricCommits:
		m.commits.Add(value)
	case post.MetricAborts:
		m.aborts.Add(value)
	case post.MetricEvictions:
		m.evictions.Add(value)
	case post.MetricPreemptions:
		m.preemptions.Add(value)
	case post.MetricMissedWakes:
		m.missedWakes.Add(value)
	case post.MetricAstray:
		m.astray.Add(value)
	case post.MetricViolations:
		m.violations.WithLabelValues(label).Add(value)
	case post.MetricFaults:
		m.faults.WithLabelValues(label).Add(value)
	case post.MetricLatency:
		m.latency.Observe(value)
	case post.MetricWait:
		m.waits.Observe(value)
	case post.MetricReserve:
		m.reserve.Observe(value)
	case post.MetricCommit:
		m.commit.Observe(value)
	case post.MetricNodes:
		m.nodes.Set(value)
	case post.MetricSuspect:
		m.suspect.Set(value)
	case post.MetricUnapproved:
		m.unapproved.Set(value)
	case post.MetricQueued:
		m.queued.Set(value)
	case post.MetricRunning:
		m.running.Set(value)
	}
}
