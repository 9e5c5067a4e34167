package lead

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// The values of preemptionPolicy beside api.PreemptOwnQuota, which is that of a unit
// without one.
const (
	preemptLower = api.PreemptLowerPriority
	preemptNever = api.PreemptNever
)

// beginPreemption starts the transaction of a unit whose place others have to
// leave first. From here on that place is its own as soon as they do, and its
// charge counts beside theirs.
func (l *Leader) beginPreemption(u *unit, d *sched.Decision) {
	a := &attempt{unit: u, charges: sched.WithModels(u.charges, d.Models), begun: l.post.Now(), claims: d.Claims, held: map[resource.NodeID]bool{}}
	for _, v := range l.unitsOf(d.Victims) {
		a.addVictim(v.attempt)
		l.occupancy.noteUnit(v)
	}
	slices.SortFunc(a.victims, byPath)
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
