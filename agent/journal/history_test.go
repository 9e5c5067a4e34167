package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// gpuHost is a host of 16 CPUs and 8 GPUs, one of them partitioned.
func gpuHost(t testing.TB) *fit.Host {
	t.Helper()
	topology := &numa.Topology{Nodes: []numa.Node{{ID: 0, Memory: 256 << 30, Hugepages: map[int]int64{2048: 1024}}}}
	for id := range 16 {
		topology.CPUs = append(topology.CPUs, numa.CPU{ID: id, Core: id / 2, Online: true, Siblings: bitset.Of(id&^1, id|1)})
		topology.Nodes[0].CPUs.Add(id)
	}
	inventory := &devices.Inventory{Driver: "550"}
	for i := range 8 {
		inventory.Devices = append(inventory.Devices, devices.Device{Index: i, UUID: fmt.Sprint("GPU-", i), Model: "A100", Memory: 80 << 30, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i)})
		row := make([]devices.Link, 8)
		for k := range row {
			if row[k] = devices.LinkPIX; k == i {
				row[k] = devices.LinkNone
			}
		}
		inventory.Links = append(inventory.Links, row)
	}
	mig := &inventory.Devices[7].MIG
	mig.Enabled = true
	for k := range 7 {
		mig.Instances = append(mig.Instances, devices.MIGInstance{UUID: fmt.Sprint("MIG-", k), Profile: "1g.10gb", Memory: 10 << 30})
	}
	host, err := fit.NewHost(topology, inventory, fit.Reserved{})
	must(t, err)
	return host
}

// history is a life of a ledger with its journal: decisions in groups, as the
// agent makes them.
type history struct {
	t        testing.TB
	r        *rand.Rand
	host     *fit.Host
	ledger   *ledger.Ledger
	disk     *memFS
	journal  *Journal
	now      time.Time
	payloads [][]byte // since the last rewrite
	hashes   []uint64 // after each of them; hashes[0] before the first
	drawn    int
}

func live(t testing.TB, lock string, host *fit.Host, seed uint64, groups int) *history {
	h := &history{t: t, r: rand.New(rand.NewPCG(seed, 3)), host: host, ledger: ledger.New(host), disk: newMemFS(), now: time.Unix(1000, 0), hashes: []uint64{0}}
	var err error
	h.journal, _, err = Open(lock, Options{FS: h.disk, Headroom: testHeadroom})
	must(t, err)
	h.group([]ledger.Command{ledger.Start{Incarnation: h.incarnation("boot")}, ledger.Registered{Revision: 1}})
	for range groups {
		var commands []ledger.Command
		for range 1 + h.r.IntN(4) {
			commands = append(commands, h.command())
		}
		h.group(commands)
		if h.r.IntN(60) == 0 {
			h.payloads, h.hashes = [][]byte{ledger.AppendEvents(nil, h.ledger.SnapshotEvents())}, []uint64{0, h.ledger.Hash()}
			must(t, h.journal.Rewrite(h.payloads))
		}
	}
	must(t, h.journal.Close())
	return h
}

func (h *history) incarnation(boot string) resource.Incarnation {
	return resource.Incarnation{JournalID: h.journal.ID(), BootID: boot}
}

func (h *history) command() ledger.Command {
	tx := resource.TxID(fmt.Sprint("tx-", h.r.IntN(h.drawn+1)))
	switch h.r.IntN(6) {
	case 0, 1:
		h.drawn++
		return h.reserve(resource.TxID(fmt.Sprint("tx-", h.drawn)))
	case 2:
		return grant.Commit{Tx: tx, Epoch: 1, Revision: 7}
	case 3:
		return grant.Abort{Tx: tx, Epoch: 1}
	case 4:
		return grant.Release{Tx: tx, Epoch: 1}
	default:
		return ledger.Stopped{Tx: tx}
	}
}

func (h *history) reserve(tx resource.TxID) grant.Reserve {
	q := resource.Request{Cores: h.r.IntN(3), Memory: 1 << 30}
	switch h.r.IntN(3) {
	case 0:
		q.GPUs = 1 + h.r.IntN(2)
	case 1:
		q.GPUShare = 300
	default:
		q.MIG, q.MIGProfile = 1+h.r.IntN(2), "1g.10gb"
	}
	return grant.Reserve{Tx: tx, Unit: "u", Epoch: 1, TTL: time.Minute, Members: []grant.MemberRequest{{Request: q}}}
}

// group decides commands and journals them as one write, each decision as a
// record of its own.
func (h *history) group(commands []ledger.Command) {
	var payloads [][]byte
	for _, c := range commands {
		_, events := h.ledger.Decide(h.now, c)
		for _, e := range events {
			must(h.t, h.ledger.Apply(e))
		}
		if len(events) > 0 {
			payloads = append(payloads, ledger.AppendEvents(nil, events))
			h.hashes = append(h.hashes, h.ledger.Hash())
		}
	}
	must(h.t, h.journal.Append(payloads...))
	h.payloads = append(h.payloads, payloads...)
}

// A full disk, seen from the ledger: no promise is decided, let alone written,
// and everything held can be released from the 16 MiB.
func TestFullDiskRefusesReservationsBeforeTheWriteAndReleasesAllThatIsHeld(t *testing.T) {
	host := gpuHost(t)
	h := &history{t: t, r: rand.New(rand.NewPCG(1, 1)), host: host, ledger: ledger.New(host), disk: newMemFS(), now: time.Unix(1000, 0), hashes: []uint64{0}}
	var err error
	lock := t.TempDir()
	h.journal, _, err = Open(lock, Options{FS: h.disk})
	must(t, err)
	h.group([]ledger.Command{ledger.Start{Incarnation: h.incarnation("boot")}, ledger.Registered{Revision: 1}})
	var held []resource.TxID
	for i := range 5 {
		tx := resource.TxID(fmt.Sprint("tx-", i))
		c := grant.Reserve{Tx: tx, Epoch: 1, TTL: time.Minute, Members: []grant.MemberRequest{{Request: resource.Request{GPUs: 1}}}}
		h.group([]ledger.Command{c, grant.Commit{Tx: tx, Epoch: 1, Revision: 2}})
		held = append(held, tx)
	}

	h.disk.room = 0
	for h.journal.Append(make([]byte, 1000)) == nil { // use up the space allocated beyond the headroom
	}
	must(t, h.journal.AppendEssential(make([]byte, 1000)))
	before := h.journal.Size()
	if err := h.journal.Reserve(); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("the owner's question before a promise: %v", err)
	}
	h.ledger.SetDiskFull("the disk is full")
	reply, events := h.ledger.Decide(h.now, h.reserve("late"))
	if !reply.Refused() || reply.Reasons[0].Code != resource.ReasonDiskFull || len(events) > 0 || h.journal.Size() != before {
		t.Fatalf("%+v with %d events, %d bytes after %d", reply, len(events), h.journal.Size(), before)
	}
	for _, tx := range held {
		for _, c := range []ledger.Command{grant.Release{Tx: tx, Epoch: 1}, ledger.Stopped{Tx: tx}} {
			_, events := h.ledger.Decide(h.now, c)
			for _, e := range events {
				must(t, h.ledger.Apply(e))
			}
			must(t, h.journal.AppendEssential(ledger.AppendEvents(nil, events)))
		}
	}
	must(t, h.journal.Sync())
	releases := 0
	for bytes := ledger.AppendEvents(nil, []ledger.Event{ledger.StopBegun{Tx: "a-transaction-of-36-bytes-as-they-are"}, ledger.Buried{Tx: "a-transaction-of-36-bytes-as-they-are"}}); ; releases++ {
		if err := h.journal.AppendEssential(bytes); err != nil {
			if !errors.Is(err, ErrDiskFull) {
				t.Fatal(err)
			}
			break
		}
	}
	if releases < 100_000 {
		t.Errorf("the headroom takes %d releases", releases)
	}
	h.disk.room = -1
	must(t, h.journal.Reserve())
	h.ledger.SetDiskFull("")
	if reply, _ := h.ledger.Decide(h.now, h.reserve("late")); reply.Refused() {
		t.Errorf("with room again: %v", reply.Reasons)
	}
}
