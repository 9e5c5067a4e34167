package cluster

import (
	"cmp"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// Node is the leader's view of one host. Anybody may read its fields; a node of a
// State is changed by the State's methods alone.
//
// Invariant: Sums equals the sums that Refresh computes from Free.
type Node struct {
	ID            resource.NodeID
	Labels        *constraint.Labels // and taints
	Unschedulable bool
	// Ready: registered, and a stream to its agent is open.
	Ready bool
	// Closed says in words why the node is not Ready, or Unschedulable; "" where
	// no stream is open to a registered agent, or an operator has cordoned it.
	Closed string
	Host   *fit.Host
	Free   *fit.Free
	// Registered is the capacity of the registration, which may be known before
	// Host is, and may be more; nil where it is unknown. Immutable.
	Registered resource.Vector

	Standing
	owner  *State // that has the node, nil for none
	grown  bool   // the node is among the owner's grown nodes
	shrunk bool   // the node is among the owner's shrunk nodes
	// shared: a Snapshot has the same Free.
	shared   bool
	position int32 // among the nodes, where relations.numbered is set
	indexed
}

// Standing is all that scores compare of nodes beside their labels.
type Standing struct {
	Sums
	// Suspect: gossip believes the node dead. It serves as long as its stream
	// does, as the last choice.
	Suspect bool
	// Tripped: the node's agent does not answer reserves as it should. The node is
	// the last choice.
	Tripped bool
}

// Sums are sums over Free, for filtering without a full fit.
type Sums struct {
	FreeCPU    resource.Millicores // that no operator withholds, as FreeMemory
	FreeCores  int                 // physical cores all of whose threads are free
	FreeMemory resource.Bytes
	WholeGPUs  int            // healthy devices that are wholly free
	FreeGPU    resource.Milli // over all healthy devices
	LargestGPU resource.Milli // most that is free on one healthy device
	// FreeMIG is the free MIG instances of all healthy devices, as parts of
	// devices.
	FreeMIG resource.Milli
	// Parts is the free part of each healthy device that is partly free, descending;
	// of more than MaxParts such devices those with the greatest parts.
	Parts [MaxParts]uint16
	// Full: the host counts its members, and has no room for one more.
	Full bool
}

// MaxParts is how many partly free devices Sums lists.
const MaxParts = 8

// addPart lists the free part of one more device.
func (f *Sums) addPart(part resource.Milli) {
	p := uint16(part)
	for i := range f.Parts {
		if p > f.Parts[i] {
			p, f.Parts[i] = f.Parts[i], p
		}
	}
}

// SlicesMilli is GPU slices as part of a device, which has seven.
func SlicesMilli(slices int) resource.Milli {
	return min(resource.WholeDevice, resource.Milli(slices)*resource.WholeDevice/7)
}

// Refresh recomputes the Sums of a node that is being made. Insert and the
// State's methods call Refresh themselves.
func (n *Node) Refresh() {
	n.Sums = Sums{}
	if n.Free == nil {
		return
	}
	n.FreeCores, n.Full = n.Host.FreeCores(n.Free), n.Host.IsFull(n.Free)
	n.FreeCPU, n.FreeMemory = n.Free.OpenCPU(), n.Free.OpenMemory()
	for i, g := range n.Free.GPU {
		if n.Free.Unhealthy&(1<<i) != 0 {
			continue
		}
		if n.Free.MIG[i] != 0 {
			n.FreeMIG += SlicesMilli(n.Host.FreeSlices(n.Free, i))
		}
		n.FreeGPU += g
		n.LargestGPU = max(n.LargestGPU, g)
		switch g {
		case 0:
		case resource.WholeDevice:
			n.WholeGPUs++
		default:
			n.addPart(g)
		}
	}
}

// MayFit is the cheap, never pessimistic test before a full fit.
func (n *Node) MayFit(r *resource.Request) bool {
	return n.Sums.MayFit(r) && (r.Hugepages == 0 && r.MIG == 0 && r.Counts == "" || n.hasSlotsFor(r))
}

// MayFit is false where no node of these sums has room for a member.
func (f *Sums) MayFit(r *resource.Request) bool {
	return !f.Full && f.WholeGPUs >= r.GPUs && f.FreeCPU >= r.CPU && f.FreeMemory >= r.Memory && f.LargestGPU >= r.GPUShare && f.FreeCores >= r.Cores
}

// hasSlotsFor is MayFit for what few requests ask for: apart, so that MayFit
// is inlined into the search.
func (n *Node) hasSlotsFor(r *resource.Request) bool {
	return (r.Hugepages == 0 || n.Host.FreeHugepages(n.Free, r.HugepageSize) >= r.Hugepages) &&
		(r.MIG == 0 || n.Host.FreeMIG(n.Free, r.MIGProfile) >= r.MIG) && n.Host.HasRoomForCounts(n.Free, r)
}

// FreeFor is what the node has left of each resource that the request is for.
// Devices that are partly used count for shares alone.
func (n *Node) FreeFor(r *resource.Request) resource.Vector {
	v := resource.Vector{
		resource.CPU: int64(n.FreeCPU), resource.Cores: int64(n.FreeCores), resource.Memory: int64(n.FreeMemory), resource.GPU: int64(n.FreeGPU),
	}
	if r.GPUs > 0 {
		v[resource.GPU] = int64(n.WholeGPUs) * int64(resource.WholeDevice)
	}
	if r.Hugepages > 0 {
		v[resource.Hugepages(r.HugepageSize)] = int64(n.Host.FreeHugepages(n.Free, r.HugepageSize))
	}
	if r.MIG > 0 {
		v[resource.MIG(r.MIGProfile)] = int64(n.Host.FreeMIG(n.Free, r.MIGProfile))
	}
	for name := range r.Counts.All() {
		v[name] = n.Host.FreeCount(n.Free, name)
	}
	return v
}

// Open reports whether the node takes new work at all.
func (n *Node) Open() bool { return n.Ready && !n.Unschedulable && n.Host != nil }

// WhyClosed returns why the node takes no work at all, or nil.
func (n *Node) WhyClosed() []resource.Reason {
	switch {
	case !n.Ready:
		return []resource.Reason{{Code: resource.ReasonUnreachable, Detail: cmp.Or(n.Closed, "no stream to a registered agent")}}
	case n.Unschedulable:
		return []resource.Reason{{Code: resource.ReasonCordoned, Detail: cmp.Or(n.Closed, "cordoned")}}
	}
	return nil
}
