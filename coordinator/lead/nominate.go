package lead

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// The values of preemptionPolicy. A unit without one takes back what quota says
// is its own, and nothing else.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

// isContested reports whether a unit has devices that are nominated to another
// unit, whose plan did not include that: the agent has refused the plan, or
// will. Until the nomination is given up, no other unit may plan with those
// devices (I7).
func (l *Leader) isContested(u *unit) bool {
	own := u.attempt.machine.ID()
	for _, node := range u.attempt.machine.Nodes() {
		n := l.nodes[node]
		if n == nil {
			continue
		}
		vote, _ := u.attempt.machine.Vote(node)
		for tx, h := range n.reservations {
			if h.waiting && tx != own && slices.ContainsFunc(h.members, func(m grant.Member) bool {
				return slices.ContainsFunc(vote.Members, func(n grant.Member) bool { return shareGPU(m.Assignment, n.Assignment) })
			}) {
				return true
			}
		}
	}
	return false
}

// shareGPU reports whether two assignments of one node have a GPU, or an
// instance of one, in common.
func shareGPU(a, b resource.Assignment) bool {
	return slices.ContainsFunc(a.GPUs, func(x resource.GPUGrant) bool {
		return slices.ContainsFunc(b.GPUs, func(y resource.GPUGrant) bool { return x.UUID == y.UUID })
	}) || slices.ContainsFunc(a.MIG, func(x resource.MIGGrant) bool {
		return slices.ContainsFunc(b.MIG, func(y resource.MIGGrant) bool { return x.UUID == y.UUID })
	})
}

// hasLeavingUnit reports whether a unit with members on a node is leaving: others
// may have counted on its room.
func (l *Leader) hasLeavingUnit(n *node) bool {
	for o := range l.occupied().OccupantsOf(n.view.ID) {
		switch o.Status {
		case cluster.Leaving, cluster.Displaced, cluster.InDoubt:
			return true
		}
	}
	return false
}

// beginPreemption starts the transaction of a unit whose place others have to
// leave first. From here on that place is its own as soon as they do, and its
// charge counts beside theirs.
func (l *Leader) beginPreemption(u *unit, d *sched.Decision) {
	a := &attempt{unit: u, charges: u.charges, begun: l.now, claims: d.Claims, held: map[resource.NodeID]bool{}}
	for _, v := range l.unitsOf(d.Victims) {
		a.addVictim(v.attempt)
		l.occupancy.noteUnit(v)
	}
	slices.SortFunc(a.victims, func(x, y *attempt) int { return cmp.Compare(x.machine.ID(), y.machine.ID()) })
	if d.Claims {
		l.chargeNominated(u)
	}
	l.out.info("preempting", "unit", u.path, "victims", a.victimPaths(), "claims", d.Claims)
	l.launch(a, d.Plan, func(n *node, h *reservation) {
		n.takeWaiting(h)
	})
}

func (a *attempt) victimPaths() []string {
	paths := make([]string, len(a.victims))
	for i, v := range a.victims {
		paths[i] = v.unit.path
	}
	slices.Sort(paths)
	return paths
}

// chargeNominated charges a unit to its trees beside its victims, over quota
// where needed, so that no other unit takes the quota that the victims leave.
func (l *Leader) chargeNominated(u *unit) {
	if len(u.charges) < 2 {
		return
	}
	if r := l.quotas.Restore(u.path); !r.OK {
		l.out.warn("claim_not_held", "unit", u.path, "refusal", r.Refusal)
	}
}

// preempting reports whether others are making room for a unit.
func (u *unit) preempting() bool {
	return u.attempt != nil && u.attempt.isPreempting() && u.waiting()
}
