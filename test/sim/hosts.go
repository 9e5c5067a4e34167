package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/test/invariant"
)

// The size of a cluster.
const (
	nodeCount   = 3
	gpusPerNode = 4
	cpusPerNode = 8
)

// hardware are the hosts that each node may be: as built, with a card lost,
// with a card added in front.
var hardware = sync.OnceValue(func() [][]*fit.Host {
	var all [][]*fit.Host
	var like *fit.Host
	for n := range nodeCount {
		uuids := make([]string, gpusPerNode)
		for i := range uuids {
			uuids[i] = fmt.Sprintf("GPU-n%d-%d", n+1, i)
		}
		var kinds []*fit.Host
		for _, list := range [][]string{uuids, slices.Delete(slices.Clone(uuids), 1, 2), slices.Insert(slices.Clone(uuids), 0, fmt.Sprintf("GPU-n%d-new", n+1))} {
			like = buildHost(like, list)
			kinds = append(kinds, like)
		}
		all = append(all, kinds)
	}
	return all
})

func buildHost(like *fit.Host, uuids []string) *fit.Host {
	topology := &numa.Topology{Distances: [][]int{{10, 21}, {21, 10}}, Nodes: []numa.Node{{ID: 0, Memory: 64 << 30}, {ID: 1, Memory: 64 << 30}}}
	for id := range cpusPerNode {
		node := id * 2 / cpusPerNode
		topology.CPUs = append(topology.CPUs, numa.CPU{
			ID: id, Socket: node, Core: id / 2, L3: node, NUMA: node, Online: true, Siblings: bitset.Of(id&^1, id|1),
		})
		topology.Nodes[node].CPUs.Add(id)
	}
	inventory := &devices.Inventory{Driver: "550.54"}
	for i, uuid := range uuids {
		inventory.Devices = append(inventory.Devices, devices.Device{
			Index: i, UUID: uuid, Model: "A100", Memory: 80 << 30, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i), NUMANode: i * 2 / len(uuids),
		})
		row := make([]devices.Link, len(uuids))
		for j := range row {
			if i != j {
				row[j] = devices.LinkSYS
			}
		}
		inventory.Links = append(inventory.Links, row)
	}
	host, err := fit.NewHostLike(like, topology, inventory, fit.Reserved{})
	if err != nil {
		panic(fmt.Sprintf("sim: %v", err))
	}
	return host
}

// host is one machine: its disk, its kernel, what runs on it, and the agent's
// process if there is one.
type host struct {
	sim  *Sim
	node resource.NodeID
	kind int // of hardware

	disk disk
	boot int
	// The boot-time clock: zero at bootedAt, running at rate per mille of the
	// world's, ahead by jumped (a suspended machine).
	bootedAt, jumped time.Duration
	rate             int64

	reported   reported // what its heartbeats said last
	running    map[resource.TxID]*workload
	stragglers []straggler
	off        bool   // it has no power
	beating    bool   // its lease is asked for
	agent      *agent // nil while the process is down
	agents     int    // processes so far

	// What the checks remember of this host.
	lossless bool // no synced record was ever lost here
	// forgetful: records that were not synced were lost while the machine ran
	// on, or synced ones were.
	forgetful bool
	last      invariant.Memory // of the ledger when its process was killed
	version   int              // how often its ledger has changed
	showing   showing
	// blind: since the store was restored the agent has registered in it without
	// seeing that, for it had grown beyond what the agent had heard of.
	blind  bool
	intact bool // last is what a replay must give
}

// workload is what runs for a grant. No one but the host ends it.
type workload struct {
	assignment []resource.Assignment
	noticed    bool
	at         time.Time     // of the notice, on the host's clock
	grace      time.Duration // promised with it
	promised   time.Duration // by the eviction that the agent was told of
}

func (h *host) hardware() *fit.Host { return hardware()[int(h.node[1]-'1')][h.kind] }

// now is the boot-time clock as the agent reads it.
func (h *host) now() time.Time {
	up := (h.sim.clock-h.bootedAt)*time.Duration(h.rate)/1000 + h.jumped
	return time.Unix(1000, 0).Add(up)
}

// disk is what the journal promises: a payload is in the page cache once it was
// written, and on the platter once it was synced.
type disk struct {
	journal  int // its identifier
	next     int // the identifier after that
	payloads [][]byte
	synced   int
	doubt    bool // the next start takes a new identifier
}

func (d *disk) id() string { return fmt.Sprintf("j%d", d.journal) }

func (d *disk) renew() {
	d.next++
	d.journal, d.doubt = d.next, false
}

// open is what the journal does when it is opened.
func (d *disk) open() {
	if d.doubt || d.journal == 0 {
		d.renew()
		d.synced = len(d.payloads)
	}
}

// compact rewrites the journal as a snapshot, which is synced.
func (d *disk) compact(l *ledger.Ledger) {
	d.payloads = d.payloads[:0:0]
	for _, e := range l.SnapshotEvents() {
		d.payloads = append(d.payloads, ledger.AppendEvents(nil, []ledger.Event{e}))
	}
	d.synced = len(d.payloads)
}
