package place_test

import (
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// TestUnitsThatDifferFoundADomainWithRoom: members with an affinity to each other go to a
// rack with room for all, also where the first member alone would choose another rack.
func TestUnitsThatDifferFoundADomainWithRoom(t *testing.T) {
	near := constraint.CompileRelations(constraint.RelationSpec{Affinity: []constraint.Near{{TopologyKey: "rack", Selector: constraint.Selector{OwnGroup: true}}}})
	request := func(gpus int) resource.Request { return resource.Request{GPUs: gpus, CPU: 1000} }
	for name, c := range map[string]struct {
		free  [3]int // GPUs by node; nodes 0 and 1 share a rack
		other bool   // another unit of the group runs on the last node
		want  string
	}{
		"the fuller rack has room for the first": {[3]int{3, 0, 2}, false, "node-00000 node-00000"},
		"the fuller rack has room for all":       {[3]int{4, 0, 3}, false, "node-00002 node-00002"},
		"two nodes of a rack have room for all":  {[3]int{2, 1, 2}, false, "node-00001 node-00000"},
		"no rack has room for all":               {[3]int{2, 0, 2}, false, ""},
		"the group has its rack already":         {[3]int{3, 0, 2}, true, ""},
	} {
		run := func(search func(state *cluster.State, s *constraint.Subject) []place.Choice) func(t *testing.T) {
			return func(t *testing.T) {
				state := cluster.NewState(dgx(t, 3)...)
				state.Relate("ml")
				s := &constraint.Subject{Namespace: "ml", Group: "job/j", Relations: near}
				for i, n := range state.Nodes() {
					state.Relabel(n, map[string]string{"rack": []string{"near", "near", "far"}[i]}, nil)
					var a resource.Assignment
					if used := 8 - c.free[i]; !n.Host.Assign(n.Free, request(used), &a) {
						t.Fatalf("node %d has no %d GPUs", i, used)
					} else if err := state.Take(n, a); err != nil {
						t.Fatal(err)
					}
				}
				if c.other {
					state.SetOccupant(&cluster.Occupant{Unit: "u", Subject: s, Status: cluster.Starting, Nodes: []resource.NodeID{"node-00002"}, Counts: []int32{1}})
				}
				if got := joinNodes(search(state, s)); got != c.want {
					t.Errorf("on %q, want %q", got, c.want)
				}
			}
		}
		t.Run("sets: "+name, run(func(state *cluster.State, s *constraint.Subject) []place.Choice {
			members, _ := place.Place(state, place.Unit{Members: 2, Request: request(1), Subject: s, Sets: []place.Set{{Members: 1, Request: request(1)}, {Members: 1, Request: request(2)}}})
			return members
		}))
		t.Run("units: "+name, run(func(state *cluster.State, s *constraint.Subject) (members []place.Choice) {
			plan, _ := place.Together(state, []place.Unit{{Members: 1, Request: request(1), Subject: s}, {Members: 1, Request: request(2), Subject: s}})
			for _, of := range plan {
				members = append(members, of...)
			}
			return members
		}))
	}
}
