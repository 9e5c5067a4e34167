package sched

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/resource"
)

// GangDecision is the outcome for units that start together: the allocations of one
// group. Of the Decision, Plan and Claims are not set.
type GangDecision struct {
	Decision
	// Plans are where the members go, by unit, of Start and Preempt.
	Plans [][]place.Choice
	// Models are Decision.Models by unit.
	Models []resource.Vector
}

// DecideGang is Decide for units that start together or not at all: one quota try of
// the sum, one search. On Start the members' assignments are taken from the State and
// each unit is charged to its trees; on Preempt each is charged; else nothing has
// changed. The units take no quota from units that borrow it: they wait for its return.
func (w *World) DecideGang(units []*Unit) GangDecision {
	d := GangDecision{Decision: Decision{Evidence: &Evidence{Code: NoPlace}}}
	for _, u := range units {
		for _, tree := range TreesOf(u.Charges) {
			if !slices.Contains(d.Evidence.Trees, tree) {
				d.Evidence.Trees = append(d.Evidence.Trees, tree)
			}
		}
	}
	mark := w.Trees.Checkpoint()
	d.Evidence.Short, d.Until = w.admitAll(units)
	decided := false
	switch short := d.Evidence.Short; {
	case short == nil:
		if slices.ContainsFunc(units, (*Unit).takesAnyModel) {
			must(w.Trees.Rollback(mark))
			mark = w.Trees.Checkpoint()
			decided = w.seekGang(units, &d)
		} else {
			decided = w.findGang(units, &d)
		}
	case short.Victims != nil:
		d.Evidence.Code = Claim
		d.noVictims("a group does not take back quota that others borrow: it waits until they end")
	case short.Limits != nil:
		d.Evidence.Code = OverLimit
	default:
		d.Evidence.Code = OverTree
	}
	if !decided {
		must(w.Trees.Rollback(mark))
		return d
	}
	must(w.Trees.Keep(mark))
	d.Evidence = nil
	return d
}

// admitAll charges all units to their trees, if they and the limits have room for the
// sum. The caller takes the charges back by its checkpoint.
func (w *World) admitAll(units []*Unit) (short *Shortage, until time.Time) {
	for i, u := range units {
		tx := resource.TxID(fmt.Sprintf("gang trial %d", i))
		if short, until = w.Admit(u); short != nil {
			return short, until
		}
		w.Limits.Charge(tx, u.Charge)
		defer w.Limits.Discharge(tx)
	}
	return nil, until
}

// gang is the units that are decided on, those with equal demands as one demand.
type gang struct {
	units   []*Unit
	demands []place.Unit
	of      []int // by unit: its demand
	right   Right // the least of all
}

func gangOf(units []*Unit) *gang {
	g := &gang{units: units, right: Lower}
	known := map[string]int{}
	for _, u := range units {
		g.right = min(g.right, u.Right)
		at, found := known[u.Alike]
		if !found {
			at = len(g.demands)
			known[u.Alike] = at
			demand := u.Demand
			demand.Members, demand.Avoid = 0, nil
			g.demands = append(g.demands, demand)
		}
		demand := &g.demands[at]
		demand.Members += u.Demand.Members
		for id, failures := range u.Avoid {
			if demand.Avoid == nil {
				demand.Avoid = map[resource.NodeID]int{}
			}
			demand.Avoid[id] = max(demand.Avoid[id], failures)
		}
		g.of = append(g.of, at)
	}
	return g
}

// split gives each unit its members of a plan by demand.
func (g *gang) split(plan [][]place.Choice) [][]place.Choice {
	plans, next := make([][]place.Choice, len(g.units)), make([]int, len(g.demands))
	for i, u := range g.units {
		at := g.of[i]
		for k := range u.Demand.Members {
			c := plan[at][next[at]]
			c.Index = k
			plans[i] = append(plans[i], c)
			next[at]++
		}
	}
	return plans
}

// placeGang places units that were admitted, or reports that there is no place now.
func (w *World) placeGang(g *gang, d *GangDecision) bool {
	if g.isRelated(w.State) {
		w.occupied()
	}
	mark := w.State.Checkpoint()
	plan, ok := place.Together(w.State, g.demands)
	if ok {
		d.Plans = g.split(plan)
		d.Evidence.Wide = w.gangTooWide(d.Plans)
		ok = d.Evidence.Wide == ""
	}
	if !ok {
		w.State.Rollback(mark)
		return false
	}
	w.State.Keep(mark)
	d.Action = Start
	return true
}

// isRelated reports whether rules about other units decide on the place.
func (g *gang) isRelated(state *cluster.State) bool {
	return slices.ContainsFunc(g.demands, func(u place.Unit) bool {
		return u.Subject != nil && (u.Subject.Relations != nil || state.Relates(u.Subject.Namespace))
	})
}

// GangOps is the most operations of the commit of one member of a group.
const GangOps = 4

// gangTooWide is TooWide for the one transaction that commits all units.
func (w *World) gangTooWide(plans [][]place.Choice) string {
	ops := 0
	for _, plan := range plans {
		ops += GangOps - 1 + len(nodesOf(plan))
	}
	if ops <= w.MaxOps {
		return ""
	}
	return fmt.Sprintf("it fits, but to commit %d members that takes %d operations, and the store takes %d in one transaction; raise etcd's --max-txn-ops, or submit it with fewer members",
		len(plans), ops, w.MaxOps)
}

// preemptsFor nominates units that were admitted and have no place: some of lower
// priority give way. False: no unit does, now, and the evidence says why.
func (w *World) preemptsFor(g *gang, d *GangDecision) bool {
	if g.right != Lower {
		return false
	}
	d.Evidence.Code = NoVictims
	demands := slices.Clone(g.demands)
	for i := range demands {
		demands[i].Avoid = nil
	}
	if leaving := w.Leaving(); len(leaving) > 0 {
		if members, ok := preempt.WithTogether(w.State, demands, leaving); ok {
			d.Evidence.leaves(members...)
			return d.noVictims(fmt.Sprintf("%d units are leaving, and it has room then", len(leaving)))
		}
	}
	first := g.units[0]
	standing := w.standingOfAll(g.units)
	d.Evidence.Borrows = standing.height > 0
	plan, victims, ok := preempt.Together(w.State, demands, first.Key.Priority, w.Holders(&Unit{Key: first.Key, Right: Lower, Demand: first.Demand}, nil, standing))
	switch {
	case !ok:
		return d.noVictims(noSet(standing))
	case len(victims) == 0:
		return d.noVictims("nobody is in its way") // the view has changed since it was tried
	}
	victims = w.withMates(victims)
	plans := g.split(plan)
	ops, compares := 0, 0
	for _, members := range plans {
		nodes := len(nodesOf(members))
		ops, compares = ops+GangOps-1+nodes, compares+2+nodes
	}
	more, moreCompares := w.opsOfVictims(victims)
	if ops, compares = ops+more, compares+moreCompares; max(ops, compares) > w.MaxOps {
		return d.noVictims(fmt.Sprintf("%d units would have to give way in one transaction of %d operations, the store takes %d", len(victims), max(ops, compares), w.MaxOps))
	}
	d.Action, d.Plans, d.Victims = Preempt, plans, victims
	return true
}

// standingOfAll is the standing of the unit that borrows from farthest, once all are
// charged. Nothing changes.
func (w *World) standingOfAll(units []*Unit) *Standing {
	mark := w.Trees.Checkpoint()
	all := &Standing{w: w, priority: units[0].Key.Priority}
	for _, u := range units {
		if len(u.Charges) > 1 && !w.Trees.IsAllocatedForest(w.Forest, u.Key.Path) {
			_, err := w.Trees.AllocateForest(w.Forest, u.Key.Path)
			must(err)
		}
	}
	for _, u := range units {
		all.height = max(all.height, w.Trees.Height(u.Key.Path))
	}
	must(w.Trees.Rollback(mark))
	return all
}

// nodesOf are the nodes of a plan, each once.
func nodesOf(plan []place.Choice) []*cluster.Node {
	var nodes []*cluster.Node
	for _, m := range plan {
		if !slices.Contains(nodes, m.Node) {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}
