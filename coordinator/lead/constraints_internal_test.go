package lead

import (
	"testing"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// TestTheViewHoldsLabelsOfItsNodesAlone: a node that changes its labels for ever,
// and one that is deleted, leave nothing in the view's table.
func TestTheViewHoldsLabelsOfItsNodesAlone(t *testing.T) {
	v := view{nodes: map[resource.NodeID]*node{}, state: cluster.NewState()}
	a, b := v.node("a"), v.node("b")
	for rev, zone := range []string{"x", "y", "x", "z"} {
		for _, n := range []*node{a, b} {
			n.setSpec(record.NodeSpec{Labels: map[string]string{"zone": zone}, Taints: []record.Taint{{Key: zone, Effect: "NoSchedule"}}}, resource.Revision(rev+1))
		}
		if v.state.LabelSets() != 2 { // each has its name for a label
			t.Errorf("zone %s: %d labels for two nodes", zone, v.state.LabelSets())
		}
		if got := a.view.Labels.Values()["zone"]; got != zone {
			t.Errorf("zone %q, want %q", got, zone)
		}
	}
	v.removeNode("a")
	v.removeNode("a")
	if v.state.LabelSets() != 1 {
		t.Errorf("%d labels for one node", v.state.LabelSets())
	}
}
