package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// rivals are units that take each other's places on a small cluster of racks. A preemption
// takes effect at once, and its victims wait again.
type rivals struct {
	t       *rapid.T
	world   *sched.World
	units   []*rival // in the order in which a pass tries them
	victims int
}

// rival is a unit of one or several members. Units with the same gang start one by one and
// give way together.
type rival struct {
	sched.Unit
	gang string
	plan []place.Choice // nil while it waits
}

func drawRivals(t *rapid.T) *rivals {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	r := &rivals{t: t, world: &sched.World{State: cluster.NewState(), Limits: quota.New(), Trees: quota.NewManager(quota.Options{}), MaxOps: 1000}}
	var labels constraint.Table
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		id := fmt.Sprintf("n%d", i)
		host, err := fit.NewHostLike(nil, profile.Topology(), profile.Inventory(id), fit.Reserved{})
		if err != nil {
			t.Fatal(err)
		}
		r.world.State.Insert(&cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree(), Labels: labels.Intern(map[string]string{"rack": fmt.Sprint(i / 2)}, nil)})
	}
	for i := range rapid.IntRange(3, 9).Draw(t, "units") {
		u := &rival{}
		u.Key = queue.Key{Priority: int32(rapid.IntRange(0, 3).Draw(t, "priority")), Counter: uint64(i), Path: fmt.Sprintf("u%d", i)}
		u.Right, u.Charges = sched.Lower, []record.Charge{{Tree: quota.Tree, Group: "x"}}
		u.Demand = place.Unit{Members: rapid.IntRange(1, 2).Draw(t, "members"), Request: resource.Request{GPUs: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "gpus"), NUMA: resource.NUMANone}}
		u.Demand.Subject = &constraint.Subject{Namespace: "x", Group: fmt.Sprint("job/", rapid.IntRange(0, 4).Draw(t, "job"))}
		if rapid.Bool().Draw(t, "gang") {
			u.gang = u.Demand.Subject.Group
		}
		if rapid.Bool().Draw(t, "rack") {
			u.Demand.Topology = &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: true}}}
		}
		r.units = append(r.units, u)
	}
	return r
}

// end ends a unit that runs. The unit waits again.
func (r *rivals) end(u *rival) {
	r.world.State.RemoveOccupant(u.Key.Path)
	for _, m := range u.plan {
		if err := r.world.State.Give(m.Node, m.Assignment); err != nil {
			r.t.Fatal(err)
		}
	}
	u.plan = nil
}

// try decides about a unit that waits, and carries the decision out.
func (r *rivals) try(u *rival) bool {
	d := r.world.Decide(&u.Unit)
	if d.Action == sched.Wait {
		return false
	}
	gone := map[string]bool{}
	for _, path := range d.Victims {
		v := r.units[slices.IndexFunc(r.units, func(v *rival) bool { return v.Key.Path == path })]
		switch {
		case v.Key.Priority >= u.Key.Priority:
			r.t.Fatalf("%s of priority %d takes the place of %s of priority %d", u.Key.Path, u.Key.Priority, path, v.Key.Priority)
		case v.Demand.Subject.Group == u.Demand.Subject.Group:
			r.t.Fatalf("%s takes the place of %s, which is of its own job", u.Key.Path, path)
		}
		gone[v.gang], r.victims = true, r.victims+1
		r.end(v)
	}
	for _, v := range r.units {
		if v.plan != nil && v.gang != "" && gone[v.gang] {
			r.t.Fatalf("%s stays, and others of its gang have given way", v.Key.Path)
		}
	}
	u.plan = d.Plan
	o := &cluster.Occupant{Unit: u.Key.Path, Priority: u.Key.Priority, Status: cluster.Evictable, Subject: u.Demand.Subject, Gang: u.gang}
	for _, m := range d.Plan {
		if d.Action == sched.Preempt {
			if err := r.world.State.Take(m.Node, m.Assignment); err != nil {
				r.t.Fatal(err)
			}
		}
		if !slices.Contains(o.Nodes, m.Node.ID) {
			o.Nodes = append(o.Nodes, m.Node.ID)
		}
		o.Parts = append(o.Parts, cluster.Part{Node: m.Node.ID, Assignment: m.Assignment})
	}
	r.world.State.SetOccupant(o)
	return true
}

// potential is the priorities of the units that run, the highest first.
func (r *rivals) potential() []int32 {
	var all []int32
	for _, u := range r.units {
		if u.plan != nil {
			all = append(all, u.Key.Priority)
		}
	}
	slices.SortFunc(all, func(a, b int32) int { return int(b - a) })
	return all
}

// settle tries the units that wait until none can begin.
func (r *rivals) settle() {
	before := r.potential()
	for again := true; again; {
		again = false
		for _, u := range r.units {
			if u.plan != nil || !r.try(u) {
				continue
			}
			after := r.potential()
			if slices.Compare(after, before) <= 0 {
				r.t.Fatalf("%s begins, and the potential falls from %v to %v", u.Key.Path, before, after)
			}
			before, again = after, true
		}
	}
}

// TestPreemptionComesToAnEnd: units that take each other's places by priority, gangs that
// give way as a whole and gangs in one rack among them, stop doing so. Ends and boosts
// begin anew. A victim has a lower priority, is of another job, and its gang leaves with it.
func TestPreemptionComesToAnEnd(t *testing.T) {
	victims := 0
	rapid.Check(t, func(t *rapid.T) {
		r := drawRivals(t)
		r.units = rapid.Permutation(r.units).Draw(t, "order")
		for range 4 {
			r.settle()
			for _, u := range r.units {
				switch {
				case u.plan == nil && rapid.IntRange(0, 2).Draw(t, "boost") == 0:
					u.Key.Priority += 2
				case u.plan != nil && rapid.IntRange(0, 3).Draw(t, "ends") == 0:
					r.end(u)
				}
			}
			r.units = rapid.Permutation(r.units).Draw(t, "order")
		}
		victims += r.victims
	})
	if victims == 0 {
		t.Error("nobody gave way: there is room for all")
	}
}
