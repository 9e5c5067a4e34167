package resttest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// ListNodes implements rest.Nodes.
func (c *Cluster) ListNodes(context.Context) (*api.NodeList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &api.NodeList{Metadata: api.ListMeta{ResourceVersion: strconv.Itoa(c.revision)}}
	for _, h := range c.nodes {
		list.Items = append(list.Items, c.node(h))
	}
	return list, nil
}

// node shows a host as the API does.
func (c *Cluster) node(h *host) api.Node {
	all := resource.Vector{
		resource.CPU: int64(h.CPUs) * 1000, resource.Memory: int64(h.Memory), resource.GPU: int64(h.GPUs) * 1000,
	}
	free := resource.Vector{resource.Memory: int64(h.memory)}
	n := api.Node{
		APIVersion: api.APIVersion, Kind: api.KindNode,
		Metadata: api.ObjectMeta{
			Name: string(h.Name), Labels: h.labels(), Annotations: h.annotations, CreationTimestamp: c.stamp(), ResourceVersion: strconv.Itoa(1 + h.version),
		},
		Spec: api.NodeSpec{Capacity: api.Amounts(all), Allocatable: api.Amounts(all), Unschedulable: h.unschedulable, Taints: h.taints},
		Status: api.NodeStatus{
			OperatorLabels: h.operator,
			Phase:          "Ready",
			Conditions:     []api.Condition{{Type: "Ready", Status: "True"}},
			NUMANodes:      []api.NUMAStatus{{ID: 0, CPUs: fmt.Sprintf("0-%d", h.CPUs-1), Memory: resource.FormatBytes(h.Memory), FreeMemory: resource.FormatBytes(h.memory)}},
		},
	}
	for _, milli := range h.cpu { // each a core of its own
		free[resource.CPU] += int64(milli)
		if milli == resource.WholeCPU {
			n.Status.NUMANodes[0].FreeCores++
		}
	}
	for i, milli := range h.gpu {
		free[resource.GPU] += int64(milli)
		n.Status.Devices = append(n.Status.Devices, api.DeviceStatus{
			Index: i, UUID: h.uuid(i), Model: "Test GPU 40GB", Memory: "40Gi", Health: "ok", Free: milli,
		})
	}
	n.Status.NUMANodes[0].FreeCPU = resource.FormatAmount(resource.CPU, free[resource.CPU])
	n.Status.Available = api.Amounts(free)
	for key, a := range c.allocations {
		if a.Status.NodeID == h.Name {
			n.Status.Allocations = append(n.Status.Allocations, key)
		}
	}
	slices.Sort(n.Status.Allocations)
	return n
}

func (c *Cluster) host(name string) (*host, error) {
	for _, h := range c.nodes {
		if string(h.Name) == name {
			return h, nil
		}
	}
	return nil, api.Errorf(http.StatusNotFound, "node %q not found", name)
}

// GetNode implements rest.Nodes.
func (c *Cluster) GetNode(_ context.Context, name string) (*api.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.host(name)
	if err != nil {
		return nil, err
	}
	n := c.node(h)
	return &n, nil
}

// PatchNode implements rest.Nodes.
func (c *Cluster) PatchNode(_ context.Context, name string, p api.NodePatch) (*api.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.host(name)
	if err != nil {
		return nil, err
	}
	if n := c.node(h); p.ResourceVersion != "" && p.ResourceVersion != n.Metadata.ResourceVersion {
		return nil, api.Errorf(http.StatusConflict, "node %s is at resourceVersion %s, the change is for %s: look at the node and ask again", name, n.Metadata.ResourceVersion, p.ResourceVersion)
	}
	labels, annotations := p.Labels.Apply(h.operator), p.Annotations.Apply(h.annotations)
	if status := api.CheckNodeLabels("metadata.labels", labels); status != nil {
		return nil, status
	}
	if status := api.CheckAnnotations("metadata.annotations", annotations); status != nil {
		return nil, status
	}
	h.operator, h.annotations = labels, annotations
	if p.Taints != nil {
		h.taints = *p.Taints
	}
	if p.Unschedulable != nil {
		h.unschedulable = *p.Unschedulable
	}
	h.version++
	c.schedule()
	c.touch()
	n := c.node(h)
	return &n, nil
}

// ApproveNode implements rest.Nodes. Whatever the nodes have here is approved.
func (c *Cluster) ApproveNode(ctx context.Context, name string, o api.ApproveOptions) (*api.Node, error) {
	n, err := c.GetNode(ctx, name)
	if err == nil && o.ResourceVersion != "" && o.ResourceVersion != n.Metadata.ResourceVersion {
		return nil, api.Errorf(http.StatusConflict, "node %s is at resourceVersion %s, the change is for %s: look at the node and ask again", name, n.Metadata.ResourceVersion, o.ResourceVersion)
	}
	return n, err
}
