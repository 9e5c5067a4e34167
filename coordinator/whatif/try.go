package whatif

import (
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Try returns what a pass of the leader would do with a unit that waits, if it
// tried the unit next.
func (w *World) Try(u *Unit) Outcome {
	defer w.register(u)()
	nodes, charges := w.State.Checkpoint(), w.Trees.Checkpoint()
	d := w.Decide(&u.Unit)
	o := Outcome{Action: d.Action, Claims: d.Claims, Evidence: d.Evidence}
	for _, m := range d.Plan {
		o.Members = append(o.Members, Member{Index: m.Index, Node: m.Node.ID, Assignment: m.Assignment})
	}
	o.Victims = w.victims(d.Victims)
	must(w.Trees.Rollback(charges))
	w.State.Rollback(nodes)
	return o
}

// register has the trees know the unit as it is, and returns what takes that back.
func (w *World) register(u *Unit) (undo func()) {
	id, spec := u.Key.Path, u.Consumer()
	before, err := w.Trees.Consumer(id)
	known := err == nil
	if known {
		must(w.Trees.RemoveConsumer(id))
	}
	asks := len(spec.Demands) > 0
	if asks {
		must(w.Trees.AddConsumer(spec))
	}
	return func() {
		if asks {
			must(w.Trees.RemoveConsumer(id))
		}
		if known {
			spec := spec
			spec.Owner, spec.Demands = before.Owner, nil
			for _, p := range before.Placements {
				spec.Demands = append(spec.Demands, p.Demand)
			}
			must(w.Trees.AddConsumer(spec))
		}
	}
}

// victims describes units that run, ascending by name.
func (w *World) victims(paths []string) []Victim {
	var all []Victim
	for _, path := range slices.Sorted(slices.Values(paths)) {
		o := w.State.Occupant(path)
		all = append(all, Victim{Unit: path, Priority: o.Priority, GPUs: gpusOf(o), Nodes: len(o.Nodes)})
	}
	return all
}

// gpusOf sums the devices of a unit that runs.
func gpusOf(o *cluster.Occupant) resource.Milli {
	var sum resource.Milli
	for i := range o.Parts {
		for _, g := range o.Parts[i].Assignment.GPUs {
			sum += g.Milli
		}
	}
	return sum
}

// with is the unit with another demand of each member, or another number of
// members: its charges follow.
func (u Unit) with(members int, r resource.Request) Unit {
	u.Demand.Members, u.Demand.Request = members, r
	u.Charge.Request, u.Charge.Members = r.Charge().Scaled(int64(members)), int64(members)
	u.Charges = slices.Clone(u.Charges)
	for i := range u.Charges {
		u.Charges[i].Request = u.Charge.Request
	}
	return u
}

// withPriority is the unit with another priority, and the right to have units of
// lower priority evicted.
func (u Unit) withPriority(priority int32) Unit {
	u.Key.Priority, u.Right = priority, sched.Lower
	return u
}
