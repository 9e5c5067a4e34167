package cluster_test

import (
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

func TestOfferedGrowsWithWhatEmptyNodesWouldOffer(t *testing.T) {
	small, large := hostOf(t, "gpu2"), hostOf(t, "dgx-a100")
	for name, c := range map[string]struct {
		do   func(*cluster.State, *cluster.Node)
		want bool
	}{
		"a node comes":                  {func(s *cluster.State, _ *cluster.Node) { s.Insert(freeNode("b", small)) }, true},
		"a node goes":                   {func(s *cluster.State, n *cluster.Node) { s.Remove(n.ID) }, true},
		"a node that is not there goes": {func(s *cluster.State, _ *cluster.Node) { s.Remove("z") }, false},
		"other hardware":                {func(s *cluster.State, n *cluster.Node) { s.Reset(n, large, 0) }, true},
		"the same hardware once more":   {func(s *cluster.State, n *cluster.Node) { s.Reset(n, hostOf(t, "gpu2"), 0) }, false},
		"another registered capacity":   {func(s *cluster.State, n *cluster.Node) { s.SetRegistered(n, resource.Vector{resource.CPU: 1}) }, true},
		"the registered capacity again": {func(s *cluster.State, n *cluster.Node) { s.SetRegistered(n, resource.Vector{}) }, false},
		"a label":                       {func(s *cluster.State, n *cluster.Node) { s.Relabel(n, map[string]string{"zone": "a"}, nil) }, true},
		"a taint": {func(s *cluster.State, n *cluster.Node) {
			s.Relabel(n, nil, []constraint.Taint{{Key: "k", Effect: "NoSchedule"}})
		}, true},
		"no other label":                   {func(s *cluster.State, n *cluster.Node) { s.Relabel(n, nil, nil) }, false},
		"the node is cordoned":             {func(s *cluster.State, n *cluster.Node) { s.SetUnschedulable(n, true) }, false},
		"the node is not ready":            {func(s *cluster.State, n *cluster.Node) { s.SetReady(n, false) }, false},
		"a device of the node is not well": {func(s *cluster.State, n *cluster.Node) { s.SetUnhealthy(n, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := freeNode("a", small)
			s := cluster.NewState(n)
			s.Relabel(n, nil, nil)
			before := s.Offered()
			if c.do(s, n); (s.Offered() != before) != c.want {
				t.Errorf("offered went from %d to %d, want a change: %t", before, s.Offered(), c.want)
			}
		})
	}
}
