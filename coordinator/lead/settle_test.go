package lead

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// settledRounds are the rounds in which a leader has ended all that was begun.
const settledRounds = 40

// settle lets everything end that was begun: the store answers all, the agents
// confirm what they are asked for, and time passes.
func (x *inputs) settle(t *rapid.T) {
	for range settledRounds {
		x.answerAll(t)
		for _, path := range slices.Sorted(maps.Keys(x.work.Units)) {
			if u := x.work.Units[path]; u != nil && u.Attempt != nil {
				x.confirm(t, u)
			}
		}
		x.answerAll(t)
		x.pause(t, 3*time.Second)
	}
	x.answerAll(t)
}

// answerAll has the store answer all questions, as it is.
func (x *inputs) answerAll(t *rapid.T) {
	for n := 0; len(x.asked) > 0; n++ {
		if n > 10_000 {
			t.Fatal("the leader does not stop asking")
		}
		e := x.asked[0]
		x.asked = x.asked[1:]
		if e.Kind == post.ReadKey {
			kv, found, rev, err := x.kv.Get(context.Background(), e.Key)
			if err != nil {
				t.Fatal(err)
			}
			x.give(t, ReadAnswer{e.Token, kv, found, rev})
			continue
		}
		write := record.Txn{If: e.Write.Compares, Then: e.Write.Ops}
		if !e.Write.AnyEpoch {
			write.If = append([]record.Compare{x.held}, write.If...)
		}
		r, err := x.kv.Txn(context.Background(), write)
		if err != nil {
			t.Fatal(err)
		}
		x.give(t, WriteAnswer{e.Token, map[bool]txn.Outcome{true: txn.Landed, false: txn.Conflict}[r.Succeeded], r.Revision, nil})
	}
}

// confirm has all agents of a unit do what the unit's attempt wants of them.
func (x *inputs) confirm(t *rapid.T, u *work.Unit) {
	a := u.Attempt
	for _, id := range a.Machine.Nodes() {
		n := x.nodes[id]
		e := grant.Replied{Node: id, Tx: a.Machine.ID(), Incarnation: n.incarnation, Revision: n.revision, State: grant.Held}
		if h := n.reservations[e.Tx]; h != nil {
			e.Members = h.members
		}
		switch s := a.Machine.State(); {
		case a.Machine.Undecided():
			e.State = grant.Reserved
			if len(a.Victims) > 0 && s == txn.Reserving {
				e.State = grant.Waiting
			}
		case s >= txn.Evicting:
			e.State, e.Members = grant.Tombstone, nil
		}
		x.give(t, AgentEvent{e})
	}
}

// succeed has the leader die, with all questions that it has asked, and another
// follow. The agents come back with all that they hold.
func (x *inputs) succeed(t *rapid.T) {
	before := x.Leader
	at := x.put(t, "/leader", nil)
	x.asked, x.wakes = nil, time.Time{}
	x.Leader = NewLeader(Beginning{
		Rules: before.rules, Epoch: resource.Epoch(at), Held: record.ModRevIs("/leader", at), MaxOps: mem.DefaultMaxTxnOps, Now: x.clock, Seed: [32]byte{byte(at), byte(at >> 8)},
	})
	all := func(prefix string) []record.KV {
		kvs, _, err := x.kv.Range(context.Background(), prefix, store.RangeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return kvs
	}
	effects, err := x.Load(x.clock, Loaded{
		Nodes: all(record.NodesPrefix), Jobs: all(record.JobsPrefix), Units: all(record.UnitsPrefix), Txs: all(record.TxPrefix), Ready: all(record.ReadyPrefix), Orders: all(record.OrderPrefix),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.take(t, x.Apply(x.clock, ResumeWork{}, effects))
	for _, id := range []resource.NodeID{"n1", "n2"} {
		n := before.nodes[id]
		x.give(t, AgentEvent{StreamOpened{Hello: grant.Hello{Node: id, Incarnation: n.incarnation, Revision: n.revision, Host: n.host, Occupancy: occupancyOf(before, n)}, Fit: n.view.Host}})
	}
}

// occupancyOf is what an agent holds, as a leader knows it.
func occupancyOf(l *Leader, n *node) (o grant.Occupancy) {
	for tx, h := range n.reservations {
		if !h.confirmed {
			continue
		}
		s := grant.Reserved
		if a := l.work.Attempts[tx]; a != nil && !a.Machine.Undecided() {
			s = grant.Held
		} else if h.waiting {
			s = grant.Waiting
		}
		o.Grants = append(o.Grants, grant.Grant{Tx: tx, Epoch: l.post.Epoch(), State: s, Members: h.members})
	}
	return o
}

// checkSettled verifies what holds of work once everything has ended that was begun:
// no suspended unit holds anything, each job has as many members as it wants, and
// the store has exactly the units of the leader, with a place in the order for each
// that waits.
func (x *inputs) checkSettled(t *rapid.T) {
	for _, path := range slices.Sorted(maps.Keys(x.work.Units)) {
		u := x.work.Units[path]
		if u.IsSuspended() && !u.Phase().Ended() && (u.Attempt != nil || !u.Waiting()) {
			t.Errorf("%s is suspended and %s, with an attempt: %t", path, u.Life.Phase(), u.Attempt != nil)
		}
		if u.IsSuspended() && u.Waiting() && x.room.Offered(path) {
			t.Errorf("%s is suspended and may be tried", path)
		}
		if u.Life.EndAsked() && u.Job == nil {
			t.Errorf("%s was to end and is %s", path, u.Life.Phase())
		}
		if u.Waiting() && !u.Queued {
			t.Errorf("%s waits and has no place in the order", path)
		}
	}
	for name, j := range x.work.Jobs {
		members := 0
		for _, u := range j.Units {
			members += u.Record.Members
		}
		if want := j.Doc.Members(); j.Record.Cancelled == nil && members != want {
			t.Errorf("job %s has %d members and wants %d", name, members, want)
		}
	}
	stored := map[string]bool{}
	kvs, _, err := x.kv.Range(context.Background(), record.UnitsPrefix, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range kvs {
		p, err := record.ParseUnitKey(kv.Key)
		if err != nil {
			t.Fatal(err)
		}
		stored[p.String()] = true
	}
	orders, _, err := x.kv.Range(context.Background(), record.OrderPrefix, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	placed := map[string]bool{}
	for _, kv := range orders {
		key, err := record.ParseOrderKey(kv.Key)
		if err != nil {
			t.Fatal(err)
		}
		u := x.work.Units[key.Unit.String()]
		if u == nil || !u.Waiting() || u.Record.Order().Key() != kv.Key || placed[u.Path] {
			t.Errorf("the store has %s, which is no place of a unit that waits", kv.Key)
			continue
		}
		placed[u.Path] = true
	}
	for path, u := range x.work.Units {
		if !stored[path] {
			t.Errorf("%s is %s and not in the store", path, u.Life.Phase())
		}
		if u.Waiting() && !placed[path] {
			t.Errorf("%s waits and the store has no place for it", path)
		}
	}
	if len(stored) != len(x.work.Units) {
		t.Errorf("the store has %d units, the leader %d", len(stored), len(x.work.Units))
	}
}

// TestWorkIsAsItsOwnerWantsWhateverFails: owners suspend, resume, resize, move and
// delete work, the store answers or not, and leaders die at any step. Once all is
// quiet, nothing that is suspended holds anything and nothing is lost.
func TestWorkIsAsItsOwnerWantsWhateverFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newInputs(t, map[work.Phase]int{})
		defer x.kv.Close()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 19).Draw(t, "step"); {
			case n < 2 && len(x.work.Units) < 8:
				x.create(t)
			case n < 7 && len(x.work.Units) > 0:
				x.change(t)
			case n < 8 && len(x.work.Units) > 0:
				x.remove(t)
			case n < 12 && len(x.asked) > 0:
				x.answer(t)
			case n < 13:
				x.answerAll(t)
			case n < 17:
				x.confirmAny(t)
			case n < 18:
				x.pause(t, time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms"))*time.Millisecond)
			case n < 19:
				x.reconnect(t)
			default:
				x.succeed(t)
			}
		}
		if rapid.Bool().Draw(t, "the leader dies") {
			x.succeed(t)
		}
		x.settle(t)
		x.checkSettled(t)
	})
}

// confirmAny has the agents of some unit do what is asked of them.
func (x *inputs) confirmAny(t *rapid.T) {
	var with []string
	for path, u := range x.work.Units {
		if u.Attempt != nil {
			with = append(with, path)
		}
	}
	if len(with) == 0 {
		return
	}
	slices.Sort(with)
	x.confirm(t, x.work.Units[rapid.SampledFrom(with).Draw(t, "unit")])
}

// remove has an owner delete something.
func (x *inputs) remove(t *rapid.T) {
	u := x.any(t)
	x.do(t, func() {
		if u.Job == nil {
			x.end(u, txn.ReleaseAsked{Reason: "deleted"})
			return
		}
		x.cancelJob(u.Job, record.Cancellation{Reason: "deleted", Remove: rapid.Bool().Draw(t, "remove")}, func(*api.Status) {})
	})
}
