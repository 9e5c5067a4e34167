package shown

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// Node is a node.
type Node struct {
	ID       resource.NodeID
	Spec     *record.NodeSpec
	Revision resource.Revision // of the specification; 0: there is none
	Labels   map[string]string // of all layers
	Hardware

	Incarnation resource.Incarnation
	Registered  bool           // an incarnation of its is
	Unheard     bool           // its lease is over
	Lease       record.LeaseID // of its agent's heartbeats, 0 where that is over
	Ban         *record.Ban
	Fence       *Fence
	Violation   *record.Violation // why it is isolated
	// Unapproved is the registered capacity beyond the approved one.
	Unapproved admission.Growth
	// Told are the conditions that its agent told last.
	Told []record.Condition
	// Beside lists the other nodes with the same agent address, and Now is the
	// present time.
	Beside []Neighbour
	Now    time.Time
	// Allocations are the members that hold something there, in any order.
	Allocations []string

	// Stream is what the agent's stream tells; nil at followers. Without it
	// Available is what is not granted of the node by the store's keys.
	Stream    *Stream
	Available resource.Vector
}

// Stream is what only a leader knows of a node.
type Stream struct {
	Connected  bool
	Quarantine string // why the agent promises nothing, "" while it does
	DiskFull   bool
	// MemoryPressure: the host is short of memory.
	MemoryPressure bool
	Unread         bool // the specification is older than the registration
	// Unregistered is the capacity of the stream's host beyond the registered one.
	Unregistered admission.Growth
	// Suspicion says why the node is the last choice, "" where it is not for
	// failures.
	Suspicion string
	// Host and Free are the hardware in numbers and what is free of it; nil as
	// long as no stream was open.
	Host   *fit.Host
	Free   *fit.Free
	Health map[int]Health // by index; devices that are ok are left out
	// Withheld has the bit of each device that an operator keeps from new work.
	Withheld uint64
	Usage    resource.Vector // measured on the host; nil: not heard yet
	Uses     []devices.Use   // of its devices and MIG instances, as the host claims
}

// Health is a device's health, and why it is not ok.
type Health struct {
	Health devices.Health
	Reason string
}

// Fence is what the store says against a node's incarnation.
type Fence struct {
	Dead   bool   // what was granted to it does not run any more
	At     string // RFC 3339
	Reason string
	// Assume is the node's limit without contact, 0 where it has not opted in, and
	// DeadAfter how long after the fence it counts as dead then.
	Assume, DeadAfter time.Duration
}

// Show shows a node.
func (n *Node) Show() *api.Node {
	o := &api.Node{APIVersion: api.APIVersion, Kind: "Node"}
	o.Metadata = api.ObjectMeta{
		Name: string(n.ID), UID: NodeUID(n.ID), Labels: n.Labels, CreationTimestamp: n.Spec.Created,
		ResourceVersion: strconv.FormatInt(int64(n.Revision), 10), Annotations: n.Spec.Annotations,
	}
	o.Spec = api.NodeSpec{
		Capacity: api.Amounts(n.Spec.Capacity), Allocatable: api.Amounts(n.Spec.Allocatable), Unschedulable: n.Spec.Unschedulable,
	}
	if e := n.Spec.Expected; e != nil && len(e.Capacity) > 0 {
		o.Spec.Capacity = maps.Clone(e.Capacity)
	}
	if e := n.Spec.Expected; e != nil && len(e.Allocatable) > 0 {
		o.Spec.Allocatable = maps.Clone(e.Allocatable)
	}
	for _, t := range n.Spec.Taints {
		o.Spec.Taints = append(o.Spec.Taints, api.Taint(t))
	}
	s := &o.Status
	if n.Spec.HasRegistered() {
		s.Capacity, s.Allocatable = api.Amounts(n.Spec.Capacity), api.Amounts(admission.Allocatable(*n.Spec))
	}
	if n.Lease != 0 && !n.Unheard {
		s.LeaseID = fmt.Sprintf("lease-%016x", uint64(n.Lease))
	}
	n.showConditions(s)
	if n.Spec.Hostname != "" {
		s.Addresses = append(s.Addresses, api.NodeAddress{Type: "Hostname", Address: n.Spec.Hostname})
	}
	s.AgentVersion, s.Registrations = n.Spec.Version, slices.Clone(n.Spec.Registrations)
	if n.Spec.AgentAddr != "" {
		s.Addresses = append(s.Addresses, api.NodeAddress{Type: "Agent", Address: n.Spec.AgentAddr})
	}
	if !n.Incarnation.IsZero() {
		i := n.Incarnation
		s.Incarnation = &i
	}
	if n.Stream == nil {
		s.Available = api.Amounts(n.Available)
	} else {
		if n.Stream.Usage != nil {
			s.Usage = api.Amounts(n.Stream.Usage)
		}
		n.ShowHost(s)
	}
	s.Allocations = n.Allocations
	slices.Sort(s.Allocations)
	return o
}

// ShowHost adds the hardware and how much of it is free, where a stream has told
// of it.
func (n *Node) ShowHost(s *api.NodeStatus) {
	host, free := n.Stream.Host, n.Stream.Free
	if free == nil {
		return
	}
	s.Available = api.Amounts(host.FreeVector(free))
	for i, node := range n.Topology.Nodes {
		if node.MemoryOnly {
			continue
		}
		s.NUMANodes = append(s.NUMANodes, api.NUMAStatus{
			ID: node.ID, CPUs: node.CPUs.String(), FreeCPU: resource.FormatAmount(resource.CPU, int64(host.FreeCPU(free, i))),
			FreeCores: host.WholeFreeCores(free, i),
			Memory:    resource.FormatBytes(node.Memory), FreeMemory: resource.FormatBytes(free.Memory[i]),
			FreeHugepages: n.freeHugepages(i),
		})
	}
	for i := range n.Inventory.Devices {
		s.Devices = append(s.Devices, n.device(i))
	}
}

// freeHugepages is what is free on the NUMA node at a position, of the page
// sizes that it has.
func (n *Node) freeHugepages(at int) map[resource.Name]string {
	var free map[resource.Name]string
	for _, size := range n.Stream.Host.PageSizes() {
		if n.Topology.Nodes[at].Hugepages[int(size>>10)] == 0 {
			continue
		}
		if free == nil {
			free = map[resource.Name]string{}
		}
		free[resource.Hugepages(size)] = resource.FormatBytes(n.Stream.Host.HugepagesOn(n.Stream.Free, at, size))
	}
	return free
}

// device shows a device, its instances and what is free of them.
func (n *Node) device(at int) api.DeviceStatus {
	d, health := &n.Inventory.Devices[at], n.Stream.Health[at]
	s := api.DeviceStatus{
		Index: at, UUID: d.UUID, Model: d.Model, Memory: resource.FormatBytes(d.Memory), NUMANode: d.NUMANode,
		Health: health.Health.String(), HealthReason: health.Reason, Free: n.Stream.Free.GPU[at], Withheld: n.Stream.Withheld&(1<<at) != 0,
	}
	s.UsePercent, s.MemoryUsed = n.Stream.use(d.UUID, d.Memory)
	if !d.MIG.Enabled {
		return s
	}
	s.MIG = &api.MIGMode{}
	for k, g := range d.MIG.Instances {
		instance := api.MIGInstance{
			UUID: g.UUID, Profile: g.Profile, Memory: resource.FormatBytes(g.Memory), Free: n.Stream.Free.MIG[at]&(1<<k) != 0,
		}
		instance.UsePercent, instance.MemoryUsed = n.Stream.use(g.UUID, g.Memory)
		s.MIG.Instances = append(s.MIG.Instances, instance)
	}
	return s
}

// NodeUID is the uid of a node: an id has one node for ever.
func NodeUID(id resource.NodeID) string { return "node-" + string(id) }
