package agent

import (
	"context"
	"fmt"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// view is the ledger at one moment that is on disk. more, if not nil, runs on
// the owner's goroutine at the same moment.
func (a *Agent) view(ctx context.Context, more func(*owner)) (*ledger.View, error) {
	views := make(chan *ledger.View, 1)
	err := a.owner.ask(ctx, func(o *owner) {
		if more != nil {
			more(o)
		}
		views <- o.ledger.Snapshot()
	})
	if err != nil {
		return nil, err
	}
	return <-views, nil
}

// Snapshot implements rpc.Snapshots.
func (a *Agent) Snapshot(ctx context.Context) (rpc.Snapshot, error) {
	v, err := a.view(ctx, nil)
	if err != nil {
		return rpc.Snapshot{}, err
	}
	s := rpc.Snapshot{
		Node: a.config.Node, Capacity: capacity(v.Host), Allocatable: allocatable(v), Available: v.Host.FreeVector(v.Free),
	}
	for _, n := range v.Nodes {
		s.NUMA = append(s.NUMA, numaFree(n))
	}
	for _, g := range v.GPUs {
		s.Devices = append(s.Devices, deviceFree(g, v.Host.Inventory().Devices[g.Index]))
	}
	for _, g := range v.Grants {
		for _, m := range g.Members {
			s.Grants = append(s.Grants, rpc.GrantMember{
				Tx: g.Tx, Unit: g.Unit, Member: m.Index, State: shown(g), Held: g.State == grant.Held && !g.Origin.Foreign(), Assignment: m.Assignment,
			})
		}
	}
	return s, nil
}

// shown is a grant's state, for people.
func shown(g ledger.Grant) string {
	if g.Origin == ledger.OriginOrphan {
		return "ORPHAN"
	}
	if _, lent, ok := ledger.PooledUUID(g.Tx); ok && lent {
		return "KUBELET"
	} else if ok {
		return "POOL"
	}
	return g.State.String()
}

func numaFree(n ledger.NodeFree) rpc.NUMAFree {
	free := rpc.NUMAFree{ID: n.ID, CPU: n.CPU, Memory: n.Memory, WholeCores: n.WholeCores}
	for _, pool := range n.Hugepages {
		if free.Hugepages == nil {
			free.Hugepages = resource.Vector{}
		}
		free.Hugepages[resource.Hugepages(pool.Size)] = int64(pool.Bytes)
	}
	return free
}

func deviceFree(g ledger.GPUFree, d devices.Device) rpc.DeviceFree {
	free := rpc.DeviceFree{Index: g.Index, UUID: g.UUID, Model: d.Model, Free: g.Milli, Health: g.Health.String(), Reason: g.Reason}
	for k, instance := range d.MIG.Instances {
		free.MIG = append(free.MIG, rpc.MIGFree{
			UUID: instance.UUID, Profile: instance.Profile, Memory: instance.Memory, Free: g.MIG&(1<<k) != 0,
		})
	}
	return free
}

// capacity is all there is, the part that the system keeps included.
func capacity(h *fit.Host) resource.Vector {
	v := h.Allocatable()
	v[resource.CPU] = int64(h.Topology().Threads()) * int64(resource.WholeCPU)
	v[resource.Memory] = int64(h.Topology().Memory())
	return v
}

// digestOf sums up a view for the capacity ring. sequence rises with every
// digest of one registration, over restarts too: it is the owner's time.
func (a *Agent) digestOf(v *ledger.View, cell string, sequence uint64) digest.Digest {
	d := digest.Digest{
		NodeID: a.config.Node, Cell: cell, Revision: v.Registered, Sequence: sequence, LedgerHash: v.Hash,
	}
	if v.Cordoned || v.DiskFull || v.MemoryPressure {
		d.Flags |= digest.Cordoned
	}
	if v.Registered == 0 {
		d.Flags |= digest.Unregistered
	}
	if !v.Quarantine.IsZero() {
		d.Flags |= digest.Quarantined
	}
	d.Measure(v.Host, v.Free)
	return d
}

// diskPressure reports whether the journal and the assignment files have room.
func (a *Agent) diskPressure(v *ledger.View) rpc.Condition {
	files := a.owner.assignments.Failure()
	switch {
	case files != nil:
		return rpc.Condition{
			Type: "DiskPressure", True: true, Reason: "AssignmentsNotWritable", Message: fmt.Sprintf("no new reservations, since nobody could start them: %v", files),
		}
	case v.DiskFull:
		return rpc.Condition{Type: "DiskPressure", True: true, Reason: "JournalFull", Message: "the journal's disk is full: no new reservations"}
	}
	return rpc.Condition{Type: "DiskPressure", Reason: "JournalHasRoom"}
}

// conditions are the node's, in a fixed order.
func (a *Agent) conditions(v *ledger.View) []rpc.Condition {
	q := v.Quarantine
	ready := rpc.Condition{Type: "Ready", True: v.Registered > 0 && q.IsZero(), Reason: "Registered"}
	quarantined := rpc.Condition{Type: "Quarantined", True: !q.IsZero(), Reason: "StoreAgrees"}
	switch {
	case quarantined.True:
		ready.Reason, ready.Message = "Quarantined", q.String()
		quarantined.Reason, quarantined.Message = "StoreWentBack", q.String()
	case !ready.True:
		ready.Reason, ready.Message = "Unregistered", "this incarnation has not registered yet"
	}
	list := []rpc.Condition{ready, a.diskPressure(v), quarantined}
	if memory, ok := a.memoryPressure(); ok {
		list = append(list, memory)
	}
	if orphans, ok := a.orphans(v); ok {
		list = append(list, orphans)
	}
	if pool, ok := a.kubeletPool(); ok {
		list = append(list, pool)
	}
	if contact, ok := a.contactCondition(); ok {
		list = append(list, contact)
	}
	if unknown, ok := a.unknownGPUs(); ok {
		list = append(list, unknown)
	}
	if hangs, ok := a.driverHangs(); ok {
		list = append(list, hangs)
	}
	if limited, ok := a.cgroupLimited(v); ok {
		list = append(list, limited)
	}
	if partly, ok := a.workNotEnforced(); ok {
		list = append(list, partly)
	}
	if refused, ok := containersRefused(a.config.Run); ok {
		list = append(list, refused)
	}
	if lost, ok := lostDevices(v); ok {
		list = append(list, lost)
	}
	if len(v.GPUs) == 0 {
		return list
	}
	gpus := rpc.Condition{Type: "GPUHealthy", True: true, Reason: "AllHealthy"}
	for _, g := range v.GPUs {
		if g.Health != devices.OK {
			gpus.True, gpus.Reason = false, "Unhealthy"
			gpus.Message += g.UUID + " is " + g.Health.String() + " (" + g.Reason + "); "
		}
	}
	return append(list, gpus)
}
