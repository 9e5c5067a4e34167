package preempt_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/resource"
)

func gpus(n int) resource.Request { return resource.Request{GPUs: n, CPU: 1000} }

// held is one unit of a case: it starts before those after it.
type held struct {
	name     string
	priority int32
	members  int
	gpus     int
	newer    int64 // added to its age by position
	pinned   bool
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		hosts       int // of two GPUs
		held        []held
		change      func(nodes []*cluster.Node)
		members     int
		gpus        int
		priority    int32 // of the preemptor; 0 is 5
		wantVictims []string
		wantNone    bool
	}{
		"where there is room nobody gives way": {
			hosts: 1, held: []held{{name: "a", gpus: 1, members: 1}}, members: 1, gpus: 1,
		},
		"the lowest priority goes first": {
			hosts: 1, held: []held{{name: "a", priority: 2, gpus: 1, members: 1}, {name: "b", priority: 1, gpus: 1, members: 1}}, members: 1, gpus: 1,
			wantVictims: []string{"b"},
		},
		"of equal priority the newest goes first": {
			hosts: 1, held: []held{{name: "b", gpus: 1, members: 1}, {name: "a", gpus: 1, members: 1}}, members: 1, gpus: 1,
			wantVictims: []string{"a"},
		},
		"of equal age the greater name goes first": {
			hosts: 1, held: []held{{name: "a", gpus: 1, members: 1, newer: 1}, {name: "b", gpus: 1, members: 1}}, members: 1, gpus: 1,
			wantVictims: []string{"b"},
		},
		"one old unit goes before two new ones": {
			hosts: 2, held: []held{{name: "big", gpus: 2, members: 1}, {name: "x", gpus: 1, members: 1}, {name: "y", gpus: 1, members: 1}}, members: 1, gpus: 2,
			wantVictims: []string{"big"},
		},
		"two of low priority go before one of higher": {
			hosts: 2, held: []held{{name: "big", priority: 1, gpus: 2, members: 1}, {name: "x", gpus: 1, members: 1}, {name: "y", gpus: 1, members: 1}}, members: 1, gpus: 2,
			wantVictims: []string{"x", "y"},
		},
		"equal priority is not lower": {
			hosts: 1, held: []held{{name: "a", priority: 5, gpus: 2, members: 1}}, members: 1, gpus: 1, wantNone: true,
		},
		"a pinned unit stays": {
			hosts: 2, held: []held{{name: "a", priority: 3, gpus: 2, members: 1}, {name: "b", gpus: 2, members: 1, pinned: true}}, members: 1, gpus: 2,
			wantVictims: []string{"a"},
		},
		"a gang goes as a whole, for one of its devices": {
			hosts: 2, held: []held{{name: "gang", gpus: 2, members: 2}}, members: 1, gpus: 1,
			wantVictims: []string{"gang"},
		},
		"one gang goes before several units": {
			hosts: 4, held: []held{{name: "gang", gpus: 2, members: 2}, {name: "x", gpus: 2, members: 1}, {name: "y", gpus: 2, members: 1}}, members: 2, gpus: 2,
			wantVictims: []string{"gang"},
		},
		"a gang for which not everybody is gone finds no place": {
			hosts: 2, held: []held{{name: "a", gpus: 2, members: 1}, {name: "b", priority: 7, gpus: 2, members: 1}}, members: 2, gpus: 2, wantNone: true,
		},
		"what is free is used first": {
			hosts: 2, held: []held{{name: "a", gpus: 2, members: 1}}, members: 2, gpus: 2,
			wantVictims: []string{"a"},
		},
		"a node that is cordoned is not cleared": {
			hosts: 2, held: []held{{name: "a", gpus: 2, members: 1}, {name: "b", gpus: 2, members: 1}}, members: 1, gpus: 2,
			change: func(nodes []*cluster.Node) { nodes[1].Unschedulable = true }, wantVictims: []string{"a"},
		},
		"a node with a taint is not cleared": {
			hosts: 2, held: []held{{name: "a", gpus: 2, members: 1}, {name: "b", gpus: 2, members: 1}}, members: 1, gpus: 2,
			change: func(nodes []*cluster.Node) { taint(nodes[1]) }, wantVictims: []string{"a"},
		},
		"a gang with a member out of reach stays": {
			hosts: 3, held: []held{{name: "a", gpus: 2, members: 1}, {name: "gang", gpus: 2, members: 2}}, members: 1, gpus: 2,
			change: func(nodes []*cluster.Node) { nodes[2].Ready = false }, wantVictims: []string{"a"},
		},
		"an unhealthy device is not worth a victim": {
			hosts: 2, held: []held{{name: "a", gpus: 2, members: 1}, {name: "b", gpus: 2, members: 1}}, members: 1, gpus: 2,
			change: func(nodes []*cluster.Node) { nodes[1].Free.Unhealthy = 1 }, wantVictims: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := hostsOf(t, "gpu2", test.hosts)
			var holders []preempt.Holder
			for i, h := range test.held {
				holder, ok := start(nodes, h.name, h.priority, int64(i)+h.newer, h.members, gpus(h.gpus))
				if !ok {
					t.Fatalf("%s has no place", h.name)
				}
				holder.Pinned = h.pinned
				holders = append(holders, holder)
			}
			if test.change != nil {
				test.change(nodes)
			}
			priority := test.priority
			if priority == 0 {
				priority = 5
			}
			plan, ok := preempt.Find(cluster.NewState(nodes...), place.Unit{Members: test.members, Request: gpus(test.gpus)}, priority, holders)
			if ok == test.wantNone {
				t.Fatalf("found: %t %v", ok, plan.Victims)
			}
			if diff := cmp.Diff(test.wantVictims, plan.Victims); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHolderThatTheNodeDoesNotKnowFreesNothing(t *testing.T) {
	nodes := hostsOf(t, "gpu2", 1)
	a, _ := start(nodes, "a", 0, 1, 1, gpus(2))
	lost := a
	lost.Unit = "lost"
	lost.Parts = []preempt.Part{{Node: nodes[0].ID, Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 7, Milli: 1000}}}}}
	plan, ok := preempt.Find(cluster.NewState(nodes...), place.Unit{Members: 1, Request: gpus(2)}, 5, []preempt.Holder{lost, a})
	if want := []string{"a"}; !ok || !cmp.Equal(plan.Victims, want) {
		t.Errorf("victims %v, want %v", plan.Victims, want)
	}
	if _, ok := preempt.With(cluster.NewState(nodes...), place.Unit{Members: 1, Request: gpus(2)}, []preempt.Holder{lost}); ok {
		t.Error("a card that the host does not have made room")
	}
}

func ExampleFind() {
	nodes := hostsOf(panics{}, "gpu2", 2)
	batch, _ := start(nodes, "team/batch/0", 0, 10, 2, gpus(1))
	notebook, _ := start(nodes, "team/notebook/0", 0, 20, 1, gpus(2))

	plan, ok := preempt.Find(cluster.NewState(nodes...), place.Unit{Members: 1, Request: gpus(2)}, 100, []preempt.Holder{batch, notebook})
	fmt.Println(ok, plan.Victims, plan.Members[0].Node.ID, len(plan.Members[0].Assignment.GPUs))
	// Output: true [team/notebook/0] node-0001 2
}

// panics lets an example, which has no testing.T, make hosts.
type panics struct{}

func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
