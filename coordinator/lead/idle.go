package lead

import (
	"encoding/json"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/idle"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file finds the jobs whose GPUs do nothing, by the rule idle of their namespace (ADR 124).
// Agents report the use of each member with their heartbeats. The time for which it was low is in
// the leader's memory, and begins anew with each leader. The finding is in the key of readiness,
// so that readers see it and a later leader goes on with it; nothing is done before it is there.

// judgedEvery is the time between two looks at the use of a unit, each of which costs as much as
// the unit has devices: its nodes report one by one.
const judgedEvery = 5 * time.Second

// idleRule is the rule of a namespace; false where it has none.
func (l *Leader) idleRule(namespace string) (r idle.Rule, then string, ruled bool) {
	spec := l.namespace(namespace).Idle
	if spec == nil {
		return idle.Rule{}, "", false
	}
	below, length, then := spec.Rule()
	return idle.Rule{Below: int64(below), For: length}, then, true
}

// judgeIdle looks at the use of the units on a node that has reported.
func (l *Leader) judgeIdle(n *node) {
	for _, tx := range l.attemptsOn(n.view.ID) {
		if a := l.work.attempts[tx]; a != nil && a.isJudgedIdle(l.post.Now(), judgedEvery) {
			l.judgeIdleOf(a)
		}
	}
}

// judgeIdleOf looks at the use of a unit whose work runs.
func (l *Leader) judgeIdleOf(a *attempt) {
	r, then, ruled := l.idleRule(a.unit.record.Namespace)
	if !ruled {
		if a.ready.IdleMillis != 0 {
			l.writeIdle(a, 0, 0)
		}
		return
	}
	a.noteJudgedIdle(l.post.Now())
	use := a.takeUse(l.countersOf(a), r)
	switch {
	case use == idle.Used && a.ready.IdleMillis != 0:
		l.writeIdle(a, 0, 0)
	case use != idle.Used && !a.isIdleBy(r) && a.gpus.Idle() >= r.For:
		l.writeIdle(a, l.post.Millis()-a.gpus.Idle().Milliseconds(), int32(r.Below))
	case use != idle.Used:
		l.actOnIdle(a.unit.job, r, then)
	}
}

// isJudgedIdle reports whether the use of the attempt's members is judged now, as after each
// span.
func (a *attempt) isJudgedIdle(now time.Time, every time.Duration) bool {
	u := a.unit
	return u.work() != nil && u.attempt == a && !u.life.EndAsked() && a.notice == nil &&
		a.machine.State() == txn.Committed && a.ready.AtMillis != 0 && now.Sub(a.judgedIdle) >= every
}

// isIdleBy reports whether the store has that the attempt's GPUs are idle by a rule.
func (a *attempt) isIdleBy(r idle.Rule) bool {
	return a.ready.IdleMillis != 0 && int64(a.ready.IdleBelow) == r.Below
}

// countersOf are the counters of all devices of an attempt's members that run; nil where one of
// the devices is not measured.
func (l *Leader) countersOf(a *attempt) (all []idle.Counter) {
	tx := a.machine.ID()
	for _, id := range a.machine.Nodes() {
		vote, _ := a.machine.Vote(id)
		n := l.nodes[id]
		if n == nil {
			return nil
		}
		for i := range vote.Members {
			m := &vote.Members[i]
			if a.work[m.Index].Phase == grant.WorkEnded {
				continue
			}
			use := n.said.UseOf(tx, m.Index)
			for uuid := range devicesIn(&m.Assignment) {
				c, measured := counterOf(use, m.Index, uuid)
				if !measured {
					return nil
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// devicesIn are the UUIDs of an assignment's GPUs and MIG instances.
func devicesIn(a *resource.Assignment) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range a.GPUs {
			if !yield(a.GPUs[i].UUID) {
				return
			}
		}
		for i := range a.MIG {
			if !yield(a.MIG[i].UUID) {
				return
			}
		}
	}
}

// counterOf is the counter of one device; false where the device is not measured.
func counterOf(use *record.Use, member int, uuid string) (idle.Counter, bool) {
	if use == nil {
		return idle.Counter{}, false
	}
	for _, d := range use.Devices {
		if d.UUID == uuid && d.MeasuredMillis > 0 {
			return idle.Counter{Member: member, UUID: uuid, Measured: d.MeasuredMillis, Busy: d.BusyMillis}, true
		}
	}
	return idle.Counter{}, false
}

// writeIdle writes since when a unit is idle, 0 for a unit that is not, and acts on that once the
// store has it.
func (l *Leader) writeIdle(a *attempt, since int64, below int32) {
	if !l.readyPace.Take(l.post.Now(), readyRate) {
		return // the next report tries again
	}
	l.post.Info("gpus_idle", "unit", a.unit.path, "idle", since != 0, "below_percent", below)
	r := a.ready.Ready
	r.IdleMillis, r.IdleBelow = since, below
	l.putReady(a, r)
}

// noteIdle follows a key of readiness that the store has.
func (l *Leader) noteIdle(a *attempt) {
	if r, then, ruled := l.idleRule(a.unit.record.Namespace); ruled && a.ready.IdleMillis != 0 && a.unit.job != nil {
		l.actOnIdle(a.unit.job, r, then)
	}
}

// actOnIdle does with a job what the rule says, once all units that hold something are idle by
// the rule for long enough.
func (l *Leader) actOnIdle(j *job, r idle.Rule, then string) {
	if then == api.IdleWarn || j.gone || j.isEnding() {
		return
	}
	var latest *attempt
	for _, u := range j.units {
		a := u.attempt
		switch {
		case a == nil:
		case u.life.EndAsked(), a.notice != nil, a.machine.State() != txn.Committed, !a.isIdleBy(r), l.post.Millis()-a.ready.IdleMillis < r.For.Milliseconds():
			return
		case latest == nil || latest.ready.IdleMillis < a.ready.IdleMillis:
			latest = a
		}
	}
	if latest == nil {
		return
	}
	text := shown.IdleText("was", latest.ready.IdleBelow, latest.ready.IdleMillis)
	if then == api.IdleSuspend {
		l.suspendIdle(j, text)
		return
	}
	for _, u := range j.units {
		if u.attempt != nil && !u.record.Replaces { // those end with their gang
			l.endIdle(u, text)
		}
	}
}

// endIdle ends a unit, with grace.
func (l *Leader) endIdle(u *unit, text string) {
	text = string(record.Idle) + ": " + text
	u.attempt.setOutcome(&record.Outcome{Phase: string(api.Failed), End: record.Idle, Message: text})
	l.post.Info("idle_job_ended", "unit", u.path, "message", text)
	l.end(u, txn.ReleaseAsked{GraceSeconds: DefaultGrace, Reason: text})
}

// suspendIdle suspends a job. A change that is under way goes first; the next report of a node
// tries again.
func (l *Leader) suspendIdle(j *job, text string) {
	if j.stored == 0 || j.writing || j.doc.IsSuspended() {
		return
	}
	change, busy, status := l.changeOfJob(j, api.WorkPatch{Spec: json.RawMessage(`{"suspend":true}`)})
	if busy != nil {
		return
	}
	if status == nil {
		change.rec.Suspended = text
		change.then = func(refused *api.Status) {
			if refused != nil {
				l.post.Warn("idle_job_not_suspended", "job", j.record.Namespace+"/"+j.record.Name, "error", refused.Message)
			}
		}
		l.post.Info("idle_job_suspended", "job", j.record.Namespace+"/"+j.record.Name, "message", text)
		l.writeJobChange(change)
		return
	}
	l.post.Warn("idle_job_not_suspended", "job", j.record.Namespace+"/"+j.record.Name, "error", status.Message)
}
