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
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// mayEvict reports whether others may be evicted for a unit that has no place
// or no quota. Until it is stored it only waits: an eviction takes a while, and
// the next leader must know for whom it was.
func (l *Leader) mayEvict(u *unit) bool {
	return u.stored != 0 && (u.policy == preemptLower || u.policy != preemptNever && u.short != nil && u.short.victims != nil)
}

// The values of preemptionPolicy. A unit without one takes back what quota says
// is its own, and nothing else.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

// preempts starts a preemption for a unit that was admitted and has no place:
// some of lower priority give way. False: nobody does, now; u.stuck says why.
func (l *Leader) preempts(u *unit) bool {
	if u.policy != preemptLower || !l.mayEvict(u) || u.noVictimsAt == l.generation {
		return false
	}
	return l.nominate(u, nil)
}

// claimQuota starts a preemption for a unit whose quota other units use, as
// quota reports. Those units are the victims, and further units of lower
// priority if the unit's policy allows that.
func (l *Leader) claimQuota(u *unit) bool {
	if !l.mayEvict(u) || u.noVictimsAt == l.generation {
		return false
	}
	var victims []*unit
	for _, path := range u.short.victims {
		v := l.units[path]
		switch {
		case v.evictable() && l.isContested(v):
			return l.recordNoVictims(u, path+" has devices that are nominated to another unit")
		case v.evictable():
			victims = append(victims, v)
		case v.isBeingAdopted():
			return l.recordNoVictims(u, path+" is being adopted, and can give way only then")
		case v.isLeavingSoon(), v.attempt.preemptor != nil:
			return l.recordNoVictims(u, path+" is leaving already")
		case len(v.attempt.victims) > 0 && queue.Compare(u.key, v.key) < 0:
			l.step(v.attempt, txn.BudgetSpent{}) // u comes first
			return l.recordNoVictims(u, path+" gives up what it was about to take")
		default:
			l.expectant = true
			return l.recordNoVictims(u, path+" is about to start, and can give way only then")
		}
	}
	return l.nominate(u, victims)
}

// recordNoVictims records the reason why a unit has no victims at this
// generation.
func (l *Leader) recordNoVictims(u *unit, why string) bool {
	u.setNoVictims(why, l.generation)
	return false
}

// nominate looks for a place with the given victims gone, and with more of
// lower priority where the unit asks for that, and begins the preemption. While
// others are leaving whose room suffices, nobody else is evicted.
func (l *Leader) nominate(u *unit, given []*unit) bool {
	if leaving := l.leaving(); len(leaving) > 0 && len(given) == 0 {
		if _, ok := preempt.With(l.state, u.demand, leaving); ok {
			return l.recordNoVictims(u, fmt.Sprintf("%d units are leaving, and it has room then", len(leaving)))
		}
	}
	plan, ok := preempt.Find(l.state, u.demand, u.record.Priority, l.holders(u, given))
	if !ok {
		l.expectant = l.expectant || l.expects(u, given)
		return l.recordNoVictims(u, "no set of units that may give way would make room")
	}
	victims := slices.Clone(given)
	for _, path := range plan.Victims {
		if v := l.units[path]; !slices.Contains(victims, v) {
			victims = append(victims, v)
		}
	}
	if len(victims) == 0 {
		return l.recordNoVictims(u, "nobody is in its way") // the view has changed since it was tried
	}
	if ops := l.opsOfPreemption(u, victims); ops > l.maxOps {
		return l.recordNoVictims(u, fmt.Sprintf("%d units would have to give way in one transaction of %d operations, the store takes %d", len(victims), ops, l.maxOps))
	}
	u.clearNoVictims()
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

// expects reports whether a unit that found no victims would find them once the
// units of lower priority can give way that cannot yet: a commit or a record's
// read is under way, or the unit is contested.
func (l *Leader) expects(u *unit, given []*unit) bool {
	if u.policy != preemptLower {
		return false
	}
	holders := l.holders(u, given)
	known := len(holders)
	for _, status := range [...]cluster.Status{cluster.Contested, cluster.Starting, cluster.InDoubt, cluster.Claimed} {
		for o := range l.occupied().WithStatus(status) {
			if l.isBelow(o, u, given) {
				holders = append(holders, holderOf(o))
			}
		}
	}
	if len(holders) == known {
		return false
	}
	_, ok := preempt.Find(l.state, u.demand, u.record.Priority, holders)
	return ok
}

// wakeExpectant runs when a unit has become evictable: a unit that was tried
// before may find its victims now.
func (l *Leader) wakeExpectant() {
	if l.expectant {
		l.expectant = false
		l.wake()
	}
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
