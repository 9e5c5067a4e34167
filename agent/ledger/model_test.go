package ledger_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// next is the table of PROTOCOL.md section 4, written a second time: the next
// state of a grant after each message. A state that is not listed stays as it
// is.
var next = map[string]map[grant.State]grant.State{
	"commit":  {grant.Reserved: grant.Held},
	"abort":   {grant.Waiting: grant.None, grant.Reserved: grant.None},
	"release": {grant.None: grant.Tombstone, grant.Waiting: grant.Tombstone, grant.Reserved: grant.Tombstone, grant.Held: grant.Stopping},
	"evict":   {grant.Reserved: grant.Evicting, grant.Held: grant.Evicting},
	"stopped": {grant.Evicting: grant.Tombstone, grant.Stopping: grant.Tombstone},
	"forget":  {grant.Tombstone: grant.None},

	"resolved COMMITTED": {grant.Reserved: grant.Held},
	"resolved ABORTED":   {grant.Waiting: grant.None, grant.Reserved: grant.None, grant.Tombstone: grant.None},
	"resolved EVICTING":  {grant.None: grant.Tombstone, grant.Reserved: grant.Evicting, grant.Held: grant.Evicting},
	"resolved RELEASING": {grant.None: grant.Tombstone, grant.Waiting: grant.Tombstone, grant.Reserved: grant.Tombstone, grant.Held: grant.Stopping},
	"resolved RELEASED":  {grant.Waiting: grant.None, grant.Reserved: grant.None, grant.Tombstone: grant.None, grant.Held: grant.Stopping},
	"resolved absent":    {grant.Tombstone: grant.None},
}

// steps is how many random operations TestRandomOperationsAgreeWithTheModel
// does in all. For a long run: go test -run Random -ledger.steps=5000000.
var steps = flag.Int("ledger.steps", 200_000, "random operations of the model test")

// world is a naive model beside a ledger: states by transaction, owners by
// thing, everything compared with them after each step.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	hosts   []*fit.Host
	host    int // which of hosts the ledger is on
	full    amounts
	ledger  *ledger.Ledger
	replica *ledger.Ledger // fed by the journal alone
	journal [][]byte
	passed  []point // one for each record of the journal

	now    time.Time
	epoch  resource.Epoch
	boots  int
	state  map[resource.TxID]grant.State
	owners *owners
	health map[string]ledger.HealthChanged
	drawn  uint64
	// gone are attempts whose tombstones went, latest the store's revision.
	gone   []resource.TxID
	latest resource.Revision
	seen   map[string]int // how often something happened, for the log
}

// point is a state that the live ledger passed through.
type point struct {
	host int
	hash uint64
	len  int
	view *ledger.View // nil at most points: views are large
}

// worldHosts are one host and the hosts that it may change to.
func worldHosts(t testing.TB) []*fit.Host {
	a100 := func(uuid string) card { return card{uuid: uuid} }
	partitioned := partition("GPU-c", "1g.10gb", "1g.10gb", "1g.10gb", "3g.40gb")
	base := hardware{
		cpus: 8, memory: 64 << 30, pages: [2]map[int]int64{{2048: 512}, {2048: 256, 1 << 20: 2}},
		gpus: []card{a100("GPU-a"), a100("GPU-b"), partitioned, partition("GPU-d", "1g.10gb", "1g.10gb"), a100("GPU-e")},
	}
	with := func(edit func(*hardware)) *fit.Host {
		h := base
		h.gpus = slices.Clone(base.gpus)
		edit(&h)
		return h.build(t)
	}
	return []*fit.Host{
		base.build(t),
		with(func(h *hardware) { h.gpus = slices.Delete(h.gpus, 1, 2) }),
		with(func(h *hardware) {
			h.gpus = slices.Insert(h.gpus, 0, card{uuid: "GPU-new", health: devices.Suspect}, partition("GPU-x", "1g.10gb"))
		}),
		with(func(h *hardware) { h.gpus[2] = partition("GPU-c", "2g.20gb", "1g.10gb", "3g.40gb") }),
		with(func(h *hardware) { h.gpus[1], h.gpus[3] = partition("GPU-b", "1g.10gb", "3g.40gb"), a100("GPU-d") }),
		with(func(h *hardware) { h.offline = []int{1, 6, 7} }),
		with(func(h *hardware) { h.memory, h.pages = 20<<30, [2]map[int]int64{{2048: 100, 1 << 20: 1}, {2048: 256}} }),
		with(func(h *hardware) {
			h.gpus, h.memory, h.offline, h.system = []card{partitioned, a100("GPU-e"), a100("GPU-a")}, 40<<30, []int{0, 4}, []int{2}
		}),
	}
}

func TestRandomOperationsAgreeWithTheModel(t *testing.T) {
	const worlds = 25
	hosts := worldHosts(t)
	seen := map[string]int{}
	defer func() { t.Logf("of %d operations: %v", *steps, seen) }()
	for seed := range uint64(worlds) {
		w := &world{
			t: t, rng: rand.New(rand.NewPCG(seed, 7)), hosts: hosts, full: capacity(hosts[0]), now: boot(0), epoch: 3, latest: 10,
			ledger: ledger.New(hosts[0]), replica: ledger.New(hosts[0]),
			state: map[resource.TxID]grant.State{}, owners: newOwners(), health: map[string]ledger.HealthChanged{}, seen: seen,
		}
		w.restart(true)
		w.run(ledger.NewEpoch{Epoch: w.epoch})
		for range *steps / worlds {
			w.step()
			if t.Failed() {
				return
			}
		}
	}
}

// run decides and applies a command, journals it and feeds the replica.
func (w *world) run(cmd ledger.Command) ledger.Reply {
	reply, events := w.ledger.Decide(w.now, cmd)
	for _, e := range events {
		if err := w.ledger.Apply(e); err != nil {
			w.t.Fatalf("%+v: apply %+v: %v", cmd, e, err)
		}
	}
	if len(events) > 0 {
		payload := ledger.AppendEvents(nil, events)
		if err := w.replica.Replay([][]byte{payload}); err != nil {
			w.t.Fatalf("%+v: %v", cmd, err)
		}
		w.remember(payload)
	}
	return reply
}

// remember appends a record to the journal, with the state that it led to.
func (w *world) remember(payload []byte) {
	p := point{host: w.host, hash: w.ledger.Hash(), len: w.ledger.Len()}
	if w.rng.IntN(32) == 0 {
		p.view = w.ledger.Snapshot()
	}
	w.journal, w.passed = append(w.journal, payload), append(w.passed, p)
}

// enter puts a transaction into a state and applies the consequences to the
// grant that waits for it.
func (w *world) enter(tx resource.TxID, s grant.State) {
	was := w.state[tx]
	if s == grant.None {
		delete(w.state, tx)
		if _, epoch, _, err := tx.Attempt(); was == grant.Tombstone && err == nil && epoch <= w.epoch { // else of a store that was restored since
			w.gone = append(w.gone, tx)
		}
	} else {
		w.state[tx] = s
	}
	if (was.Holds() || was == grant.Waiting) && (s == grant.None || s == grant.Tombstone) {
		if woken := w.owners.end(tx); woken != "" {
			w.state[woken] = grant.Reserved
		}
	}
}

func (w *world) any() resource.TxID {
	txs := slices.Sorted(maps.Keys(w.state))
	if len(txs) == 0 || w.rng.IntN(20) == 0 {
		return resource.TxID(fmt.Sprintf("stray-%d", w.rng.IntN(3)))
	}
	return txs[w.rng.IntN(len(txs))]
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
	grace := time.Duration(w.rng.IntN(5)) * time.Second
	epoch := w.epoch - resource.Epoch(w.rng.IntN(10)/9)
	var op string
	tx := w.any()
	var cmd ledger.Command
	switch n := w.rng.IntN(40); {
	case n < 14:
		w.reserve(epoch)
		return
	case n < 18:
		op, cmd = "commit", grant.Commit{Tx: tx, Epoch: epoch, Revision: w.revision()}
	case n < 20:
		op, cmd = "abort", grant.Abort{Tx: tx, Epoch: epoch}
	case n < 23:
		op, cmd = "release", grant.Release{Tx: tx, Epoch: epoch, Grace: grace, Reason: "done"}
	case n < 25:
		op, cmd = "evict", grant.Evict{Tx: tx, Epoch: epoch, Grace: grace, By: "someone"}
	case n < 29:
		op, cmd, epoch = w.stopped(tx)
	case n < 32:
		op, cmd, epoch = "forget", grant.Forget{Tx: tx}, w.epoch
	case n < 36:
		s := grant.RecordState(w.rng.IntN(6))
		op, cmd, epoch = "resolved "+s.String(), ledger.Resolved{Tx: tx, State: s, Revision: w.revision(), Grace: grace, Asked: w.state[tx]}, w.epoch
	case n < 37:
		w.latest++
		w.epoch = resource.Epoch(w.latest)
		w.run(ledger.NewEpoch{Epoch: w.epoch})
		w.verify("new epoch")
		return
	case n < 38:
		w.setHealth()
		w.run(grant.Cordon{Cordoned: w.rng.IntN(10) == 0})
		w.tick()
		return
	case n < 39:
		w.rehost()
		return
	default:
		if w.rng.IntN(10) == 0 {
			w.restart(w.rng.IntN(3) == 0)
		}
		if w.rng.IntN(20) == 0 {
			w.quarantine()
		}
		return
	}
	reply := w.run(cmd)
	if stale := epoch < w.epoch; stale != reply.Refused() {
		w.t.Fatalf("%+v at epoch %d: %+v", cmd, w.epoch, reply.Reasons)
	} else if !stale {
		if to, ok := next[op][w.state[tx]]; ok {
			w.enter(tx, to)
		}
	}
	w.verify(cmd)
}

// stopped reports that a grant has stopped, with some devices busy; op is ""
// where it has to stay for that.
func (w *world) stopped(tx resource.TxID) (op string, c ledger.Stopped, epoch resource.Epoch) {
	c.Tx = tx
	for _, d := range w.hosts[w.host].Inventory().Devices {
		things := []thing{{kind: 'g', uuid: d.UUID}}
		for _, m := range d.MIG.Instances {
			things = append(things, thing{kind: 'i', uuid: m.UUID})
		}
		for _, x := range things {
			if w.rng.IntN(3) > 0 {
				continue
			}
			if c.Busy = append(c.Busy, x.uuid); w.wakesOn(x, tx) {
				op = "lingers"
			}
		}
	}
	if op == "" {
		return "stopped", c, w.epoch
	}
	w.seen[op]++
	return op, c, w.epoch
}

// wakesOn reports whether the end of a victim gives a device to a grant that
// waits for that victim alone, while no other process is to be seen on it.
func (w *world) wakesOn(x thing, victim resource.TxID) bool {
	if s := w.state[victim]; s != grant.Evicting && s != grant.Stopping {
		return false
	}
	for other := range w.owners.of[x] {
		if s := w.state[other]; other != victim && s.Holds() && s != grant.Reserved {
			return false
		}
	}
	for waiting, victims := range w.owners.waits {
		if victims[victim] && len(victims) == 1 && w.owners.of[x][waiting] > 0 {
			return true
		}
	}
	return false
}

// revision is one more than any before.
func (w *world) revision() resource.Revision {
	w.latest++
	return w.latest
}

func (w *world) reserve(epoch resource.Epoch) {
	w.drawn++
	c := grant.Reserve{
		Tx: resource.NewTxID("u", w.epoch, w.drawn, resource.Nonce{}), Unit: "u", Epoch: epoch, TTL: time.Duration(1+w.rng.IntN(9)) * time.Second,
		Name: fmt.Sprintf("default/alloc/%d/1", w.drawn), Tenant: "team",
	}
	switch n := w.rng.IntN(12); {
	case n < 2:
		c.Tx = w.any()
	case n == 2 && len(w.gone) > 0:
		c.Tx = w.gone[w.rng.IntN(len(w.gone))]
	}
	for i := range 1 + w.rng.IntN(3) {
		if q := w.request(); q != (resource.Request{}) {
			c.Members = append(c.Members, grant.MemberRequest{Index: i * 2, Request: q})
		}
	}
	if n := len(c.Members); n > 0 && w.drawn%3 > 0 { // an older leader says nothing
		c.UnitMembers = c.Members[n-1].Index + int(w.drawn%3)
	}
	if w.rng.IntN(4) == 0 {
		c.After = []resource.TxID{w.any(), w.any()}
	}
	was := w.state[c.Tx]
	reply := w.run(c)
	if was == grant.None && w.overtaken(c.Tx) && !reply.Refused() {
		w.t.Fatalf("%+v: an attempt that has ended here is granted again", c)
	}
	switch {
	case reply.Refused():
		w.seen["No: "+reply.Reasons[0].Code]++
		if epoch == w.epoch && was != grant.None && was != grant.Tombstone {
			w.t.Fatalf("repeated %+v of a %s grant: %v", c, was, reply.Reasons)
		}
	case was != grant.None:
		if reply.State != was {
			w.t.Fatalf("repeated %+v of a %s grant: %s", c, was, reply.State)
		}
	default:
		g, _ := w.ledger.Lookup(c.Tx)
		if len(reply.Members) != len(c.Members) || reply.State != g.State {
			w.t.Fatalf("%+v: %+v", c, reply)
		}
		if (g.State == grant.Waiting) != (len(g.Victims) > 0) {
			w.t.Fatalf("%+v: %s with victims %v", c, g.State, g.Victims)
		}
		w.granted(g)
	}
	w.verify(c)
}

// overtaken reports whether an attempt is no newer than one whose tombstone went.
func (w *world) overtaken(tx resource.TxID) bool {
	_, epoch, counter, err := tx.Attempt()
	return err == nil && slices.ContainsFunc(w.gone, func(gone resource.TxID) bool {
		_, e, n, _ := gone.Attempt()
		return e > epoch || e == epoch && n >= counter
	})
}

// granted enters a new grant and verifies that no other grant has its devices.
func (w *world) granted(g ledger.Grant) {
	w.state[g.Tx] = g.State
	w.seen[g.State.String()]++
	for _, m := range g.Members {
		a := &m.Assignment
		for kind, n := range map[string]int{"with CPUs": len(a.CPUs), "with cores": m.Request.Cores, "with pages": len(a.Hugepages), "with GPUs": len(a.GPUs), "with instances": len(a.MIG)} {
			w.seen[kind] += min(n, 1)
		}
	}
	w.owners.own(g.Tx, g.Members, g.Victims)
	if err := w.owners.overbooked(g.Tx, w.full); err != nil {
		w.t.Fatalf("%s is granted %+v on host %d: %v", g.Tx, g.Members, w.host, err)
	}
}

// request draws a member's request; the zero value at times.
func (w *world) request() resource.Request {
	q := resource.Request{Memory: resource.Bytes(w.rng.IntN(12)) << 30}
	if w.rng.IntN(3) == 0 {
		q.Cores = w.rng.IntN(3)
	} else {
		q.CPU = resource.Millicores(w.rng.IntN(1800))
	}
	if w.rng.IntN(3) == 0 {
		q.HugepageSize = 2 << 20 << (9 * w.rng.IntN(2))
		q.Hugepages = q.HugepageSize * resource.Bytes(1+w.rng.IntN(int(512<<20/q.HugepageSize+1)))
	}
	switch w.rng.IntN(3) {
	case 0:
		q.GPUs = 1 + w.rng.IntN(8)/6
	case 1:
		q.GPUShare = resource.Milli(w.rng.IntN(700))
	case 2:
		q.MIG, q.MIGProfile = 1+w.rng.IntN(2), []string{"1g.10gb", "3g.40gb"}[w.rng.IntN(2)]
	}
	return q
}

// setHealth gives a device a health and a reason, or the same again.
func (w *world) setHealth() {
	at := w.rng.IntN(len(w.hosts[w.host].Inventory().Devices))
	uuid := w.hosts[w.host].Inventory().Devices[at].UUID
	c := ledger.SetHealth{Device: at, Health: devices.Health(max(0, w.rng.IntN(16)-12)), Reason: []string{"", "xid 79", "hung"}[w.rng.IntN(3)]}
	before := len(w.journal)
	was := w.ledger.Snapshot().GPUs[at]
	w.run(c)
	if c.Health == devices.OK {
		c.Reason = ""
	}
	changed := was.Health != c.Health || was.Reason != c.Reason
	if changed != (len(w.journal) > before) {
		w.t.Fatalf("%+v of %+v is journalled: %v", c, was, !changed)
	}
	if changed {
		w.health[uuid] = ledger.HealthChanged{UUID: uuid, Health: c.Health, Reason: c.Reason}
	}
}

// tick verifies that exactly the due transactions are listed.
func (w *world) tick() {
	reply := w.run(ledger.Tick{})
	var resolve, stop []resource.TxID
	for tx, s := range w.state {
		g, _ := w.ledger.Lookup(tx)
		due := !g.Deadline.After(w.now)
		switch {
		case s == grant.Reserved && (due || g.Epoch < w.epoch && !g.WasWaiting), s == grant.Waiting && due:
			resolve = append(resolve, tx)
		case (s == grant.Evicting || s == grant.Stopping) && due:
			stop = append(stop, tx)
		}
	}
	slices.Sort(resolve)
	slices.Sort(stop)
	if !slices.Equal(resolve, reply.Resolve) || !slices.Equal(stop, reply.Stop) {
		w.t.Fatalf("tick lists %v and %v, due are %v and %v", reply.Resolve, reply.Stop, resolve, stop)
	}
	w.verify("tick")
}
