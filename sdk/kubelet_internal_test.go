package sdk

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

func TestTheGrantsOfAllKubelets(t *testing.T) {
	pod := api.KubeletContainer{Namespace: "ml", Pod: "notebook-0", Container: "main", Unit: "GPU-b"}
	pooled := []api.Condition{{Type: "Ready", Status: "True"}, {Type: "KubeletPool", Status: "True"}}
	node := func(name string, conditions []api.Condition, k *api.KubeletStatus) api.Node {
		return api.Node{Metadata: api.ObjectMeta{Name: name}, Status: api.NodeStatus{Conditions: conditions, Kubelet: k}}
	}
	got := kubeletGrantsOf([]api.Node{
		node("n2", pooled, &api.KubeletStatus{MoreContainers: 3, Devices: []api.KubeletDevice{{UUID: "GPU-c", State: "Leaving"}}}),
		node("n1", pooled, &api.KubeletStatus{Devices: []api.KubeletDevice{
			{UUID: "GPU-b", State: "Lent", Since: "2026-03-01T12:00:00Z", Containers: []api.KubeletContainer{pod}}, {UUID: "GPU-a", State: "Free", Configured: true},
			{UUID: "GPU-j", State: "Joining", Holder: "job default/train"},
		}}),
		node("n3", nil, nil),
		node("n4", pooled, nil),
	})
	want := KubeletGrants{Hidden: 1, More: 3, Items: []KubeletGrant{
		{Node: "n1", Device: "GPU-a", State: "Free"},
		{Node: "n1", Device: "GPU-b", State: "Lent", Since: "2026-03-01T12:00:00Z", Containers: []api.KubeletContainer{pod}},
		{Node: "n2", Device: "GPU-c", State: "Leaving"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
