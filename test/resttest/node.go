package resttest

import (
	"fmt"
	"time"

	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Node describes one host of the cluster. Each of its CPUs is a core, and hosts
// of more than 8 CPUs have two NUMA nodes.
type Node struct {
	Name   resource.NodeID
	CPUs   int
	Memory resource.Bytes
	GPUs   int
	Labels map[string]string
}

// register registers a node as its agent would, and starts that.
func (c *Cluster) register(n Node) *alone.Agent {
	host := n.host()
	f, err := fit.NewHost(host.Topology, host.Inventory, fit.Reserved{})
	must(err)
	spec := record.NodeSpec{
		Hostname: host.Hostname, Allocatable: f.Allocatable(), Capacity: admission.CapacityOf(host, f.Allocatable()),
		Created: c.time().UTC().Format(time.RFC3339), Topology: rpc.SummaryOf(host),
	}
	spec.Labels, spec.IgnoredLabels = admission.AgentLabels(admission.RegisteredAs(n.Name, spec), host.Labels)
	who := resource.Incarnation{JournalID: "journal-of-" + string(n.Name), BootID: "boot-of-" + string(n.Name)}
	at := c.write(record.Txn{Then: []record.Op{
		record.Put(record.NodeSpecKey(n.Name), record.MustEncode(spec)),
		record.Put(record.NodeIdentityKey(n.Name), record.MustEncode(record.NodeIdentity{Incarnation: who})),
		record.Put(record.NodeLeaseKey(n.Name), record.MustEncode(record.NodeLease{Coordinator: "resttest"})),
	}})
	return alone.NewAgent(n.Name, host, f, who, at, c.time())
}

// host is a node's hardware.
func (n Node) host() grant.Host {
	domains := 1
	if n.CPUs > 8 {
		domains = 2
	}
	t := &numa.Topology{}
	for id := range domains {
		t.Nodes = append(t.Nodes, numa.Node{ID: id, Memory: n.Memory / resource.Bytes(domains)})
		row := make([]int, domains)
		for other := range row {
			row[other] = 21
		}
		row[id] = 10
		t.Distances = append(t.Distances, row)
	}
	for id := range n.CPUs {
		at := id * domains / n.CPUs
		t.CPUs = append(t.CPUs, numa.CPU{ID: id, Socket: at, Core: id, L3: at, NUMA: at, Online: true, Siblings: bitset.Of(id)})
		t.Nodes[at].CPUs.Add(id)
	}
	inventory := &devices.Inventory{}
	for i := range n.GPUs {
		inventory.Devices = append(inventory.Devices, devices.Device{
			Index: i, UUID: n.uuid(i), Model: "Test GPU 40GB", Memory: 40 << 30, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i), NUMANode: i * domains / n.GPUs,
		})
		row := make([]devices.Link, n.GPUs)
		for other := range row {
			if other != i {
				row[other] = devices.LinkSYS
			}
		}
		inventory.Links = append(inventory.Links, row)
	}
	return grant.Host{Hostname: string(n.Name), Topology: t, Inventory: inventory, Labels: n.Labels}
}

// uuid is a GPU's, made from its place.
func (n Node) uuid(index int) string {
	var sum uint32
	for _, b := range []byte(n.Name) {
		sum = sum*31 + uint32(b)
	}
	return fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", sum, index)
}
