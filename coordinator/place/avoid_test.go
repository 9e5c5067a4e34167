package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

func TestPlaceAvoidsNodesThatFailed(t *testing.T) {
	cases := map[string]struct {
		avoid   map[resource.NodeID]int
		prepare func([]*cluster.Node) // three empty nodes of 8 GPUs
		members int
		want    []int
	}{
		"the node that failed is left while others fit": {
			map[resource.NodeID]int{"node-00000": 1}, func([]*cluster.Node) {}, 1, []int{1},
		},
		"however well it fits": {
			map[resource.NodeID]int{"node-00001": 1}, func(n []*cluster.Node) { use(n[1], 7) }, 1, []int{0},
		},
		"it is chosen where no other has room": {
			map[resource.NodeID]int{"node-00000": 1}, func(n []*cluster.Node) { use(n[1], 8); use(n[2], 8) }, 1, []int{0},
		},
		"of several the one that failed least often": {
			map[resource.NodeID]int{"node-00000": 3, "node-00001": 1, "node-00002": 2}, func([]*cluster.Node) {}, 1, []int{1},
		},
		"a gang takes it last": {
			map[resource.NodeID]int{"node-00000": 1}, func([]*cluster.Node) {}, 17, []int{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0},
		},
		"a node that is tripped for all is rather taken than one that failed for this unit": {
			map[resource.NodeID]int{"node-00000": 1, "node-00001": 1}, func(n []*cluster.Node) { n[2].Tripped, n[2].Suspect = true, true }, 1, []int{2},
		},
		"a node that gossip suspects is rather taken than one that is tripped": {
			nil, func(n []*cluster.Node) { n[0].Tripped, n[1].Suspect = true, true; use(n[2], 8) }, 1, []int{1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			nodes := dgx(t, 3)
			c.prepare(nodes)
			members, ok := place.Place(cluster.NewState(nodes...), place.Unit{Members: c.members, Request: oneGPU, Avoid: c.avoid})
			if !ok {
				t.Fatal("no place")
			}
			var got []int
			for _, m := range members {
				for i, n := range nodes {
					if n == m.Node {
						got = append(got, i)
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}
