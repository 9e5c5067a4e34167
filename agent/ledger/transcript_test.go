package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestTranscripts runs the files under testdata/transcript: each a story of
// commands, with the reply, the journalled events and the ledger's state. The
// host has 8 CPUs, 4 GPUs and 2 × 64 GiB until a story changes it (see
// storyHosts). Rewrite them with -rewrite.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcript", func(t *testing.T, path string) {
		s := &story{t: t, host: machine(t, 8, 4), now: boot(0)}
		s.ledger = ledger.New(s.host)
		datadriven.RunTest(t, path, s.run)
	})
}

// storyHosts are the hosts that "rehost" can change to, by name.
func storyHosts() map[string]hardware {
	names := gpuNames(4)
	base := hardware{cpus: 8, memory: 64 << 30}
	for _, uuid := range names {
		base.gpus = append(base.gpus, card{uuid: uuid})
	}
	with := func(edit func(*hardware)) hardware {
		h := base
		h.gpus = slices.Clone(base.gpus)
		edit(&h)
		return h
	}
	pages := [2]map[int]int64{{2048: 512}, {2048: 256, 1 << 20: 2}}
	return map[string]hardware{
		"base":          base,
		"without-gpu0":  with(func(h *hardware) { h.gpus = h.gpus[1:] }),
		"with-new-card": with(func(h *hardware) { h.gpus = slices.Insert(h.gpus, 0, card{uuid: "GPU-new"}) }),
		"cpus-offline":  with(func(h *hardware) { h.offline = []int{0, 1} }),
		"less-memory":   with(func(h *hardware) { h.memory = 16 << 30 }),
		"pages":         with(func(h *hardware) { h.pages = pages }),
		"fewer-pages":   with(func(h *hardware) { h.pages = [2]map[int]int64{{2048: 16}, {2048: 256}} }),
		"mig": with(func(h *hardware) {
			h.gpus[2] = partition(names[2], "1g.10gb", "1g.10gb", "3g.40gb")
			h.gpus[3] = partition(names[3], "1g.10gb")
		}),
		"repartitioned": with(func(h *hardware) {
			h.gpus[2] = partition(names[2], "2g.20gb", "1g.10gb", "3g.40gb")
			h.gpus[3] = partition(names[3], "1g.10gb")
		}),
		"gpu0-in-mig-mode": with(func(h *hardware) { h.gpus[0] = partition(names[0], "1g.10gb", "3g.40gb") }),
	}
}

// story is one transcript in progress.
type story struct {
	t       *testing.T
	host    *fit.Host
	ledger  *ledger.Ledger
	journal [][]byte
	now     time.Time
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "at":
		s.now = boot(float64(number(t, d, "seconds")))
		return ""
	case "crash":
		s.ledger = ledger.New(s.host)
		if d.HasArg("wiped") {
			s.journal = nil
		}
		if d.HasArg("keep") {
			s.journal = s.journal[:number(t, d, "keep")]
		}
		if err := s.ledger.Replay(s.journal); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d records replayed\n%s", len(s.journal), s.grants())
	case "compact":
		s.journal = [][]byte{ledger.AppendEvents(nil, s.ledger.SnapshotEvents())}
		return fmt.Sprintf("%d bytes", len(s.journal[0]))
	case "rehost":
		h, ok := storyHosts()[word(t, d, "host")]
		if !ok {
			d.Fatalf(t, "no such host")
		}
		s.host = h.build(t)
		if err := s.ledger.Rehost(s.host); err != nil {
			return err.Error()
		}
		if err := s.ledger.Check(); err != nil {
			t.Fatal(err)
		}
		return s.grants()
	case "granted":
		// A grant that no command of the leader makes.
		at := number(t, d, "gpu")
		return s.apply([]ledger.Event{ledger.Granted{Grant: ledger.Grant{
			Tx: resource.TxID(word(t, d, "tx")), Origin: ledger.Origin(number(t, d, "origin")), State: grant.Held,
			Members: []ledger.Holding{{Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: at, UUID: gpuNames(4)[at], Milli: resource.WholeDevice}}}}},
		}}})
	case "disk-full":
		why := ""
		if d.HasArg("yes") {
			why = "the agent's disk is full: no promise without its record"
		}
		s.ledger.SetDiskFull(why)
		return ""
	case "short-of-memory":
		why := ""
		if d.HasArg("yes") {
			why = "all tasks waited for memory during 12.50 % of the last 10 s"
		}
		s.ledger.SetMemoryPressure(why)
		return ""
	case "grants":
		return s.grants()
	}
	return s.decide(s.command(t, d))
}

// number reads an argument, 0 where it is absent.
func number(t *testing.T, d *datadriven.TestData, key string) int {
	n := 0
	d.MaybeScanArgs(t, key, &n)
	return n
}

func word(t *testing.T, d *datadriven.TestData, key string) string {
	s := ""
	d.MaybeScanArgs(t, key, &s)
	return s
}

func (s *story) command(t *testing.T, d *datadriven.TestData) ledger.Command {
	tx := resource.TxID(word(t, d, "tx"))
	epoch, revision := resource.Epoch(number(t, d, "epoch")), resource.Revision(number(t, d, "revision"))
	grace := time.Duration(number(t, d, "grace")) * time.Second
	switch d.Cmd {
	case "reserve":
		c := grant.Reserve{Tx: tx, Unit: "unit", Epoch: epoch, TTL: time.Duration(number(t, d, "ttl")) * time.Second}
		for i := range max(1, number(t, d, "members")) {
			c.Members = append(c.Members, grant.MemberRequest{Index: i, Request: resource.Request{
				GPUs: number(t, d, "gpus"), GPUShare: resource.Milli(number(t, d, "share")), CPU: resource.Millicores(number(t, d, "cpu")),
				Cores: number(t, d, "cores"), Memory: resource.Bytes(number(t, d, "gib")) << 30,
				Hugepages: resource.Bytes(number(t, d, "pages")) << 21, HugepageSize: resource.Bytes(min(number(t, d, "pages"), 1)) << 21,
				MIG: number(t, d, "mig"), MIGProfile: word(t, d, "profile"),
			}})
		}
		if pinned := word(t, d, "pinned"); pinned != "" {
			for _, p := range strings.Split(pinned, "+") {
				c.Members[0].PinnedGPUs = append(c.Members[0].PinnedGPUs, int(p[0]-'0'))
			}
		}
		for _, v := range strings.FieldsFunc(word(t, d, "after"), func(r rune) bool { return r == '+' }) {
			c.After = append(c.After, resource.TxID(v))
		}
		return c
	case "commit":
		return grant.Commit{Tx: tx, Epoch: epoch, Revision: revision}
	case "abort":
		return grant.Abort{Tx: tx, Epoch: epoch}
	case "release":
		return grant.Release{Tx: tx, Epoch: epoch, Grace: grace, Reason: word(t, d, "reason")}
	case "evict":
		return grant.Evict{Tx: tx, Epoch: epoch, Grace: grace, By: resource.TxID(word(t, d, "by"))}
	case "stopped":
		c := ledger.Stopped{Tx: tx}
		for _, at := range strings.FieldsFunc(word(t, d, "busy"), func(r rune) bool { return r == '+' }) {
			c.Busy = append(c.Busy, s.host.Inventory().Devices[at[0]-'0'].UUID)
		}
		return c
	case "forget":
		return grant.Forget{Tx: tx}
	case "tick":
		return ledger.Tick{}
	case "new-epoch":
		return ledger.NewEpoch{Epoch: epoch}
	case "cordon":
		return grant.Cordon{Cordoned: d.HasArg("yes")}
	case "health":
		h, err := devices.ParseHealth(word(t, d, "is"))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return ledger.SetHealth{Device: number(t, d, "device"), Health: h, Reason: word(t, d, "reason")}
	case "start":
		return ledger.Start{Incarnation: incarnation(word(t, d, "journal"), word(t, d, "boot"))}
	case "resolved":
		asked := grant.State(number(t, d, "asked"))
		if g, ok := s.ledger.Lookup(tx); ok && !d.HasArg("asked") {
			asked = g.State
		}
		return ledger.Resolved{Tx: tx, State: recordState(t, d, word(t, d, "state")), Revision: revision, Grace: grace, Asked: asked}
	case "register":
		c := ledger.Registered{Revision: revision, Store: resource.Revision(number(t, d, "store")), Heard: s.ledger.Heard(), Records: s.records(t, d)}
		if d.HasArg("heard") {
			c.Heard = resource.Revision(number(t, d, "heard"))
		}
		return c
	case "reconcile":
		split := func(key string) (txs []resource.TxID) {
			for _, tx := range strings.FieldsFunc(word(t, d, key), func(r rune) bool { return r == '+' }) {
				txs = append(txs, resource.TxID(tx))
			}
			return txs
		}
		return grant.Reconcile{Epoch: epoch, Revision: revision, Adopted: split("adopted"), Released: split("released"), Grace: grace}
	}
	d.Fatalf(t, "unknown command %q", d.Cmd)
	return nil
}

func recordState(t *testing.T, d *datadriven.TestData, name string) grant.RecordState {
	for state := grant.RecordAbsent; state <= grant.RecordAborted; state++ {
		if state.String() == name {
			return state
		}
	}
	d.Fatalf(t, "unknown record state %q", name)
	return 0
}

// records reads lines "TX STATE GPU[+GPU…]".
func (s *story) records(t *testing.T, d *datadriven.TestData) []ledger.Record {
	var records []ledger.Record
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		r := ledger.Record{Tx: resource.TxID(f[0]), Unit: "unit", Epoch: 1, State: recordState(t, d, f[1]), Grace: 30 * time.Second, Revision: 40}
		var m ledger.Holding
		for _, p := range strings.Split(f[2], "+") {
			at := int(p[0] - '0')
			m.Assignment.GPUs = append(m.Assignment.GPUs, resource.GPUGrant{Index: at, UUID: s.host.Inventory().Devices[at].UUID, Milli: resource.WholeDevice})
		}
		r.Members = []ledger.Holding{m}
		records = append(records, r)
	}
	return records
}

// decide runs one command as the owner does and prints the result.
func (s *story) decide(cmd ledger.Command) string {
	reply, events := s.ledger.Decide(s.now, cmd)
	var b strings.Builder
	if reply.Tx != "" {
		fmt.Fprintf(&b, "%s is %s, says %s@%d\n", reply.Tx, reply.State, reply.Incarnation, reply.Registered)
	}
	for _, r := range reply.Reasons {
		fmt.Fprintf(&b, "No: %s\n", r)
	}
	for _, list := range []struct {
		name string
		txs  []resource.TxID
	}{{"resolve", reply.Resolve}, {"stop by force", reply.Stop}, {"woken", reply.Woken}} {
		if len(list.txs) > 0 {
			fmt.Fprintf(&b, "%s: %v\n", list.name, list.txs)
		}
	}
	for _, a := range reply.Alarms {
		fmt.Fprintf(&b, "ALARM: %s\n", a)
	}
	b.WriteString(s.apply(events))
	return b.String()
}

// apply applies events as the owner does, journals them and prints them.
func (s *story) apply(events []ledger.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "journal: %s\n", describe(e))
		if err := s.ledger.Apply(e); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.ledger.Check(); err != nil {
		s.t.Fatal(err)
	}
	if len(events) > 0 {
		s.journal = append(s.journal, ledger.AppendEvents(nil, slices.Clone(events)))
	}
	return b.String()
}

func describe(e ledger.Event) string {
	switch e := e.(type) {
	case ledger.Granted:
		s := fmt.Sprintf("Granted %s %s", e.Grant.Tx, e.Grant.State)
		for _, m := range e.Grant.Members {
			s += fmt.Sprintf(" member %d: %s", m.Index, holding(m.Assignment))
		}
		return s
	case ledger.Noticed:
		return fmt.Sprintf("Noticed %s until %s", e.Tx, seconds(e.Deadline)) + read(e.Revision)
	case ledger.StopBegun:
		return fmt.Sprintf("StopBegun %s until %s", e.Tx, seconds(e.Deadline)) + read(e.Revision)
	case ledger.Renewed:
		return fmt.Sprintf("Renewed %s in epoch %d until %s", e.Tx, e.Epoch, seconds(e.Deadline))
	case ledger.Promoted:
		return fmt.Sprintf("Promoted %s until %s", e.Tx, seconds(e.Deadline))
	case ledger.HealthChanged:
		return strings.TrimSpace(fmt.Sprintf("HealthChanged %s %s %s", e.UUID, e.Health, e.Reason))
	case ledger.Started:
		return fmt.Sprintf("Started %s", e.Incarnation)
	}
	text := fmt.Sprintf("%s %+v", strings.TrimPrefix(fmt.Sprintf("%T", e), "ledger."), e)
	return strings.NewReplacer(" Store:0}", "}", " Revision:0}", "}").Replace(text) // where nothing was read
}

// read returns the revision of the record that an event follows from.
func read(r resource.Revision) string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf(", read at %d", r)
}

func seconds(t time.Time) string { return fmt.Sprint(t.Sub(boot(0))) }

func holding(a resource.Assignment) string {
	var parts []string
	for _, g := range a.GPUs {
		parts = append(parts, fmt.Sprintf("gpu%d=%d", g.Index, g.Milli))
	}
	for _, g := range a.MIG {
		parts = append(parts, fmt.Sprintf("gpu%d/%d=%s", g.GPU, g.Instance, g.Profile))
	}
	for _, c := range a.CPUs {
		parts = append(parts, fmt.Sprintf("cpu%d=%d", c.ID, c.Milli))
	}
	for _, g := range a.Memory {
		parts = append(parts, fmt.Sprintf("node%d=%s", g.Node, resource.FormatBytes(g.Bytes)))
	}
	for _, g := range a.Hugepages {
		parts = append(parts, fmt.Sprintf("node%d=%s in %s", g.Node, resource.FormatBytes(g.Bytes), resource.FormatBytes(g.Size)))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func (s *story) grants() string {
	v := s.ledger.Snapshot()
	var b strings.Builder
	for _, g := range v.Grants {
		fmt.Fprintf(&b, "%s %s", g.Tx, g.State)
		for _, m := range g.Members {
			fmt.Fprintf(&b, " member %d: %s", m.Index, holding(m.Assignment))
		}
		b.WriteByte('\n')
	}
	if !v.Quarantine.IsZero() {
		fmt.Fprintf(&b, "in quarantine: the store is at %d, heard of %d\n", v.Quarantine.Store, v.Quarantine.Heard)
	}
	fmt.Fprintf(&b, "epoch %d, registered %d, free gpus", v.Epoch, v.Registered)
	for i, g := range v.GPUs {
		if instances := v.Host.Inventory().Devices[i].MIG; instances.Enabled {
			fmt.Fprintf(&b, " %0*b", len(instances.Instances), g.MIG) // a bit for each instance, the first to the right
		} else {
			fmt.Fprintf(&b, " %d", g.Milli)
		}
		if g.Health != devices.OK {
			fmt.Fprintf(&b, " (%s %s)", g.Health, g.Reason)
		}
	}
	b.WriteByte('\n')
	for _, n := range v.Nodes {
		for _, p := range n.Hugepages {
			fmt.Fprintf(&b, "free on node %d: %s of %s pages\n", n.ID, resource.FormatBytes(p.Bytes), resource.FormatBytes(p.Size))
		}
	}
	return b.String()
}
