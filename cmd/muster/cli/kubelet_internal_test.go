package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

func TestTheLastWishForADeviceWins(t *testing.T) {
	for name, c := range map[string]struct {
		has                 *api.KubeletPool
		change              poolChange
		wantAdd, wantRemove []string
	}{
		"the first device":                          {nil, poolChange{add: []string{"a"}}, []string{"a"}, []string{}},
		"one more device":                           {&api.KubeletPool{Add: []string{"a"}}, poolChange{add: []string{"b"}}, []string{"a", "b"}, []string{}},
		"a device that is there already":            {&api.KubeletPool{Add: []string{"a"}}, poolChange{add: []string{"a"}}, []string{"a"}, []string{}},
		"a device that was removed before":          {&api.KubeletPool{Remove: []string{"a", "b"}}, poolChange{add: []string{"a"}}, []string{"a"}, []string{"b"}},
		"a device that was added before leaves":     {&api.KubeletPool{Add: []string{"a", "b"}}, poolChange{remove: []string{"a"}}, []string{"b"}, []string{"a"}},
		"one device joins while another one leaves": {nil, poolChange{add: []string{"a"}, remove: []string{"b"}}, []string{"a"}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.change.over(c.has)
			if diff := cmp.Diff(api.KubeletPatch{Add: &c.wantAdd, Remove: &c.wantRemove}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheProgressOfADevice(t *testing.T) {
	device := func(d api.KubeletDevice) *api.Node {
		n := &api.Node{}
		switch d.UUID = "a"; d.State {
		case "no report":
		case "":
			n.Status.Kubelet = &api.KubeletStatus{}
		default:
			n.Status.Kubelet = &api.KubeletStatus{Devices: []api.KubeletDevice{d}}
		}
		return n
	}
	add, remove := poolChange{add: []string{"a"}}, poolChange{remove: []string{"a"}}
	pod := []api.KubeletContainer{{Namespace: "default", Pod: "p", Container: "main"}}
	for name, c := range map[string]struct {
		change poolChange
		device api.KubeletDevice
		want   string
		done   bool
	}{
		"added, and not reported":    {add, api.KubeletDevice{}, "a: the agent has not reported the device in the pool yet", false},
		"added, and held by work":    {add, api.KubeletDevice{State: "Joining", Holder: "default/train-0"}, "a joins the pool when the device is free: default/train-0 has it", false},
		"added, and lost":            {add, api.KubeletDevice{State: "Joining"}, "a joins the pool when the host shows the device, and shows it free", false},
		"added, and there":           {add, api.KubeletDevice{State: "Free"}, "a is in the pool, and is free", true},
		"added, and lent":            {add, api.KubeletDevice{State: "Lent"}, "a is in the pool, and is lent", true},
		"removed before any report":  {remove, api.KubeletDevice{State: "no report"}, "a is in no pool that the agent has reported; the change counts for later reports", true},
		"added before any report":    {add, api.KubeletDevice{State: "no report"}, "a: the agent has not reported the device in the pool yet", false},
		"removed, and not reported":  {remove, api.KubeletDevice{State: "Lent"}, "a: the agent has not reported yet that the device leaves", false},
		"removed, and a pod has it":  {remove, api.KubeletDevice{State: "Leaving", Containers: pod}, "a leaves the pool when no container has it: default/p/main", false},
		"removed, and no pod has it": {remove, api.KubeletDevice{State: "Leaving"}, "a leaves the pool when the kubelet's lists have shown that no container has it (up to 50 s)", false},
		"removed, and gone":          {remove, api.KubeletDevice{}, "a is not in the pool", true},
	} {
		t.Run(name, func(t *testing.T) {
			want := []poolStep{{"a", c.want, c.done}}
			if diff := cmp.Diff(want, c.change.progress(device(c.device)), cmp.AllowUnexported(poolStep{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
