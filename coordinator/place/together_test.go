package place_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// TestUnitsBesideCountAsOccupants: a unit that starts together with others goes where
// it would go if the others ran already.
func TestUnitsBesideCountAsOccupants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawRelated(t)
		for range rapid.IntRange(0, 3).Draw(t, "occupants") {
			w.setOccupant(t)
		}
		beside := &cluster.Occupant{Unit: "beside", Subject: drawSubject(t), Status: cluster.Starting}
		for _, n := range w.state.Nodes() {
			if rapid.IntRange(0, 2).Draw(t, "beside on "+string(n.ID)) == 0 {
				beside.Nodes, beside.Counts = append(beside.Nodes, n.ID), append(beside.Counts, 1)
			}
		}
		u := place.Unit{Members: rapid.IntRange(1, 3).Draw(t, "members"), Request: resource.Request{GPUs: 1, CPU: 1000}, Subject: drawSubject(t)}
		w.state.Relate(beside.Subject.Namespace) // as the leader does for a unit with rules

		u.Beside = []*cluster.Occupant{beside}
		mark := w.state.Checkpoint()
		got, ok := place.Place(w.state, u)
		w.state.Rollback(mark)

		u.Beside = nil
		w.state.SetOccupant(beside)
		mark = w.state.Checkpoint()
		want, fits := place.Place(w.state, u)
		w.state.Rollback(mark)
		if ok != fits || !slices.Equal(nodesOf(got), nodesOf(want)) {
			t.Fatalf("%s beside %s: %v %t, want %v %t", describeSubject(u.Subject), describeSubject(beside.Subject), nodesOf(got), ok, nodesOf(want), fits)
		}
	})
}

// TestTogetherAgreesWithBruteForce: units whose members are each as large as a number
// of the smaller ones are placed wherever they can be, all or none.
func TestTogetherAgreesWithBruteForce(t *testing.T) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	host, err := fit.NewHost(profile.Topology(), profile.Inventory("n"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	placed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState()
		var free []int
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			n := &cluster.Node{ID: resource.NodeID(rune('a' + i)), Host: host, Free: host.NewFree(), Ready: true}
			state.Insert(n)
			used := rapid.IntRange(0, 8).Draw(t, "used")
			var a resource.Assignment
			if used > 0 && host.Assign(n.Free, resource.Request{GPUs: used, CPU: 1000}, &a) {
				if err := state.Take(n, a); err != nil {
					t.Fatal(err)
				}
			}
			free = append(free, 8-used)
		}
		units, wants := []place.Unit{}, []int{}
		for range rapid.IntRange(2, 4).Draw(t, "units") {
			gpus := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus")
			u := place.Unit{Members: rapid.IntRange(1, 2).Draw(t, "members"), Request: resource.Request{GPUs: gpus, CPU: 1000, NUMA: resource.NUMANone}}
			units = append(units, u)
			for range u.Members {
				wants = append(wants, gpus)
			}
		}
		before := wholeGPUs(state)
		mark := state.Checkpoint()
		plan, ok := place.Together(state, units)
		if ok {
			for i, members := range plan {
				if len(members) != units[i].Members {
					t.Fatalf("unit %d has %d members, want %d", i, len(members), units[i].Members)
				}
			}
			placed++
		} else {
			refused++
			if after := wholeGPUs(state); !slices.Equal(before, after) {
				t.Fatalf("refused, and %v is free of %v", after, before)
			}
		}
		state.Rollback(mark)
		if want := packs(free, wants); ok != want {
			t.Fatalf("members of %v GPUs on nodes with %v free: placed %t, the oracle says %t", wants, free, ok, want)
		}
		if after := wholeGPUs(state); !slices.Equal(before, after) {
			t.Fatalf("%v is free after the rollback, want %v", after, before)
		}
	})
	if placed == 0 || refused == 0 {
		t.Errorf("%d groups placed, %d refused: want both", placed, refused)
	}
}

// packs tries all ways to put members on nodes.
func packs(free, wants []int) bool {
	if len(wants) == 0 {
		return true
	}
	for i := range free {
		if free[i] < wants[0] {
			continue
		}
		left := slices.Clone(free)
		left[i] -= wants[0]
		if packs(left, wants[1:]) {
			return true
		}
	}
	return false
}

func wholeGPUs(state *cluster.State) []int {
	var list []int
	for _, n := range state.Nodes() {
		list = append(list, n.WholeGPUs)
	}
	return list
}

// TestTogetherKeepsApart: the rules of a unit count the units that start with it, in
// both directions.
func TestTogetherKeepsApart(t *testing.T) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	host, err := fit.NewHost(profile.Topology(), profile.Inventory("n"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	apart := constraint.CompileRelations(constraint.RelationSpec{AntiAffinity: []constraint.Near{{TopologyKey: "host", Selector: constraint.Selector{OwnGroup: true}}}})
	for name, large := range map[string]bool{"the larger unit has the rule": true, "the smaller unit has the rule": false} {
		t.Run(name, func(t *testing.T) {
			var labels constraint.Table
			state := cluster.NewState()
			for _, id := range []resource.NodeID{"a", "b"} {
				state.Insert(&cluster.Node{ID: id, Host: host, Free: host.NewFree(), Ready: true, Labels: labels.Intern(map[string]string{"host": string(id)}, nil)})
			}
			state.Relate("ml")
			unit := func(gpus int, rules bool) place.Unit {
				s := &constraint.Subject{Namespace: "ml", Group: "group/g"}
				if rules {
					s.Relations = apart
				}
				return place.Unit{Members: 1, Request: resource.Request{GPUs: gpus, CPU: 1000}, Subject: s}
			}
			plan, ok := place.Together(state, []place.Unit{unit(1, !large), unit(2, large)})
			if !ok || plan[0][0].Node == plan[1][0].Node {
				t.Errorf("placed %t: %+v, want two nodes", ok, plan)
			}
		})
	}
}
