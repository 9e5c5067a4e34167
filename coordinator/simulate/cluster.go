package simulate

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Cluster is nodes that many runs may share.
type Cluster struct {
	nodes    []Node
	hosts    []*fit.Host // by node
	capacity int64       // of GPUs, in milli
}

// NewCluster makes the hosts of the nodes: each with one NUMA node, and with GPUs that
// are all linked alike.
func NewCluster(nodes []Node) (*Cluster, error) {
	c := &Cluster{nodes: nodes, hosts: make([]*fit.Host, len(nodes))}
	made := map[Node]*fit.Host{}
	for i, n := range nodes {
		n.Name = ""
		if made[n] == nil {
			host, err := newHost(n)
			if err != nil {
				return nil, fmt.Errorf("node %s: %w", nodes[i].Name, err)
			}
			made[n] = host
		}
		c.hosts[i] = made[n]
		c.capacity += int64(n.GPUs) * int64(resource.WholeDevice)
	}
	return c, nil
}

func newHost(n Node) (*fit.Host, error) {
	cpus := int(n.CPU / resource.WholeCPU)
	t := &numa.Topology{Nodes: []numa.Node{{Memory: n.Memory}}}
	for id := range cpus {
		var self bitset.Set
		self.Add(id)
		t.CPUs = append(t.CPUs, numa.CPU{ID: id, Core: id, Online: true, Siblings: self})
		t.Nodes[0].CPUs.Add(id)
	}
	inv := &devices.Inventory{Links: make([][]devices.Link, n.GPUs)}
	for i := range n.GPUs {
		inv.Devices = append(inv.Devices, devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-00000000-0000-0000-0000-%012x", i), Model: n.Model, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i),
		})
		inv.Links[i] = make([]devices.Link, n.GPUs)
		for j := range n.GPUs {
			if i != j {
				inv.Links[i][j] = devices.LinkPHB
			}
		}
	}
	return fit.NewHostLike(nil, t, inv, fit.Reserved{})
}

// The labels of the nodes.
const productLabel = "nvidia.com/gpu.product"

// state returns the empty cluster as the scheduler sees it.
func (c *Cluster) state() *cluster.State {
	var table constraint.Table
	state := cluster.NewState()
	for i := range c.nodes {
		n := &c.nodes[i]
		labels := map[string]string{}
		if n.GPUs > 0 {
			labels[productLabel] = devices.ProductLabel(n.Model)
		}
		state.Insert(&cluster.Node{ID: resource.NodeID(n.Name), Ready: true, Host: c.hosts[i], Free: c.hosts[i].NewFree(), Labels: table.Intern(labels, nil)})
	}
	return state
}

// units makes the units of pods. Pods that may run on the same models share their
// constraints.
func units(pods []Pod) []place.Unit {
	sets := map[string]*constraint.Set{}
	list := make([]place.Unit, len(pods))
	for i := range pods {
		p := &pods[i]
		list[i] = place.Unit{Members: 1, Request: resource.Request{CPU: p.CPU, Memory: p.Memory, GPUs: p.GPUs, GPUShare: p.Share, NUMA: resource.NUMANone}}
		if len(p.Models) == 0 {
			continue
		}
		key := strings.Join(p.Models, "|")
		if sets[key] == nil {
			products := make([]string, len(p.Models))
			for j, m := range p.Models {
				products[j] = devices.ProductLabel(m)
			}
			sets[key] = constraint.Compile(constraint.Spec{Required: []constraint.Term{{{Key: productLabel, Operator: constraint.In, Values: products}}}})
		}
		list[i].Constraints = sets[key]
	}
	return list
}
