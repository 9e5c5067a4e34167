package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/sched"
)

// beginPreemption starts the transaction of a unit whose place others have to
// leave first. From here on that place is its own as soon as they do, and its
// charge counts beside theirs.
func (l *Leader) beginPreemption(u *work.Unit, d *sched.Decision) {
	a := work.NewAttempt(u, sched.WithModels(u.Charges, d.Models), l.post.Now())
	a.Displace(l.work.UnitsOf(d.Victims), d.Claims)
	for _, v := range a.Victims {
		l.occupancy.noteUnit(v.Unit)
	}
	if d.Claims {
		l.chargeNominated(u)
	}
	l.post.Info("preempting", "unit", u.Path, "victims", a.VictimPaths(), "claims", d.Claims)
	l.launch(a, d.Plan, func(n *node, h *reservation) {
		n.takeWaiting(h)
	})
}

// chargeNominated charges a unit to its trees beside its victims, over quota
// where needed, so that no other unit takes the quota that the victims leave.
func (l *Leader) chargeNominated(u *work.Unit) {
	if len(u.Charges) < 2 {
		return
	}
	if r := l.quotas.Restore(u.Path); !r.OK {
		l.post.Warn("claim_not_held", "unit", u.Path, "refusal", r.Refusal)
	}
}
