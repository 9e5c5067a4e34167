package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/evict.go: units that end by an eviction. Every unit is
// like a job's: what was evicted waits anew.

// Times of an eviction, as the leader is told by configuration.
const (
	evictionGrace = 5 * time.Second
	waitingTTL    = evictionGrace + 15*time.Second
	longestTTL    = max(reservationTTL, waitingTTL)
)

// actEvict lets an operator evict what runs.
func (s *Sim) actEvict() bool {
	return s.withTerm(nil, func(t *term) {
		names := slices.Sorted(maps.Keys(t.units))
		if len(names) == 0 {
			return
		}
		u := t.units[pick(s, names)]
		if u.attempt == nil || u.ending != nil || u.attempt.machine.Undecided() {
			return
		}
		s.logf("%s: an operator evicts %s", t.name, u.client.name)
		s.asked[u.attempt.machine.ID()] = true
		t.step(u.attempt, txn.EvictAsked{GraceSeconds: int64(s.rng.IntN(10)), Reason: "an operator's wish"})
		t.schedule()
	})
}

func (t *term) evictingOps(a *attempt, notice txn.EvictAsked, by resource.TxID) []op {
	rec := t.recordOf(a, grant.RecordEvicting)
	rec.By, rec.Reason, rec.GraceSeconds, rec.Evicted = by, notice.Reason, notice.GraceSeconds, true
	r := a.unit.record
	r.phase = terminating
	return []op{{txKey(a.machine.ID()), rec}, {unitKey(a.unit.client.name), r}}
}

// writeEvicting asks for COMMITTED → EVICTING, for no preemptor.
func (t *term) writeEvicting(a *attempt, e txn.WriteEvicting) {
	tx := a.machine.ID()
	t.submit(decision{
		what: "eviction of " + short(tx), compares: []record.Compare{record.ModRevIs(txKey(tx), a.machine.Revision())},
		ops:  t.evictingOps(a, txn.EvictAsked(e), ""),
		done: func(o txn.Outcome, rev resource.Revision) { t.step(a, txn.EvictingAnswered{Outcome: o, Revision: rev}) },
	})
}

// underNotice makes a unit Terminating: its eviction is durable.
func (t *term) underNotice(a *attempt, e txn.AckEvicting) {
	a.notice = &txn.EvictAsked{GraceSeconds: e.GraceSeconds, Reason: e.Reason}
	if by := a.machine.By(); by != "" {
		a.by = by
	}
	a.unit.record.phase, a.unit.stored = terminating, e.Revision
}

// unitEnd is what becomes of a unit when its transaction is RELEASED. It is
// fixed with the first Txn that writes it.
type unitEnd struct {
	record   unitRecord
	requeued bool // it was evicted; else it is gone
}

func (t *term) releasedOps(a *attempt) []op {
	u, tx := a.unit, a.machine.ID()
	if a.closing == nil {
		a.closing = a.endOfUnit()
	}
	rec := t.recordOf(a, grant.RecordReleased)
	a.unheard = slices.Sorted(maps.Keys(a.presumed))
	rec.Unheard = a.unheard
	ops := []op{{txKey(tx), rec}}
	for _, node := range a.machine.Nodes() {
		ops = append(ops, op{indexKey(node, tx), nil})
	}
	if !a.closing.requeued {
		return append(ops, op{unitKey(u.client.name), nil})
	}
	return append(ops, op{unitKey(u.client.name), a.closing.record}, op{orderKey(u.client.name), u.record.uid})
}

func (a *attempt) endOfUnit() *unitEnd {
	e := &unitEnd{record: a.unit.record, requeued: a.unit.ending == nil && a.notice != nil}
	e.record.phase, e.record.tx = pending, ""
	return e
}

// leave takes over what became of a unit whose transaction is RELEASED.
func (t *term) leave(a *attempt) {
	u, e := a.unit, a.closing
	if e == nil {
		e = a.endOfUnit()
	}
	if !e.requeued {
		t.forget(u)
		return
	}
	t.sim.stats["requeued"]++
	u.record, u.stored, u.queued, u.failed = e.record, a.machine.Revision(), true, 0
	if u.ending != nil { // asked for in the meantime
		t.endQueued(u)
		return
	}
	t.queue.Push(u.key)
}
