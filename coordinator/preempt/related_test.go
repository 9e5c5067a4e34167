package preempt_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/resource"
)

// TestVictimsUnderAntiAffinityAreNeeded draws units that keep each other apart by host or
// by rack. The victims have a lower priority and make room together, none of them is
// superfluous, no other set is better, and where there are none, not even the end of all units of lower
// priority makes room.
func TestVictimsUnderAntiAffinityAreNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(hostsOf(t, "dgx-a100", rapid.IntRange(1, 4).Draw(t, "nodes"))...)
		for i, n := range state.Nodes() {
			state.Relabel(n, map[string]string{"host": string(n.ID), "rack": fmt.Sprint(i / 2)}, nil)
		}
		holders := drawApart(t, state)
		unit := place.Unit{Members: rapid.IntRange(1, 3).Draw(t, "members"), Request: resource.Request{GPUs: rapid.IntRange(1, 4).Draw(t, "gpus")}, Subject: drawApartSubject(t)}
		if rapid.Bool().Draw(t, "members differ") {
			unit.Sets = []place.Set{{Members: unit.Members, Request: unit.Request}, {Members: rapid.IntRange(1, 2).Draw(t, "more"), Request: resource.Request{GPUs: rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "gpus of more"), CPU: 1000}}}
			unit.Members += unit.Sets[1].Members
		}
		plan, ok := preempt.Find(state, unit, priority, holders)
		lower := slices.DeleteFunc(slices.Clone(holders), func(h preempt.Holder) bool { return h.Priority >= priority })
		if !ok {
			if _, all := preempt.With(state, unit, lower); all {
				t.Fatal("no victims are found, and the end of all of lower priority makes room")
			}
			return
		}
		victims := slices.DeleteFunc(slices.Clone(lower), func(h preempt.Holder) bool { return !slices.Contains(plan.Victims, h.Unit) })
		if len(victims) != len(plan.Victims) {
			t.Fatalf("victims %v: want lower priorities alone", plan.Victims)
		}
		if _, room := preempt.With(state, unit, victims); !room || len(plan.Members) != unit.Members {
			t.Fatalf("victims %v: they make no room", plan.Victims)
		}
		for i, v := range victims {
			if _, room := preempt.With(state, unit, slices.Delete(slices.Clone(victims), i, i+1)); room {
				t.Fatalf("victims %v: %s is superfluous", plan.Victims, v.Unit)
			}
		}
		for set := range subsets(lower) {
			if _, room := preempt.With(state, unit, set); room && isBetter(set, victims) {
				t.Fatalf("victims %v: %v are better", plan.Victims, unitsOf(set))
			}
		}
	})
}

// One old unit on a host, or two new ones on another: the fewer give way.
func TestFewerVictimsForMembersThatDiffer(t *testing.T) {
	nodes := hostsOf(t, "dgx-a100", 2)
	var holders []preempt.Holder
	for i, c := range []struct {
		node int
		gpus int
	}{{0, 8}, {1, 4}, {1, 4}} {
		h, ok := start(nodes[c.node:c.node+1], fmt.Sprint("u", i), 1, int64(i), 1, resource.Request{GPUs: c.gpus})
		if !ok {
			t.Fatal("a node is full too early")
		}
		holders = append(holders, h)
	}
	unit := place.Unit{Members: 2, Sets: []place.Set{{Members: 1, Request: resource.Request{GPUs: 8}}, {Members: 1, Request: resource.Request{CPU: 1000}}}}
	if plan, ok := preempt.Find(cluster.NewState(nodes...), unit, priority, holders); !ok || !slices.Equal(plan.Victims, []string{"u0"}) {
		t.Errorf("victims %v, %t; want u0", plan.Victims, ok)
	}
}

// drawApart lets units hold something on nodes.
func drawApart(t *rapid.T, state *cluster.State) []preempt.Holder {
	var holders []preempt.Holder
	for i := range rapid.IntRange(0, 6).Draw(t, "holders") {
		subject := drawApartSubject(t)
		members, ok := place.Place(state, place.Unit{Members: 1, Request: resource.Request{GPUs: rapid.IntRange(1, 8).Draw(t, "held")}, Subject: subject})
		if !ok {
			continue
		}
		h := preempt.Holder{Unit: fmt.Sprint("u", i), Priority: int32(rapid.IntRange(1, 4).Draw(t, "priority")), Started: int64(i)}
		o := &cluster.Occupant{Unit: h.Unit, Priority: h.Priority, Subject: subject}
		for _, m := range members {
			h.Parts = append(h.Parts, preempt.Part{Node: m.Node.ID, Assignment: m.Assignment.Clone()})
			o.Nodes = append(o.Nodes, m.Node.ID)
		}
		state.SetOccupant(o)
		holders = append(holders, h)
	}
	return holders
}

func drawApartSubject(t *rapid.T) *constraint.Subject {
	s := &constraint.Subject{Namespace: "ml", Labels: constraint.LabelsOf(map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")})}
	if rapid.Bool().Draw(t, "apart") {
		app := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "from")
		s.Relations = constraint.CompileRelations(constraint.RelationSpec{AntiAffinity: []constraint.Near{{
			TopologyKey: rapid.SampledFrom([]string{"host", "rack"}).Draw(t, "key"),
			Selector:    constraint.Selector{Match: constraint.Term{{Key: "app", Operator: constraint.In, Values: []string{app}}}},
		}}})
	}
	return s
}
