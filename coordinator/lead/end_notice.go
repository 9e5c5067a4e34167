package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// This file has members of a unit get a signal before their known end. The leader says at
// the start when the signal is due; the supervisor of a member sends it, so neither a new
// leader nor a new agent repeats it.

// endNotice is the signal of a unit's work that starts at an instant.
func (a *attempt) endNotice(now int64) grant.Notice {
	number, before := a.unit.work().EndSignal()
	if number == 0 {
		return grant.Notice{}
	}
	n := grant.Notice{Signal: number, Before: min(before, longestLimit)}
	of := a.judged()
	if of == nil {
		return n
	}
	instant := of.ready.AtMillis
	if instant == 0 { // the key is on its way to the store
		instant = now
	}
	if t, limited := of.unit.limitSince(instant); limited {
		n.After = max(0, time.Duration(t.since-now)*time.Millisecond+t.length-n.Before)
	}
	return n
}

// noteSignaled writes that members of a unit have got their signal, once.
func (l *Leader) noteSignaled(a *attempt) {
	if a.ready.SignaledMillis != 0 || a.ready.Revision == 0 || a.machine.State() == txn.Released {
		return
	}
	for _, s := range a.work {
		if s.Signaled {
			r := a.ready
			r.SignaledMillis = l.post.Millis()
			a.setReady(r)
			l.post.Info("work_signaled", "unit", a.unit.path)
			l.putReady(a, r.Ready)
			return
		}
	}
}
