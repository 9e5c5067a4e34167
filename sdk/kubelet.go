package sdk

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterd/muster/api"
)

// KubeletGrant is a device that is in the pool of a host's kubelet: Muster's own work does
// not get it.
type KubeletGrant struct {
	// Node is the node's name, Device the UUID of a GPU or MIG instance.
	Node   string `json:"node"`
	Device string `json:"device"`
	// State is Free (no container has the device), Lent (a container may have it) or
	// Leaving (the device leaves the pool once no container has it).
	State string `json:"state"`
	// Since is the time at which the device became Free or Lent, in RFC 3339; "" where it
	// is not known.
	Since string `json:"since,omitempty"`
	// Containers have the device, or a share of it; none where the kubelet has named none.
	Containers []api.KubeletContainer `json:"containers,omitempty"`
}

// KubeletGrants are those of all nodes.
type KubeletGrants struct {
	// Items are ordered by node and device.
	Items []KubeletGrant
	// Hidden counts the nodes with a pool whose devices are not in the answer: to see them
	// takes a role in the whole cluster, and an agent that has reported them since the
	// election of the leader. More counts the containers that no node has named.
	Hidden, More int
}

// KubeletGrants returns the devices in the pools of all kubelets, with their containers,
// as the agents have reported them last. Any coordinator answers; no leader is needed.
func (n Nodes) KubeletGrants(ctx context.Context) (KubeletGrants, error) {
	list, err := n.List(ctx, ListOptions{})
	if err != nil {
		return KubeletGrants{}, err
	}
	return kubeletGrantsOf(list.Items), nil
}

func kubeletGrantsOf(nodes []api.Node) KubeletGrants {
	all := KubeletGrants{Items: []KubeletGrant{}}
	for i := range nodes {
		n := &nodes[i]
		if n.Status.Kubelet == nil {
			if slices.ContainsFunc(n.Status.Conditions, func(c api.Condition) bool { return c.Type == "KubeletPool" }) {
				all.Hidden++
			}
			continue
		}
		all.More += n.Status.Kubelet.MoreContainers
		for _, d := range n.Status.Kubelet.Devices {
			if d.State != "Joining" { // other work has it, or the host does not show it
				all.Items = append(all.Items, KubeletGrant{Node: n.Metadata.Name, Device: d.UUID, State: d.State, Since: d.Since, Containers: d.Containers})
			}
		}
	}
	slices.SortStableFunc(all.Items, func(a, b KubeletGrant) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Device, b.Device))
	})
	return all
}
