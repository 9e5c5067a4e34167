package ledger_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// next is the table of PROTOCOL.md section 4, written a second time: what each
// message makes of a grant's state. What is not listed stays as it is.
var next = map[string]map[ledger.State]ledger.State{
	"commit":  {ledger.Reserved: ledger.Held},
	"abort":   {ledger.Waiting: ledger.None, ledger.Reserved: ledger.None},
	"release": {ledger.None: ledger.Tombstone, ledger.Waiting: ledger.Tombstone, ledger.Reserved: ledger.Tombstone, ledger.Held: ledger.Stopping},
	"evict":   {ledger.Reserved: ledger.Evicting, ledger.Held: ledger.Evicting},
	"stopped": {ledger.Evicting: ledger.Tombstone, ledger.Stopping: ledger.Tombstone},
	"forget":  {ledger.Tombstone: ledger.None},

	"resolved COMMITTED": {ledger.Reserved: ledger.Held},
	"resolved ABORTED":   {ledger.Waiting: ledger.None, ledger.Reserved: ledger.None, ledger.Tombstone: ledger.None},
	"resolved EVICTING":  {ledger.None: ledger.Tombstone, ledger.Reserved: ledger.Evicting, ledger.Held: ledger.Evicting},
	"resolved RELEASING": {ledger.None: ledger.Tombstone, ledger.Waiting: ledger.Tombstone, ledger.Reserved: ledger.Tombstone, ledger.Held: ledger.Stopping},
	"resolved RELEASED":  {ledger.Waiting: ledger.None, ledger.Reserved: ledger.None, ledger.Tombstone: ledger.None, ledger.Held: ledger.Stopping},
	"resolved absent":    {ledger.Tombstone: ledger.None},
}

// world is a naive model beside a ledger: states by transaction, assignments
// as plain lists, everything recomputed from them after each step.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	host    *fit.Host
	ledger  *ledger.Ledger
	replica *ledger.Ledger // fed by the journal alone
	journal [][]byte

	now     time.Time
	epoch   resource.Epoch
	boots   int
	state   map[resource.TxID]ledger.State
	members map[resource.TxID][]ledger.Member
	victims map[resource.TxID][]resource.TxID
	drawn   int
}

func TestRandomOperationsAgreeWithTheModel(t *testing.T) {
	steps := 250_000
	if testing.Short() {
		steps = 20_000
	}
	const worlds = 25
	host := machine(t, 8, 4)
	for seed := range uint64(worlds) {
		w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), host: host, ledger: ledger.New(host), replica: ledger.New(host), now: boot(0), epoch: 3}
		w.forget()
		w.restart(true)
		w.run(ledger.NewEpoch{Epoch: w.epoch})
		for range steps / worlds {
			w.step()
		}
	}
}

func (w *world) forget() {
	w.state, w.members, w.victims = map[resource.TxID]ledger.State{}, map[resource.TxID][]ledger.Member{}, map[resource.TxID][]resource.TxID{}
}

// run decides and applies a command, journals it, feeds the replica, and
// verifies everything the model knows.
func (w *world) run(cmd ledger.Command) ledger.Reply {
	reply, events := w.ledger.Decide(w.now, cmd)
	for _, e := range events {
		if err := w.ledger.Apply(e); err != nil {
			w.t.Fatalf("%+v: apply %+v: %v", cmd, e, err)
		}
	}
	if len(events) > 0 {
		payload := ledger.AppendEvents(nil, events)
		w.journal = append(w.journal, payload)
		if err := w.replica.Replay([][]byte{payload}); err != nil {
			w.t.Fatalf("%+v: %v", cmd, err)
		}
	}
	return reply
}

func (w *world) verify(what string) {
	if err := w.ledger.Check(); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	if err := w.replica.Check(); err != nil || w.replica.Hash() != w.ledger.Hash() || w.replica.Len() != w.ledger.Len() {
		w.t.Fatalf("%s: the replica has %d grants with hash %x, the ledger %d with %x: %v", what, w.replica.Len(), w.replica.Hash(), w.ledger.Len(), w.ledger.Hash(), err)
	}
	for tx, want := range w.state {
		if g, _ := w.ledger.Lookup(tx); g.State != want {
			w.t.Fatalf("%s: %s is %s, the model says %s", what, tx, g.State, want)
		}
	}
	if w.ledger.Len() != len(w.state) {
		w.t.Fatalf("%s: %d grants, the model has %d", what, w.ledger.Len(), len(w.state))
	}
	if w.rng.IntN(20) == 0 {
		w.verifyFree(what)
	}
}

// verifyFree compares what is free with the model: each slot's use is the sum
// over grants, except that a Waiting grant and its victims use the greater of
// the two.
func (w *world) verifyFree(what string) {
	type slot struct {
		kind string
		id   int
	}
	slots := func(txs []resource.TxID) map[slot]int64 {
		use := map[slot]int64{}
		for _, tx := range txs {
			for _, m := range w.members[tx] {
				for _, c := range m.Assignment.CPUs {
					use[slot{"cpu", c.ID}] += int64(c.Milli)
				}
				for _, g := range m.Assignment.Memory {
					use[slot{"memory", g.Node}] += int64(g.Bytes)
				}
				for _, g := range m.Assignment.GPUs {
					use[slot{"gpu", g.Index}] += int64(g.Milli)
				}
			}
		}
		return use
	}
	var alone []resource.TxID
	claimed := map[resource.TxID]bool{}
	for _, list := range w.victims {
		for _, v := range list {
			claimed[v] = true
		}
	}
	total := map[slot]int64{}
	for tx, s := range w.state {
		switch {
		case s == ledger.Waiting:
			want, have := slots([]resource.TxID{tx}), slots(w.victims[tx])
			for k := range have {
				want[k] = max(want[k], have[k])
			}
			for k, n := range want {
				total[k] += n
			}
		case s.Holds() && !claimed[tx]:
			alone = append(alone, tx)
		}
	}
	for k, n := range slots(alone) {
		total[k] += n
	}
	full := w.host.NewFree()
	view := w.ledger.Snapshot()
	for i := range full.CPU {
		full.CPU[i] -= resource.Millicores(total[slot{"cpu", i}])
	}
	for i := range full.Memory {
		full.Memory[i] -= resource.Bytes(total[slot{"memory", i}])
	}
	for i := range full.GPU {
		full.GPU[i] -= resource.Milli(total[slot{"gpu", i}])
	}
	if !slices.Equal(full.CPU, view.Free.CPU) || !slices.Equal(full.Memory, view.Free.Memory) || !slices.Equal(full.GPU, view.Free.GPU) {
		w.t.Fatalf("%s: free is %v %v %v, the model says %v %v %v", what, view.Free.CPU, view.Free.Memory, view.Free.GPU, full.CPU, full.Memory, full.GPU)
	}
}

// enter puts a transaction into a state and follows what that means for who
// waits for it.
func (w *world) enter(tx resource.TxID, s ledger.State) {
	was := w.state[tx]
	if s == ledger.None {
		delete(w.state, tx)
	} else {
		w.state[tx] = s
	}
	if s == ledger.None || s == ledger.Tombstone {
		delete(w.members, tx)
	}
	if was == ledger.Waiting {
		delete(w.victims, tx)
	}
	if !was.Holds() || s.Holds() {
		return
	}
	for waiting, list := range w.victims {
		if i := slices.Index(list, tx); i >= 0 {
			list = slices.Delete(slices.Clone(list), i, i+1)
			w.victims[waiting] = list
			if len(list) == 0 {
				delete(w.victims, waiting)
				w.state[waiting] = ledger.Reserved
			}
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
		op, cmd = "commit", ledger.Commit{Tx: tx, Epoch: epoch, Revision: 9}
	case n < 20:
		op, cmd = "abort", ledger.Abort{Tx: tx, Epoch: epoch}
	case n < 23:
		op, cmd = "release", ledger.Release{Tx: tx, Epoch: epoch, Grace: grace, Reason: "done"}
	case n < 25:
		op, cmd = "evict", ledger.Evict{Tx: tx, Epoch: epoch, Grace: grace, By: "someone"}
	case n < 29:
		op, cmd, epoch = "stopped", ledger.Stopped{Tx: tx}, w.epoch
	case n < 32:
		op, cmd, epoch = "forget", ledger.Forget{Tx: tx}, w.epoch
	case n < 36:
		s := ledger.RecordState(w.rng.IntN(6))
		op, cmd, epoch = "resolved "+s.String(), ledger.Resolved{Tx: tx, State: s, Revision: 10, Grace: grace}, w.epoch
	case n < 37:
		w.epoch++
		w.run(ledger.NewEpoch{Epoch: w.epoch})
		w.verify("new epoch")
		return
	case n < 38:
		w.run(ledger.SetHealth{Device: w.rng.IntN(4), Health: devices.Health(w.rng.IntN(4))})
		w.run(ledger.Cordon{Cordoned: w.rng.IntN(4) == 0})
		w.tick()
		return
	default:
		if w.rng.IntN(10) == 0 {
			w.restart(w.rng.IntN(3) == 0)
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
	w.verify(fmt.Sprintf("%+v", cmd))
}

func (w *world) reserve(epoch resource.Epoch) {
	w.drawn++
	c := ledger.Reserve{Tx: resource.TxID(fmt.Sprintf("tx-%d", w.drawn)), Unit: "u", Epoch: epoch, TTL: time.Duration(1+w.rng.IntN(9)) * time.Second}
	if w.rng.IntN(6) == 0 {
		c.Tx = w.any()
	}
	for i := range 1 + w.rng.IntN(3) {
		q := resource.Request{CPU: resource.Millicores(w.rng.IntN(2500)), Memory: resource.Bytes(w.rng.IntN(20)) << 30}
		if w.rng.IntN(2) == 0 {
			q.GPUs = w.rng.IntN(3)
		} else {
			q.GPUShare = resource.Milli(w.rng.IntN(700))
		}
		if q != (resource.Request{}) {
			c.Members = append(c.Members, ledger.MemberRequest{Index: i * 2, Request: q})
		}
	}
	if w.rng.IntN(4) == 0 {
		c.After = []resource.TxID{w.any(), w.any()}
	}
	was := w.state[c.Tx]
	reply := w.run(c)
	switch {
	case reply.Refused():
		if epoch == w.epoch && was != ledger.None && was != ledger.Tombstone {
			w.t.Fatalf("repeated %+v of a %s grant: %v", c, was, reply.Reasons)
		}
	case was != ledger.None:
		if reply.State != was {
			w.t.Fatalf("repeated %+v of a %s grant: %s", c, was, reply.State)
		}
	default:
		g, _ := w.ledger.Lookup(c.Tx)
		if len(reply.Members) != len(c.Members) || reply.State != g.State {
			w.t.Fatalf("%+v: %+v", c, reply)
		}
		w.state[c.Tx], w.members[c.Tx] = g.State, g.Members
		if (g.State == ledger.Waiting) != (len(g.Victims) > 0) {
			w.t.Fatalf("%+v: %s with victims %v", c, g.State, g.Victims)
		}
		if g.State == ledger.Waiting {
			w.victims[c.Tx] = g.Victims
		}
	}
	w.verify(fmt.Sprintf("%+v", c))
}

// tick verifies that exactly what is due is listed.
func (w *world) tick() {
	reply := w.run(ledger.Tick{})
	var resolve, stop []resource.TxID
	for tx, s := range w.state {
		g, _ := w.ledger.Lookup(tx)
		due := !g.Deadline.After(w.now)
		switch {
		case s == ledger.Reserved && (due || g.Epoch < w.epoch && !g.WasWaiting), s == ledger.Waiting && due:
			resolve = append(resolve, tx)
		case (s == ledger.Evicting || s == ledger.Stopping) && due:
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

// restart replays the journal into a new ledger, sometimes a compacted one,
// under the same or another incarnation, and registers where it must.
func (w *world) restart(reboot bool) {
	if w.rng.IntN(2) == 0 {
		w.journal = [][]byte{ledger.AppendEvents(nil, w.ledger.SnapshotEvents())}
	}
	fresh := ledger.New(w.host)
	if err := fresh.Replay(w.journal); err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(w.ledger.Snapshot(), fresh.Snapshot(), cmp.Comparer(sameFree)); diff != "" {
		w.t.Fatalf("replayed ledger differs: %s", diff)
	}
	w.ledger, w.replica = fresh, ledger.New(w.host)
	if err := w.replica.Replay(w.journal); err != nil {
		w.t.Fatal(err)
	}
	if reboot {
		w.boots++
		w.now = boot(0)
	}
	w.run(ledger.Start{Incarnation: incarnation("j", fmt.Sprint(w.boots))})
	if reply := w.run(gpus("early", w.epoch, 1)); reboot != reply.Refused() && !w.cordonedOrFull(reply) {
		w.t.Fatalf("reserve after reboot %v: %+v", reboot, reply)
	} else if !reply.Refused() {
		w.state["early"], w.members["early"] = reply.State, reply.Members
	}
	if reboot {
		w.register()
	}
	w.verify("restart")
}

// cordonedOrFull reports a refusal for an ordinary reason, or a repetition.
func (w *world) cordonedOrFull(r ledger.Reply) bool {
	return r.Refused() && r.Reasons[0].Code != resource.ReasonUnregistered
}

// register meets the store after a reboot: what was held or ends is listed,
// reservations only where they were committed in time.
func (w *world) register() {
	var records []ledger.Record
	after := map[resource.TxID]ledger.State{}
	for tx, s := range w.state {
		g, _ := w.ledger.Lookup(tx)
		r := ledger.Record{Tx: tx, Unit: g.Unit, Epoch: g.Epoch, State: ledger.RecordCommitted, Members: g.Members, Revision: 20, Incarnation: g.Incarnation}
		switch s {
		case ledger.Waiting:
			after[tx] = ledger.None
			continue
		case ledger.Reserved:
			after[tx] = ledger.None
			if w.rng.IntN(2) == 0 {
				continue
			}
			after[tx] = ledger.Held
		case ledger.Held:
			after[tx] = ledger.Held
			if w.rng.IntN(3) == 0 {
				r.State, after[tx] = ledger.RecordReleasing, ledger.Tombstone
			}
		case ledger.Evicting:
			r.State, after[tx] = ledger.RecordEvicting, ledger.Tombstone
		case ledger.Stopping:
			r.State, after[tx] = ledger.RecordReleasing, ledger.Tombstone
		case ledger.Tombstone:
			after[tx] = ledger.Tombstone
			continue
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b ledger.Record) int { return w.rng.IntN(3) - 1 })
	reply := w.run(ledger.Registered{Revision: 30, Records: records})
	if len(reply.Alarms) > 0 {
		w.t.Fatalf("registration: %v", reply.Alarms)
	}
	w.victims = map[resource.TxID][]resource.TxID{}
	for tx, s := range after {
		w.enter(tx, s)
	}
	w.adoptFromNothing(records)
}

// adoptFromNothing verifies the wiped-disk path: a ledger without a journal
// adopts what the store lists.
func (w *world) adoptFromNothing(records []ledger.Record) {
	l := ledger.New(w.host)
	do(w.t, l, w.now, ledger.Start{Incarnation: incarnation("wiped", fmt.Sprint(w.boots))})
	reply := do(w.t, l, w.now, ledger.Registered{Revision: 31, Records: records})
	if len(reply.Alarms) > 0 {
		w.t.Fatalf("adoption: %v", reply.Alarms)
	}
	for _, r := range records {
		want := ledger.Held
		if r.State != ledger.RecordCommitted {
			want = ledger.Tombstone // its incarnation is of an earlier boot
		}
		if g, _ := l.Lookup(r.Tx); g.State != want {
			w.t.Fatalf("record %s %s was adopted as %s", r.State, r.Tx, g.State)
		}
	}
}

func sameFree(a, b *fit.Free) bool {
	return slices.Equal(a.CPU, b.CPU) && slices.Equal(a.Memory, b.Memory) && slices.Equal(a.GPU, b.GPU) && a.Unhealthy == b.Unhealthy
}
