package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// machine returns a host of two NUMA nodes with equal shares of the CPUs (two
// threads per core, the siblings adjacent) and GPUs, and 64 GiB each. GPUs of
// one node are linked by NVLink.
func machine(t testing.TB, cpus, gpus int) *fit.Host {
	t.Helper()
	return machineWith(t, cpus, 64<<30, gpuNames(gpus))
}

func gpuNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("GPU-%08d-0000-0000-0000-000000000000", i)
	}
	return names
}

func machineWith(t testing.TB, cpus int, memory resource.Bytes, gpus []string) *fit.Host {
	t.Helper()
	h := hardware{cpus: cpus, memory: memory}
	for _, uuid := range gpus {
		h.gpus = append(h.gpus, card{uuid: uuid})
	}
	return h.build(t)
}

// hardware describes a host of two NUMA nodes.
type hardware struct {
	cpus    int // in all
	offline []int
	system  []int            // CPUs that the system keeps
	memory  resource.Bytes   // of each node
	pages   [2]map[int]int64 // of each node: by size in kB, the count
	gpus    []card           // the first half is on node 0
}

// card is a GPU; with instances it is in MIG mode.
type card struct {
	uuid      string
	health    devices.Health
	mig       bool
	instances []devices.MIGInstance
}

// partition returns MIG instances of these profiles; their UUIDs say the card,
// the profile and a number, so that the same words are the same instance.
func partition(uuid string, profiles ...string) card {
	c := card{uuid: uuid, mig: true}
	count := map[string]int{}
	for _, p := range profiles {
		count[p]++
		c.instances = append(c.instances, devices.MIGInstance{UUID: fmt.Sprintf("MIG-%s-%s-%d", uuid, p, count[p]), Profile: p, Memory: 10 << 30})
	}
	return c
}

func (h hardware) build(t testing.TB) *fit.Host {
	t.Helper()
	topology := &numa.Topology{Distances: [][]int{{10, 21}, {21, 10}}}
	for n := range 2 {
		topology.Nodes = append(topology.Nodes, numa.Node{ID: n, Memory: h.memory, Hugepages: h.pages[n]})
	}
	for id := range h.cpus {
		node := id * 2 / h.cpus
		topology.CPUs = append(topology.CPUs, numa.CPU{
			ID: id, Socket: node, Core: id / 2, L3: node, NUMA: node, Online: !slices.Contains(h.offline, id), Siblings: bitset.Of(id&^1, id|1),
		})
		topology.Nodes[node].CPUs.Add(id)
	}
	inventory := &devices.Inventory{Driver: "550.54"}
	nodeOf := func(i int) int { return i * 2 / len(h.gpus) }
	for i, c := range h.gpus {
		inventory.Devices = append(inventory.Devices, devices.Device{
			Index: i, UUID: c.uuid, Model: "A100", Memory: 80 << 30, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i), NUMANode: nodeOf(i),
			Health: c.health, MIG: devices.MIG{Enabled: c.mig, Instances: c.instances},
		})
		row := make([]devices.Link, len(h.gpus))
		for j := range row {
			switch {
			case i == j:
			case nodeOf(i) == nodeOf(j):
				row[j] = devices.NVLink(12)
			default:
				row[j] = devices.LinkSYS
			}
		}
		inventory.Links = append(inventory.Links, row)
	}
	host, err := fit.NewHost(topology, inventory, fit.Reserved{CPUs: bitset.Of(h.system...)})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// boot is when the test's time line begins.
func boot(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func incarnation(journal, boot string) resource.Incarnation {
	return resource.Incarnation{JournalID: journal, BootID: boot}
}

// ready returns a ledger that has started and registered.
func ready(t testing.TB, host *fit.Host) *ledger.Ledger {
	t.Helper()
	l := ledger.New(host)
	do(t, l, boot(0), ledger.Start{Incarnation: incarnation("j1", "b1")})
	do(t, l, boot(0), ledger.Registered{Revision: 5})
	return l
}

// do decides and applies, and checks that deciding changed nothing and that
// the ledger is consistent afterwards.
func do(t testing.TB, l *ledger.Ledger, now time.Time, cmd ledger.Command) ledger.Reply {
	t.Helper()
	before := l.Hash()
	reply, events := l.Decide(now, cmd)
	if l.Hash() != before {
		t.Fatalf("deciding %T changed the ledger", cmd)
	}
	for _, e := range events {
		if err := l.Apply(e); err != nil {
			t.Fatalf("%+v: apply %+v: %v", cmd, e, err)
		}
	}
	if err := l.Check(); err != nil {
		t.Fatalf("after %+v: %v", cmd, err)
	}
	if reply.Tx != "" {
		if g, _ := l.Lookup(reply.Tx); g.State != reply.State {
			t.Fatalf("%+v: the reply says %s, the ledger %s", cmd, reply.State, g.State)
		}
	}
	return reply
}

// gpus is a Reserve of one member.
func gpus(tx resource.TxID, epoch resource.Epoch, n int) grant.Reserve {
	return grant.Reserve{
		Tx: tx, Unit: "unit-" + resource.UnitUID(tx), Epoch: epoch, TTL: 10 * time.Second,
		Members: []grant.MemberRequest{{Request: resource.Request{GPUs: n, CPU: 1000, Memory: 1 << 30}}},
	}
}
