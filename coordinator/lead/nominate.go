package lead

import (
	"github.com/musterd/muster/coordinator/sched"
)

// beginPreemption starts the transaction of a unit whose place others have to
// leave first. From here on that place is its own as soon as they do, and its
// charge counts beside theirs.
func (l *Leader) beginPreemption(u *unit, d *sched.Decision) {
	a := newAttempt(u, sched.WithModels(u.charges, d.Models), l.post.Now())
	a.displace(l.work.unitsOf(d.Victims), d.Claims)
	for _, v := range a.victims {
		l.occupancy.noteUnit(v.unit)
	}
	if d.Claims {
		l.chargeNominated(u)
	}
	l.post.Info("preempting", "unit", u.path, "victims", a.victimPaths(), "claims", d.Claims)
	l.launch(a, d.Plan, func(n *node, h *reservation) {
		n.takeWaiting(h)
	})
}

// chargeNominated charges a unit to its trees beside its victims, over quota
// where needed, so that no other unit takes the quota that the victims leave.
func (l *Leader) chargeNominated(u *unit) {
	if len(u.charges) < 2 {
		return
	}
	if r := l.quotas.Restore(u.path); !r.OK {
		l.post.Warn("claim_not_held", "unit", u.path, "refusal", r.Refusal)
	}
}
