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
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// TestDecisionsDoNotDependOnTheOrderOfArrival places a unit, and looks for victims, in two
// States of the same nodes and units that came in other orders. Places, victims and
// explanations are equal, under each policy, with rules about other units, domains and
// members that differ; so no order of a map reaches them.
func TestDecisionsDoNotDependOnTheOrderOfArrival(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "nodes")
		labels := make([]map[string]string, n)
		for i := range labels {
			labels[i] = map[string]string{"host": fmt.Sprint(i), "rack": fmt.Sprint(i / 2), "zone": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone")}
		}
		seed := cluster.NewState(hostsOf(t, "dgx-a100", n)...)
		for i, v := range seed.Nodes() {
			seed.Relabel(v, labels[i], nil)
		}
		holders := drawApart(t, seed)
		u, policy := drawAnyUnit(t)
		var first string
		for round := range 2 {
			state := cluster.NewState()
			nodes := hostsOf(t, "dgx-a100", n)
			for _, i := range rapid.Permutation(upTo(n)).Draw(t, "order of nodes") {
				state.Insert(nodes[i])
				state.Relabel(nodes[i], labels[i], nil)
			}
			for _, i := range rapid.Permutation(upTo(len(holders))).Draw(t, "order of units") {
				hold(t, state, seed, &holders[i])
			}
			if u.Subject.Relations != nil {
				state.Relate(u.Subject.Namespace)
			}
			of := u
			of.Policy = learned().Policy(policy, state)
			text, kind := describe(state, of, holders)
			if met[kind]++; round == 0 {
				first = text
			} else if text != first {
				t.Fatalf("in one order\n%s\nin another\n%s", first, text)
			}
		}
	})
	for _, kind := range []string{"placed", "victims", "none"} {
		if met[kind] == 0 {
			t.Errorf("no drawn unit was %s: %v", kind, met)
		}
	}
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// hold gives a holder to a State, as an occupant too.
func hold(t *rapid.T, state, seed *cluster.State, h *preempt.Holder) {
	o := &cluster.Occupant{Unit: h.Unit, Priority: h.Priority, Subject: seed.Occupant(h.Unit).Subject}
	for _, p := range h.Parts {
		if err := state.Take(state.Node(p.Node), p.Assignment); err != nil {
			t.Fatal(err)
		}
		o.Nodes = append(o.Nodes, p.Node)
	}
	state.SetOccupant(o)
}

// drawAnyUnit draws a unit with one kind of rules at most, and a policy.
func drawAnyUnit(t *rapid.T) (place.Unit, string) {
	u := place.Unit{
		Members: rapid.IntRange(1, 4).Draw(t, "members"), Request: resource.Request{GPUs: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus"), CPU: 1000},
		Subject: &constraint.Subject{Namespace: "ml", Group: "g"},
	}
	switch rapid.IntRange(0, 3).Draw(t, "rules") {
	case 0:
		u.Topology = &topology.Rules{Levels: []topology.Level{{Key: "zone"}, {Key: "rack", Required: true}}}
	case 1:
		u.Subject = drawApartSubject(t)
	case 2:
		u.Subject.Relations = constraint.CompileRelations(constraint.RelationSpec{Spread: []constraint.Spread{{MaxSkew: 1, TopologyKey: "zone", Selector: constraint.Selector{OwnGroup: true}, Required: true}}})
	}
	if rapid.IntRange(0, 2).Draw(t, "members differ") == 0 {
		more := place.Set{Members: rapid.IntRange(1, 2).Draw(t, "more"), Request: resource.Request{CPU: 2000}}
		u.Sets = []place.Set{{Members: u.Members, Request: u.Request}, more}
		u.Members += more.Members
	}
	return u, rapid.SampledFrom(place.Policies()).Draw(t, "policy")
}

// learned is a Learner that has seen enough for the default policy.
func learned() *place.Learner {
	var l place.Learner
	for _, gpus := range []int{1, 2, 4, 8} {
		l.Observe(&place.Unit{Members: 64, Request: resource.Request{GPUs: gpus, CPU: 4000}})
	}
	return &l
}

// describe says all that is decided about a unit, and the kind of the outcome.
func describe(state *cluster.State, u place.Unit, holders []preempt.Holder) (text, kind string) {
	mark := state.Checkpoint()
	members, ok := place.Place(state, u)
	text = fmt.Sprintln("placed", ok, choicesOf(members))
	state.Rollback(mark)
	plan, found := preempt.Find(state, u, priority, holders)
	text += fmt.Sprintln("victims", found, plan.Victims, choicesOf(plan.Members))
	e := place.Explain(state, u)
	if e.Domain != nil {
		text += fmt.Sprintln("domain", *e.Domain)
	}
	e.Domain = nil
	text += fmt.Sprintf("explained %+v\n", e)
	switch {
	case ok:
		return text, "placed"
	case found:
		return text, "victims"
	}
	return text, "none"
}

func choicesOf(members []place.Choice) []string {
	var list []string
	for _, m := range members {
		list = append(list, fmt.Sprint(m.Index, m.Node.ID, m.Assignment))
	}
	return slices.Clip(list)
}
