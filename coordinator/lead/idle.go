package lead

import (
	"encoding/json"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/idle"
	"github.com/musterd/muster/coordinator/lead/work"
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
		if a := l.work.Attempts[tx]; a != nil && a.IsJudgedIdle(l.post.Now(), judgedEvery) {
			l.judgeIdleOf(a)
		}
	}
}

// judgeIdleOf looks at the use of a unit whose work runs.
func (l *Leader) judgeIdleOf(a *work.Attempt) {
	r, then, ruled := l.idleRule(a.Unit.Record.Namespace)
	if !ruled {
		if a.Ready.IdleMillis != 0 {
			l.writeIdle(a, 0, 0)
		}
		return
	}
	a.NoteJudgedIdle(l.post.Now())
	use := a.TakeUse(l.countersOf(a), r)
	switch {
	case use == idle.Used && a.Ready.IdleMillis != 0:
		l.writeIdle(a, 0, 0)
	case use != idle.Used && !a.IsIdleBy(r) && a.GPUs.Idle() >= r.For:
		l.writeIdle(a, l.post.Millis()-a.GPUs.Idle().Milliseconds(), int32(r.Below))
	case use != idle.Used:
		l.actOnIdle(a.Unit.Job, r, then)
	}
}

// countersOf are the counters of all devices of an attempt's members that run; nil where one of
// the devices is not measured.
func (l *Leader) countersOf(a *work.Attempt) (all []idle.Counter) {
	tx := a.Machine.ID()
	for _, id := range a.Machine.Nodes() {
		vote, _ := a.Machine.Vote(id)
		n := l.nodes[id]
		if n == nil {
			return nil
		}
		for i := range vote.Members {
			m := &vote.Members[i]
			if a.Work[m.Index].Phase == grant.WorkEnded {
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
func (l *Leader) writeIdle(a *work.Attempt, since int64, below int32) {
	if !l.readyPace.Take(l.post.Now(), readyRate) {
		return // the next report tries again
	}
	l.post.Info("gpus_idle", "unit", a.Unit.Path, "idle", since != 0, "below_percent", below)
	r := a.Ready.Ready
	r.IdleMillis, r.IdleBelow = since, below
	l.putReady(a, r)
}

// noteIdle follows a key of readiness that the store has.
func (l *Leader) noteIdle(a *work.Attempt) {
	if r, then, ruled := l.idleRule(a.Unit.Record.Namespace); ruled && a.Ready.IdleMillis != 0 && a.Unit.Job != nil {
		l.actOnIdle(a.Unit.Job, r, then)
	}
}

// actOnIdle does with a job what the rule says, once all units that hold something are idle by
// the rule for long enough.
func (l *Leader) actOnIdle(j *work.Job, r idle.Rule, then string) {
	if then == api.IdleWarn || j.Gone || j.IsEnding() {
		return
	}
	var latest *work.Attempt
	for _, u := range j.Units {
		a := u.Attempt
		switch {
		case a == nil:
		case u.Life.EndAsked(), a.Notice != nil, a.Machine.State() != txn.Committed, !a.IsIdleBy(r), l.post.Millis()-a.Ready.IdleMillis < r.For.Milliseconds():
			return
		case latest == nil || latest.Ready.IdleMillis < a.Ready.IdleMillis:
			latest = a
		}
	}
	if latest == nil {
		return
	}
	text := shown.IdleText("was", latest.Ready.IdleBelow, latest.Ready.IdleMillis)
	if then == api.IdleSuspend {
		l.suspendIdle(j, text)
		return
	}
	for _, u := range j.Units {
		if u.Attempt != nil && !u.Record.Replaces { // those end with their gang
			l.endIdle(u, text)
		}
	}
}

// endIdle ends a unit, with grace.
func (l *Leader) endIdle(u *work.Unit, text string) {
	text = string(record.Idle) + ": " + text
	u.Attempt.SetOutcome(&record.Outcome{Phase: string(api.Failed), End: record.Idle, Message: text})
	l.post.Info("idle_job_ended", "unit", u.Path, "message", text)
	l.end(u, txn.ReleaseAsked{GraceSeconds: DefaultGrace, Reason: text})
}

// suspendIdle suspends a job. A change that is under way goes first; the next report of a node
// tries again.
func (l *Leader) suspendIdle(j *work.Job, text string) {
	if j.Stored == 0 || j.Writing || j.Doc.IsSuspended() {
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
				l.post.Warn("idle_job_not_suspended", "job", j.Record.Namespace+"/"+j.Record.Name, "error", refused.Message)
			}
		}
		l.post.Info("idle_job_suspended", "job", j.Record.Namespace+"/"+j.Record.Name, "message", text)
		l.writeJobChange(change)
		return
	}
	l.post.Warn("idle_job_not_suspended", "job", j.Record.Namespace+"/"+j.Record.Name, "error", status.Message)
}
