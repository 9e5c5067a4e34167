package coordinator

import (
	"context"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// ListNodes implements rest.Nodes.
func (c *Coordinator) ListNodes(ctx context.Context) (*api.NodeList, error) {
	return see(ctx, c, func(v *view) (*api.NodeList, *api.Status) {
		list := &api.NodeList{Kind: "NodeList", Metadata: api.ListMeta{ResourceVersion: v.newest()}, Items: []api.Node{}}
		for _, at := range v.order {
			list.Items = append(list.Items, *v.nodeObject(v.nodes[at.ID]))
		}
		return list, nil
	})
}

// GetNode implements rest.Nodes.
func (c *Coordinator) GetNode(ctx context.Context, name string) (*api.Node, error) {
	return see(ctx, c, func(v *view) (*api.Node, *api.Status) {
		n := v.nodes[resource.NodeID(name)]
		if n == nil {
			return nil, api.Errorf(404, "node %s not found", name)
		}
		return v.nodeObject(n), nil
	})
}

// nodeObject shows a node; an independent copy.
func (v *view) nodeObject(n *node) *api.Node {
	o := &api.Node{APIVersion: "v1", Kind: "Node"}
	o.Metadata = api.ObjectMeta{
		Name: string(n.view.ID), UID: "node-" + string(n.view.ID), Labels: n.view.Labels, CreationTimestamp: n.spec.Created,
		ResourceVersion: strconv.FormatInt(int64(n.specRev), 10), Annotations: n.spec.Annotations,
	}
	o.Spec = api.NodeSpec{
		Capacity: api.Amounts(n.spec.Capacity), Allocatable: api.Amounts(n.spec.Allocatable), Unschedulable: n.spec.Unschedulable,
	}
	for _, t := range n.spec.Taints {
		o.Spec.Taints = append(o.Spec.Taints, api.Taint(t))
	}
	s := &o.Status
	if n.stored != nil {
		n.stored.show(n, s)
	} else {
		n.showPhase(s)
	}
	n.showBreaker(s)
	n.showAdmission(s)
	n.showSaid(v.saidBy(n), s)
	if n.spec.Hostname != "" {
		s.Addresses = append(s.Addresses, api.NodeAddress{Type: "Hostname", Address: n.spec.Hostname})
	}
	if n.spec.AgentAddr != "" {
		s.Addresses = append(s.Addresses, api.NodeAddress{Type: "Agent", Address: n.spec.AgentAddr})
	}
	if !n.incarnation.IsZero() {
		i := n.incarnation
		s.Incarnation = &i
	}
	if n.usage != nil {
		s.Usage = api.Amounts(n.usage)
	}
	v.showHost(n, s)
	for tx := range n.held {
		if a := v.attempts[tx]; a != nil {
			for _, m := range n.held[tx].members {
				s.Allocations = append(s.Allocations, a.unit.record.Namespace+"/"+a.unit.memberName(m.Index))
			}
		}
	}
	slices.Sort(s.Allocations)
	return o
}

// showPhase adds whether the node takes new work, as its agent's stream tells.
func (n *node) showPhase(s *api.NodeStatus) {
	ready := api.Condition{Type: "Ready", Status: "True", Reason: "AgentReady"}
	s.Phase = "Ready"
	switch {
	case n.showBan(s, &ready):
	case n.showFence(s, &ready):
	case n.showViolation(s, &ready):
	case !n.connected && n.unheard:
		n.leaseExpired(s, &ready)
	case !n.connected:
		s.Phase, ready.Status, ready.Reason, ready.Message = "NotReady", "False", "AgentUnreachable", "no stream to the agent"
	case showQuarantine(n.quarantine, s, &ready):
	case n.revision == 0:
		s.Phase, ready.Status, ready.Reason, ready.Message = "Unregistered", "False", "Unregistered", "the agent has not registered yet"
	case n.diskFull:
		s.Phase, ready.Status, ready.Reason, ready.Message = "NotReady", "False", "DiskFull", "the agent's journal or its assignment files have no room (its condition DiskPressure tells which); releases still work"
	case !n.specified():
		s.Phase, ready.Status, ready.Reason, ready.Message = "NotReady", "False", "RegistrationUnread", unread
	case !n.unregistered.IsZero():
		s.Phase, ready.Status, ready.Reason, ready.Message = "NotReady", "False", hostDiffers, n.beyond()
	}
	s.Conditions = append([]api.Condition{ready}, s.Conditions...)
}

// showHost adds the hardware and how much of it is free.
func (v *view) showHost(n *node, s *api.NodeStatus) {
	if n.view.Free == nil {
		return
	}
	s.Available = api.Amounts(n.view.Host.FreeVector(n.view.Free))
	for i, node := range n.host.Topology.Nodes {
		if node.MemoryOnly {
			continue
		}
		free := n.view.Host.FreeCPU(n.view.Free, i)
		s.NUMANodes = append(s.NUMANodes, api.NUMAStatus{
			ID: node.ID, CPUs: node.CPUs.String(), FreeCPU: resource.FormatAmount(resource.CPU, int64(free)),
			FreeCores: n.view.Host.WholeFreeCores(n.view.Free, i),
			Memory:    resource.FormatBytes(node.Memory), FreeMemory: resource.FormatBytes(n.view.Free.Memory[i]),
			FreeHugepages: n.freeHugepages(i),
		})
	}
	for i := range n.host.Inventory.Devices {
		s.Devices = append(s.Devices, n.deviceStatus(i))
	}
}

// freeHugepages is what is free on the NUMA node at a position, of the page
// sizes that it has.
func (n *node) freeHugepages(at int) map[resource.Name]string {
	var free map[resource.Name]string
	for _, size := range n.view.Host.PageSizes() {
		if n.host.Topology.Nodes[at].Hugepages[int(size>>10)] == 0 {
			continue
		}
		if free == nil {
			free = map[resource.Name]string{}
		}
		free[resource.Hugepages(size)] = resource.FormatBytes(n.view.Host.HugepagesOn(n.view.Free, at, size))
	}
	return free
}

// deviceStatus shows a device, its instances and what is free of them.
func (n *node) deviceStatus(at int) api.DeviceStatus {
	d, health := &n.host.Inventory.Devices[at], n.health[at]
	s := api.DeviceStatus{
		Index: at, UUID: d.UUID, Model: d.Model, Memory: resource.FormatBytes(d.Memory), NUMANode: d.NUMANode,
		Health: health.Health.String(), HealthReason: health.Reason, Free: n.view.Free.GPU[at],
	}
	if !d.MIG.Enabled {
		return s
	}
	s.MIG = &api.MIGMode{}
	for k, g := range d.MIG.Instances {
		s.MIG.Instances = append(s.MIG.Instances, api.MIGInstance{
			UUID: g.UUID, Profile: g.Profile, Memory: resource.FormatBytes(g.Memory), Free: n.view.Free.MIG[at]&(1<<k) != 0,
		})
	}
	return s
}
