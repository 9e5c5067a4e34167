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
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Node is a node.
type Node struct {
	ID       resource.NodeID
	Spec     *record.NodeSpec
	Revision resource.Revision // the newest of the node's keys
	Labels   map[string]string // of all layers
	Hardware

	Incarnation resource.Incarnation
	Registered  bool // an incarnation of its is
	Ban         *record.Ban
	Fence       *Fence
	Violation   *record.Violation // why it is isolated
	// Unapproved is the registered capacity beyond the approved one.
	Unapproved admission.Growth
	// Told is the last report of its agent.
	Told record.NodeStatus
	// Beside lists the other nodes with the same agent address, and Now is the
	// present time.
	Beside []Neighbour
	Now    time.Time
	// Allocations are the members that hold something there, in any order.
	Allocations []string

	// Observed is the leader's observation; nil while there is none, and Unreadable
	// says why it cannot be read.
	Observed   *record.NodeObserved
	Unreadable string
	// Machine is the hardware in the observation; nil while there is none.
	Machine *Machine
	// Held are the assignments of the members there.
	Held []resource.Assignment
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
		Kubelet:  kubeletPool(n.Spec.Kubelet),
		Capacity: api.Amounts(n.Spec.Capacity), Allocatable: api.Amounts(n.Spec.Allocatable), Unschedulable: n.Spec.Unschedulable,
	}
	if e := n.Spec.Expected; e != nil && len(e.Capacity) > 0 {
		o.Spec.Capacity = maps.Clone(e.Capacity)
	}
	if e := n.Spec.Expected; e != nil && len(e.Allocatable) > 0 {
		o.Spec.Allocatable = maps.Clone(e.Allocatable)
	}
	for _, t := range n.Spec.Taints {
		o.Spec.Taints = append(o.Spec.Taints, api.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	s := &o.Status
	if n.Spec.HasRegistered() {
		s.Capacity, s.Allocatable = api.Amounts(n.Spec.Capacity), api.Amounts(n.Allocatable())
	}
	if n.Observed != nil && n.Observed.Lease != 0 {
		s.LeaseID = fmt.Sprintf("lease-%016x", uint64(n.Observed.Lease))
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
	if n.Observed != nil && !n.Observed.Incarnation.IsZero() {
		i := n.Observed.Incarnation
		s.ObservedIncarnation = &i
	}
	s.LastHeartbeatTime = n.Told.HeardAt
	if n.Told.Usage != nil && n.isHeard() {
		s.Usage = api.Amounts(n.Told.Usage)
	}
	s.Kubelet = kubeletStatus(n.Told.Kubelet)
	n.showFree(s)
	s.Allocations = n.Allocations
	slices.Sort(s.Allocations)
	return o
}

// Allocatable is the part of the node that Muster hands out, which is not to be changed.
// The pool of the kubelet is no part of it, as the leader has observed the pool last.
func (n *Node) Allocatable() resource.Vector {
	if n.Observed == nil {
		return admission.Allocatable(*n.Spec, nil)
	}
	return admission.Allocatable(*n.Spec, n.Observed.Pool)
}

// isHeard reports whether any coordinator hears the agent, as far as the leader has
// written.
func (n *Node) isHeard() bool { return n.Observed != nil && !n.Observed.Unheard }

// showFree adds the part of the node that nobody holds, and the hardware once the
// leader has seen it.
func (n *Node) showFree(s *api.NodeStatus) {
	if n.Machine == nil {
		s.Available = api.Amounts(n.unheld())
		return
	}
	f := n.Machine.newFree()
	for _, a := range n.Held {
		f.take(a)
	}
	if n.Observed.Local != nil {
		f.take(*n.Observed.Local)
	}
	for _, c := range n.Observed.Conflicts {
		delete(f.counts, c.Name)
	}
	health := healthOf(n.Observed.Health)
	available := f.vector(func(device int) bool {
		return health[device].Health.Allocatable() && !slices.Contains(n.Observed.Withheld, device)
	})
	n.withhold(available, f.vector(func(int) bool { return true }))
	s.Available = api.Amounts(available)
	for i := range n.Machine.numa {
		if at := &n.Machine.numa[i]; !at.MemoryOnly {
			s.NUMANodes = append(s.NUMANodes, f.showNUMA(at, i))
		}
	}
	for i := range n.Machine.devices {
		s.Devices = append(s.Devices, n.showDevice(i, f, health[i]))
	}
}

// withhold takes the part beyond the bounds of the node out of the available amounts. Whole
// devices are taken out already; unheld includes devices without new work.
func (n *Node) withhold(available, unheld resource.Vector) {
	for name, most := range admission.BoundsOf(*n.Spec).Amounts {
		if has, known := available[name]; known && name != resource.GPU {
			available[name] = min(has, max(0, unheld[name]-max(0, n.Spec.Allocatable[name]-most)))
		}
	}
}

// unheld is the registered capacity less the members' assignments.
func (n *Node) unheld() resource.Vector {
	left := maps.Clone(n.Allocatable())
	for _, a := range n.Held {
		for name, amount := range a.Vector() {
			if has, known := left[name]; known {
				left[name] = max(0, has-amount)
			}
		}
	}
	return left
}

// showNUMA shows the NUMA node at a position.
func (f *free) showNUMA(n *numaNode, at int) api.NUMAStatus {
	s := api.NUMAStatus{
		ID: n.ID, CPUs: n.CPUs, FreeCPU: resource.FormatAmount(resource.CPU, int64(f.cpuOf(n.usable))), FreeCores: f.coresOf(n),
		Memory: resource.FormatBytes(n.Memory), FreeMemory: resource.FormatBytes(f.memory[at]),
	}
	for i, p := range n.Pages {
		if s.FreeHugepages == nil {
			s.FreeHugepages = map[resource.Name]string{}
		}
		s.FreeHugepages[resource.Hugepages(p.Size)] = resource.FormatBytes(f.pages[at][i])
	}
	return s
}

// showDevice shows a device, its instances and the free part of them.
func (n *Node) showDevice(at int, f *free, health Health) api.DeviceStatus {
	d := &n.Machine.devices[at]
	s := api.DeviceStatus{
		Index: at, UUID: d.UUID, Model: n.Machine.models[d.Model], Memory: resource.FormatBytes(d.Memory), NUMANode: d.NUMANode,
		Health: health.Health.String(), HealthReason: health.Reason, Free: f.gpus[at], Withheld: slices.Contains(n.Observed.Withheld, at),
	}
	s.UsePercent, s.MemoryUsed = n.use(d.UUID, d.Memory)
	if !d.MIG {
		return s
	}
	s.MIG = &api.MIGMode{}
	for k, g := range d.Instances {
		instance := api.MIGInstance{UUID: g.UUID, Profile: g.Profile, Memory: resource.FormatBytes(g.Memory), Free: f.mig[at]&(1<<k) != 0}
		instance.UsePercent, instance.MemoryUsed = n.use(g.UUID, g.Memory)
		s.MIG.Instances = append(s.MIG.Instances, instance)
	}
	return s
}

// NodeUID is the uid of a node: an id has one node for ever.
func NodeUID(id resource.NodeID) string { return "node-" + string(id) }

// AssumedDeadAfter is the time from a fence to the death of the node: the agent
// has stopped all after 1.5 times the limit, counted from before the fence, and
// the rest is for two clocks running apart (docs/adr/0012-assume-dead.md).
func AssumedDeadAfter(limit time.Duration) time.Duration { return 2*limit + grant.NodeLeaseTTL }
