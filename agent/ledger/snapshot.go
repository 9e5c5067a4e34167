package ledger

import (
	"maps"
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// View is the ledger at one moment, for status, digests and the leader. It is
// immutable and may be read by any goroutine.
type View struct {
	Incarnation resource.Incarnation
	Registered  resource.Revision // 0 = not yet
	Epoch       resource.Epoch    // highest seen
	Heard       resource.Revision // highest of the store
	Quarantine  Quarantine
	Cordoned    bool
	// KubeletPool is the operators' part of the kubelet's pool; it is never changed.
	KubeletPool grant.KubeletPool
	DiskFull    bool
	// MemoryPressure: the host is short of memory.
	MemoryPressure bool
	Hash           uint64 // see Ledger.Hash
	// Host is the hardware that the rest is of.
	Host *fit.Host
	// Free is the capacity that may be handed out; read it, never Take from it.
	Free *fit.Free
	// Nodes are the NUMA nodes with ordinary memory, in ascending order.
	Nodes []NodeFree
	GPUs  []GPUFree // by index
	// Grants are all, tombstones included, in ascending order of Tx.
	Grants []Grant
}

// NodeFree is the free capacity of one NUMA node.
type NodeFree struct {
	ID         int
	CPU        resource.Millicores
	WholeCores int // physical cores all of whose threads are free
	Memory     resource.Bytes
	Hugepages  []PoolFree // ascending by Size; every pool that the node has
}

// PoolFree is the free part of a node's huge pages of one size.
type PoolFree struct {
	Size  resource.Bytes // of one page
	Bytes resource.Bytes // a multiple of Size
}

// GPUFree is the free part of one GPU, regardless of its health.
type GPUFree struct {
	Index int
	UUID  string
	Milli resource.Milli
	// MIG has bit k set where instance k is free.
	MIG    uint16
	Health devices.Health
	Reason string // why it is not OK, in plain words; "" when it is
}

// Snapshot returns the present view. Its cost grows with the host and the
// number of grants.
func (l *Ledger) Snapshot() *View {
	v := &View{
		Incarnation: l.incarnation, Registered: l.registered, Epoch: l.epoch, Heard: l.heard, Quarantine: l.quarantine,
		Cordoned: l.cordoned, KubeletPool: l.wish, DiskFull: l.diskFull != "", MemoryPressure: l.memory != "", Hash: l.hash, Host: l.places.host, Free: l.own.free.Clone(),
	}
	host, free := l.places.host, l.own.free
	for i, n := range host.Topology().Nodes {
		if !n.MemoryOnly {
			v.Nodes = append(v.Nodes, NodeFree{n.ID, host.FreeCPU(free, i), host.WholeFreeCores(free, i), free.Memory[i], l.places.pools(free, i)})
		}
	}
	for i, d := range host.Inventory().Devices {
		v.GPUs = append(v.GPUs, GPUFree{i, d.UUID, free.GPU[i], free.MIG[i], l.health[i].health, l.health[i].reason})
	}
	for _, tx := range l.sorted(func(*entry) bool { return true }) {
		v.Grants = append(v.Grants, l.grants[tx].Grant)
	}
	return v
}

// SnapshotEvents returns events that make an empty ledger of this host equal to
// this one: the content of a compacted journal. Victims come before those that
// wait for them.
func (l *Ledger) SnapshotEvents() []Event {
	events := []Event{Started{l.incarnation, l.startedAt, l.heard, l.forgotten}}
	if l.epoch > 0 {
		events = append(events, EpochRaised{l.epoch})
	}
	if l.cordoned {
		events = append(events, CordonSet{true})
	}
	if !l.wish.IsZero() {
		events = append(events, KubeletPoolSet(l.wish.Clone()))
	}
	for _, uuid := range slices.Sorted(maps.Keys(l.told)) {
		events = append(events, HealthChanged{uuid, l.told[uuid].health, l.told[uuid].reason})
	}
	txs := l.sorted(func(g *entry) bool { return g.State != grant.Waiting })
	txs = append(txs, l.sorted(func(g *entry) bool { return g.State == grant.Waiting })...)
	for _, tx := range txs {
		g := l.grants[tx].Grant
		if g.Incarnation == l.incarnation {
			g.Incarnation = resource.Incarnation{}
		}
		g.Victims = slices.Clone(g.Victims)
		events = append(events, Granted{g})
	}
	if l.marks != (Marks{}) {
		events = append(events, Marked(l.marks))
	}
	if l.registered > 0 {
		events = append(events, Enrolled{l.registered, 0})
	}
	if !l.quarantine.IsZero() {
		events = append(events, Quarantined(l.quarantine))
	}
	return events
}
