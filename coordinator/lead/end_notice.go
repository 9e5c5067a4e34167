package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
)

// This file has members of a unit get a signal before their known end. The leader says at
// the start when the signal is due; the supervisor of a member sends it, so neither a new
// leader nor a new agent repeats it.

// noteSignaled writes that members of a unit have got their signal, once.
func (l *Leader) noteSignaled(a *work.Attempt) {
	if a.Ready.SignaledMillis != 0 || a.Ready.Revision == 0 || a.Machine.State() == txn.Released {
		return
	}
	for _, s := range a.Work {
		if s.Signaled {
			r := a.Ready
			r.SignaledMillis = l.post.Millis()
			a.SetReady(r)
			l.post.Info("work_signaled", "unit", a.Unit.Path)
			l.putReady(a, r.Ready)
			return
		}
	}
}
