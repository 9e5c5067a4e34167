package lead

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// mayEvict reports whether others may be evicted for a unit that has no place, or
// no quota for the given shortage.
func (u *unit) mayEvict(short *sched.Shortage) bool {
	return u.right() == sched.Lower || u.right() == sched.OwnQuota && short != nil && short.Victims != nil
}

// The values of preemptionPolicy. A unit without one takes back what quota says
// is its own, and nothing else.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

// preempts starts a preemption for a unit that was admitted and has no place:
// some of lower priority give way. False: nobody does, now, and e says why.
func (l *Leader) preempts(u *unit, e *sched.Evidence) bool {
	if u.right() != sched.Lower {
		return false
	}
	e.Code = sched.NoVictims
	return l.nominate(u, nil, e)
}

// claimQuota starts a preemption for a unit whose quota other units use, as
// quota reports. Those units are the victims, and further units of lower
// priority if the unit's policy allows that.
func (l *Leader) claimQuota(u *unit, e *sched.Evidence) bool {
	if !u.mayEvict(e.Short) {
		return false
	}
	l.occupied() // the unit waits for a change of its victims as they are now
	var victims []*unit
	for _, path := range e.Short.Victims {
		v := l.units[path]
		switch {
		case v.evictable() && l.isContested(v):
			return noVictims(e, path+" has devices that are nominated to another unit")
		case v.evictable():
			victims = append(victims, v)
		case v.isBeingAdopted():
			return noVictims(e, path+" is being adopted, and can give way only then")
		case v.isLeavingSoon(), v.attempt.preemptor != nil:
			return noVictims(e, path+" is leaving already")
		case len(v.attempt.victims) > 0 && queue.Compare(u.key, v.key) < 0 && !l.wouldFitWithout(u, e.Short.Victims):
			return noVictims(e, path+" is about to take the place of others, and would leave no room")
		case len(v.attempt.victims) > 0 && queue.Compare(u.key, v.key) < 0:
			l.step(v.attempt, txn.BudgetSpent{}) // u comes first
			return noVictims(e, path+" gives up what it was about to take")
		default:
			return noVictims(e, path+" is about to start, and can give way only then")
		}
	}
	return l.nominate(u, victims, e)
}

// wouldFitWithout reports whether a unit would have a place once the named units,
// and those that they are about to displace, have given way, and more of lower
// priority where the unit asks for that. Without that question two units could
// take from each other for ever what helps neither.
func (l *Leader) wouldFitWithout(u *unit, named []string) bool {
	state := l.occupied()
	var holders []preempt.Holder
	var given []*unit
	add := func(v *unit) {
		if o := state.Occupant(v.path); o != nil && !slices.Contains(given, v) {
			h := holderOf(o)
			h.Priority = math.MinInt32
			holders, given = append(holders, h), append(given, v)
		}
	}
	for _, v := range l.unitsOf(named) {
		if add(v); v.attempt != nil {
			for _, victim := range v.attempt.victims {
				add(victim.unit)
			}
		}
	}
	if u.right() == sched.Lower {
		for o := range state.WithStatus(cluster.Evictable) {
			if l.isBelow(o, u, given) {
				holders = append(holders, holderOf(o))
			}
		}
	}
	_, ok := preempt.Find(l.state, u.demand, u.record.Priority, holders)
	return ok
}

// noVictims notes why nobody gives way.
func noVictims(e *sched.Evidence, why string) bool {
	e.NoVictims = why
	return false
}

// nominate looks for a place with the given victims gone, and with more of
// lower priority where the unit asks for that, and begins the preemption. While
// others are leaving whose room suffices, nobody else is evicted.
func (l *Leader) nominate(u *unit, given []*unit, e *sched.Evidence) bool {
	if leaving := l.leaving(); len(leaving) > 0 && len(given) == 0 {
		if _, ok := preempt.With(l.state, u.demand, leaving); ok {
			e.Code = sched.Leaving
			return noVictims(e, fmt.Sprintf("%d units are leaving, and it has room then", len(leaving)))
		}
	}
	plan, ok := preempt.Find(l.state, u.demand, u.record.Priority, l.holders(u, given))
	if !ok {
		return noVictims(e, "no set of units that may give way would make room")
	}
	victims := slices.Clone(given)
	for _, path := range plan.Victims {
		if v := l.units[path]; !slices.Contains(victims, v) {
			victims = append(victims, v)
		}
	}
	if len(victims) == 0 {
		return noVictims(e, "nobody is in its way") // the view has changed since it was tried
	}
	if ops := l.opsOfPreemption(u, victims); ops > l.maxOps {
		return noVictims(e, fmt.Sprintf("%d units would have to give way in one transaction of %d operations, the store takes %d", len(victims), ops, l.maxOps))
	}
	l.beginPreemption(u, plan.Members, victims, len(given) > 0)
	return true
}

// holders are the units that may give way for one: those that quota names,
// before all others, and if it asks for that those of lower priority.
func (l *Leader) holders(u *unit, given []*unit) []preempt.Holder {
	var all []preempt.Holder
	for _, v := range given {
		all = append(all, v.holder(math.MinInt32))
	}
	if u.policy != preemptLower {
		return all
	}
	state := l.occupied()
	if !state.HasEvictableBelow(u.record.Priority) {
		return all
	}
	for o := range state.WithStatus(cluster.Evictable) {
		if l.isBelow(o, u, given) {
			all = append(all, holderOf(o))
		}
	}
	return all
}

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

// isBelow reports whether an occupant may ever give way to a unit, besides the units
// that are given.
func (l *Leader) isBelow(o *cluster.Occupant, u *unit, given []*unit) bool {
	return o.Priority < u.record.Priority && !o.Pinned && !slices.Contains(given, l.units[o.Unit])
}

// holderOf is an occupant as a choice of victims sees it.
func holderOf(o *cluster.Occupant) preempt.Holder {
	return preempt.Holder{Unit: o.Unit, Priority: o.Priority, Started: o.Started, Parts: o.Parts}
}

func (u *unit) holder(priority int32) preempt.Holder {
	h := preempt.Holder{Unit: u.path, Priority: priority, Started: int64(u.attempt.committed)}
	for _, node := range u.attempt.machine.Nodes() {
		v, _ := u.attempt.machine.Vote(node)
		for _, m := range v.Members {
			h.Parts = append(h.Parts, preempt.Part{Node: node, Assignment: m.Assignment})
		}
	}
	return h
}

// leaving are the units that hold something, are on their way out, and make
// room for nobody in particular. What an agent out of reach holds is freed by
// nobody.
func (l *Leader) leaving() []preempt.Holder {
	var all []preempt.Holder
	for o := range l.occupied().WithStatus(cluster.Leaving) {
		if l.isReached(o) {
			all = append(all, holderOf(o))
		}
	}
	slices.SortFunc(all, func(a, b preempt.Holder) int { return cmp.Compare(a.Unit, b.Unit) })
	return all
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

// isReached reports whether the agents of all nodes of an occupant are in reach.
func (l *Leader) isReached(o *cluster.Occupant) bool {
	return !slices.ContainsFunc(o.Nodes, func(id resource.NodeID) bool {
		n := l.state.Node(id)
		return n == nil || !n.Ready
	})
}

// opsOfPreemption is the size of the Txn that commits a preemptor and releases
// its victims, in compares or operations.
func (l *Leader) opsOfPreemption(u *unit, victims []*unit) int {
	ops, compares := min(u.record.Members, len(l.state.Nodes()))+3, min(u.record.Members, len(l.state.Nodes()))+3
	for _, v := range victims {
		ops += len(v.attempt.machine.Nodes()) + 3
		compares += 2
	}
	return max(ops, compares)
}

// beginPreemption starts the transaction of a unit whose place others have to
// leave first. From here on that place is its own as soon as they do, and its
// charge counts beside theirs.
func (l *Leader) beginPreemption(u *unit, plan []place.Choice, victims []*unit, claims bool) {
	a := &attempt{unit: u, charges: u.charges, begun: l.now, claims: claims, held: map[resource.NodeID]bool{}}
	for _, v := range victims {
		a.addVictim(v.attempt)
		l.occupancy.noteUnit(v)
	}
	slices.SortFunc(a.victims, func(x, y *attempt) int { return cmp.Compare(x.machine.ID(), y.machine.ID()) })
	if claims {
		l.chargeNominated(u)
	}
	l.out.info("preempting", "unit", u.path, "victims", a.victimPaths(), "claims", claims)
	l.launch(a, plan, func(n *node, h *reservation) {
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
	r, err := l.quotas.trees.RestoreForest(everyTree, u.path)
	must(err)
	if !r.OK {
		l.out.warn("claim_not_held", "unit", u.path, "refusal", r.Refusal)
	}
}

// preempting reports whether others are making room for a unit.
func (u *unit) preempting() bool {
	return u.attempt != nil && len(u.attempt.victims) > 0 && u.waiting()
}
