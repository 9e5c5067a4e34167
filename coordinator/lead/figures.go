package lead

import (
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Figures are the cluster in numbers, for monitoring: a copy that shares nothing
// with the leader but values that never change.
type Figures struct {
	Nodes []NodeFigures // by id
	// Models are the GPUs by model.
	Models map[string]GPUFigures
	// Units are counted by namespace and phase; Allocated is the sum of the demands
	// of units that hold something, by namespace.
	Units     map[UnitKind]int
	Allocated map[string]cluster.Amounts
	// Waiting counts the units that wait, by queue.
	Waiting map[string]int
	Quotas  []QuotaFigures
	Trees   []TreeFigures
	// At is the time of the figures, Elected that of the term's beginning.
	At, Elected time.Time
	Scheduling  Scheduling
	// PendingMembers is the number of members of units that wait.
	PendingMembers int
	// Queues are the units that wait, by queue and tenant, Waits the waits that are
	// over, by queue.
	Queues map[QueueKind]QueueFigures
	Waits  map[string]Wait
}

// QueueKind is the part of a queue that is one tenant's.
type QueueKind struct {
	Queue  string
	Tenant resource.TenantID
}

// QueueFigures are the units that wait in a part of a queue. Oldest is the time
// (RFC 3339) when the first of them was accepted.
type QueueFigures struct {
	Units  int
	Oldest string
}

// NodeFigures are one node.
type NodeFigures struct {
	ID      resource.NodeID
	Version string // of the agent
	// Capacity and Allocatable are the registered amounts, Allocatable without the pool of
	// the host's kubelet. Nobody changes them.
	Capacity, Allocatable resource.Vector
	// Free are the amounts that no reservation has, and Known whether a stream has
	// told of them.
	Free  cluster.Amounts
	Known bool
	GPUs  GPUFigures
	// Usage is the usage that the host measured, nil where the agent has not
	// reported. Busy is the number of GPUs on which something ran; those of the kubelet's
	// pool do not count.
	Usage      resource.Vector
	Busy       int
	Conditions NodeConditions
}

// GPUFigures are the devices of a node or of a model, in devices and in thousandths.
type GPUFigures struct {
	Devices, Unhealthy int
	// Free is the unused part of all devices, unhealthy ones included. Of a device
	// in MIG mode the part of its instances that is free counts.
	Free resource.Milli
	// Pooled is the part that is in pools of kubelets: not allocatable, and never free.
	Pooled resource.Milli
}

// NodeConditions are facts that keep a node from new work, or make it the last
// choice.
type NodeConditions struct {
	Ready                                                      bool // it takes new work
	Cordoned, Banned, Fenced, Isolated, Unapproved             bool
	Disconnected, Unregistered, Quarantined, DiskFull, Suspect bool
}

// UnitKind is what units are counted by.
type UnitKind struct {
	Namespace string
	Phase     api.Phase
}

// QuotaFigures are one resource of one resource quota, in base units.
type QuotaFigures struct {
	Namespace, Quota string
	Resource         resource.Name
	Hard, Used       int64
}

// TreeFigures are one resource of one node of a quota tree, in base units.
type TreeFigures struct {
	Tree, Node       string
	Resource         resource.Name
	Quota, Allocated int64
}

// Figures counts the whole cluster at once. It reads each node, device and unit once,
// and allocates nothing for a unit.
func (l *Leader) Figures() *Figures {
	c := l.CountFigures()
	for !c.Step() {
	}
	return c.Figures()
}

// figures counts a node, and adds its devices to their models.
func (n *node) figures(models map[string]GPUFigures) NodeFigures {
	f := NodeFigures{
		ID: n.view.ID, Version: n.spec.Version, Capacity: n.spec.Capacity, Allocatable: admission.Allocatable(n.spec, n.observed.pool),
		Conditions: NodeConditions{
			Ready: n.view.Ready && !n.view.Unschedulable, Cordoned: n.spec.Unschedulable, Banned: n.ban != nil, Fenced: n.fence != nil,
			Isolated: n.violation() != nil, Unapproved: !n.unapproved.IsZero(), Disconnected: !n.connected, Unregistered: !n.registered(),
			Quarantined: n.quarantine != "", DiskFull: n.diskFull, Suspect: n.view.Suspect || n.view.Tripped,
		},
	}
	if !n.unheard {
		f.Usage, f.Busy = n.said.Usage, n.busyDevices()
	}
	if n.view.Free == nil {
		return f
	}
	f.Known = true
	f.Free = n.view.FreeAmounts()
	for i := range n.host.Inventory.Devices {
		one := GPUFigures{Devices: 1, Free: n.freePart(i), Pooled: n.pooledPart(i)}
		if n.unhealthy()&(1<<i) != 0 {
			one.Unhealthy = 1
		}
		model := n.host.Inventory.Devices[i].Model
		models[model] = models[model].plus(one)
		f.GPUs = f.GPUs.plus(one)
	}
	return f
}

// freePart is the unused part of a device.
func (n *node) freePart(device int) resource.Milli {
	mig := &n.host.Inventory.Devices[device].MIG
	if !mig.Enabled || len(mig.Instances) == 0 {
		return n.view.Free.GPU[device]
	}
	free := 0
	for i := range mig.Instances {
		free += int(n.view.Free.MIG[device] >> i & 1)
	}
	return resource.WholeDevice * resource.Milli(free) / resource.Milli(len(mig.Instances))
}

func (f GPUFigures) plus(o GPUFigures) GPUFigures {
	return GPUFigures{f.Devices + o.Devices, f.Unhealthy + o.Unhealthy, f.Free + o.Free, f.Pooled + o.Pooled}
}

func (f *Figures) countUnit(u *work.Unit) {
	phase := u.Phase()
	f.Units[UnitKind{u.Record.Namespace, phase}]++
	switch phase {
	case api.Pending:
		f.Waiting[u.Record.Queue]++
		f.countWaiting(u)
	case api.Running, api.Terminating:
		for members, r := range u.EachSet() {
			f.Allocated[u.Record.Namespace] = f.Allocated[u.Record.Namespace].Plus(cluster.Amounts{
				CPU: resource.Millicores(members) * (r.CPU + resource.Millicores(r.Cores)*resource.WholeCPU), Memory: resource.Bytes(members) * r.Memory,
				GPU: resource.Milli(members) * r.GPUMilli(),
			})
		}
	}
}

// countWaiting counts a unit that waits. Stored times of one form compare as text.
func (f *Figures) countWaiting(u *work.Unit) {
	f.PendingMembers += u.Record.Members
	kind := QueueKind{u.Record.Queue, u.Record.Tenant}
	of := f.Queues[kind]
	of.Units++
	if created := u.Record.Created; created != "" && (of.Oldest == "" || created < of.Oldest) {
		of.Oldest = created
	}
	f.Queues[kind] = of
}

// busyMemory is the memory beyond which a device is in use: a driver keeps less for
// itself, a process has more.
const busyMemory = 64 << 20

// busyDevices counts the GPUs on which something ran at the agent's last report. A
// GPU in MIG mode is busy where an instance is. Devices of the kubelet's pool are not
// counted: their part of the node is not allocatable.
func (n *node) busyDevices() int {
	busy := 0
	if n.host.Inventory == nil { // the node was created, and its agent has not registered yet
		return 0
	}
	for i := range n.host.Inventory.Devices {
		d := &n.host.Inventory.Devices[i]
		if n.pooledPart(i) == resource.WholeDevice {
			continue
		}
		ids := []string{d.UUID}
		for k := range d.MIG.Instances {
			if !n.isPooled(d.MIG.Instances[k].UUID) {
				ids = append(ids, d.MIG.Instances[k].UUID)
			}
		}
		if slices.ContainsFunc(n.said.Devices, func(u record.DeviceUse) bool {
			now, _ := devices.Use(u).Within(d.Memory)
			return slices.Contains(ids, u.UUID) && (now.Percent > 0 || now.Memory > busyMemory)
		}) {
			busy++
		}
	}
	return busy
}

// countQuota counts one resource quota.
func (f *Figures) countQuota(q *charges.Book, r *charges.Quota) {
	m := r.Object.Metadata
	used := q.Limits().Used(m.Namespace, m.Name)
	for name, hard := range r.Hard() {
		f.Quotas = append(f.Quotas, QuotaFigures{m.Namespace, m.Name, name, hard, used[name]})
	}
}

// countTree counts the nodes of one quota tree.
func (f *Figures) countTree(q *charges.Book, tree string) {
	must(q.Trees().EachTotal(tree, func(node string, r resource.Name, quota, allocated int64) {
		f.Trees = append(f.Trees, TreeFigures{tree, node, r, quota, allocated})
	}))
}
