package coordinator_test

import (
	"slices"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

// TestTheKubeletsPoolOutlivesCoordinatorsAndAgents: the operators' part of the pool is in
// force under the next leader and through a restart of the agent, and its end reaches an
// agent that was away.
func TestTheKubeletsPoolOutlivesCoordinatorsAndAgents(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		states := func() map[string]string {
			n, err := c.Leader().GetNode(t.Context(), "n1")
			if err != nil || n.Status.Kubelet == nil {
				return nil
			}
			m := map[string]string{}
			for _, d := range n.Status.Kubelet.Devices {
				m[d.UUID] = d.State
			}
			return m
		}
		n, err := k.GetNode(t.Context(), "n1")
		if err != nil {
			t.Fatal(err)
		}
		first, second := n.Status.Devices[0].UUID, n.Status.Devices[1].UUID
		patch := func(add, remove []string) *api.Node {
			t.Helper()
			n, err := c.Leader().PatchNode(t.Context(), "n1", api.NodePatch{Kubelet: api.KubeletPatch{Add: &add, Remove: &remove}})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n = patch([]string{first}, []string{second}); n.Spec.Kubelet == nil || !slices.Equal(n.Spec.Kubelet.Add, []string{first}) || !slices.Equal(n.Spec.Kubelet.Remove, []string{second}) {
			t.Errorf("the node shows %+v", n.Spec.Kubelet)
		}
		free := func() bool { m := states(); return len(m) == 1 && m[first] == "Free" }
		c.Eventually("the device is in the pool", free)
		k.Crash()
		c.Agent("n1").Reboot()
		c.StartCoordinator("c2")
		c.Eventually("the device is in the pool under the next leader", free)
		if n, err := c.Leader().GetNode(t.Context(), "n1"); err != nil || n.Spec.Kubelet == nil {
			t.Errorf("after the election and a registration the wish is %+v, %v", n.Spec.Kubelet, err)
		}
		c.Agent("n1").Crash()
		patch(nil, nil)
		c.StartAgent("n1")
		c.Eventually("the device is no more in the pool", func() bool { return len(states()) == 0 })
		if n, err := c.Leader().GetNode(t.Context(), "n1"); err != nil || n.Spec.Kubelet != nil {
			t.Errorf("after its withdrawal the wish is %+v, %v", n.Spec.Kubelet, err)
		}
		_, err = c.Leader().PatchNode(t.Context(), "n1", api.NodePatch{Kubelet: api.KubeletPatch{Add: &[]string{"GPU-none"}}})
		refused(t, err, 422, "node n1 has no device GPU-none; it has GPU-")
		_, err = c.Leader().PatchNode(t.Context(), "n1", api.NodePatch{Kubelet: api.KubeletPatch{Add: &[]string{first}, Remove: &[]string{first}}})
		refused(t, err, 422, "device "+first+" is listed in spec.kubelet.add[0] already")
	})
}
