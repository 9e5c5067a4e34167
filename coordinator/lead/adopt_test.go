package lead

import (
	"testing"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// succeeded is the leader of the next term over the same store, whose nodes are
// not connected yet.
func (x *scene) succeeded() *scene {
	x.t.Helper()
	next := &scene{t: x.t, kv: x.kv, clock: x.clock, hosts: x.hosts}
	at := x.put("/leader", nil)
	next.Leader = NewLeader(Beginning{Rules: x.rules, Epoch: resource.Epoch(at), Held: record.ModRevIs("/leader", at), MaxOps: x.post.MaxOps(), Now: x.clock, Seed: [32]byte{1}})
	all := func(prefix string) []record.KV {
		kvs, _, err := x.kv.Range(x.t.Context(), prefix, store.RangeOptions{})
		if err != nil {
			x.t.Fatal(err)
		}
		return kvs
	}
	effects, err := next.Load(next.clock, Loaded{
		Nodes: all(record.NodesPrefix), Jobs: all(record.JobsPrefix), Units: all(record.UnitsPrefix), Txs: all(record.TxPrefix), Ready: all(record.ReadyPrefix), Orders: all(record.OrderPrefix),
	}, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	next.take(effects)
	return next
}

// TestWhichPreemptionsAreTakenOver: those that have no record, of units that wait.
func TestWhichPreemptionsAreTakenOver(t *testing.T) {
	x := newScene(t)
	a, b := x.claimed()
	tx, by := a.Attempt.Machine.ID(), b.Attempt.Machine.ID()

	next := x.succeeded()
	if d := next.adoptions[by]; d == nil || d.unit == nil || d.unit.Path != b.Path || len(d.victims) != 1 {
		t.Fatalf("undecided: %+v", d)
	}
	x.put(record.TxKey(by), record.MustEncode(record.Tx{State: grant.RecordAborted, Epoch: x.post.Epoch(), UnitUID: b.Record.UID}))
	next = x.succeeded()
	if len(next.adoptions) != 0 || next.work.Attempts[tx].Machine.By() != "" {
		t.Errorf("decided: %d are taken over, its victim is %s's", len(next.adoptions), next.work.Attempts[tx].Machine.By())
	}
}

// keptPlace is a preemption that an earlier leader began, whose place n1 keeps.
func keptPlace(t *testing.T) (*scene, *adoption, grant.Grant) {
	x := newScene(t)
	_, b := x.claimed()
	tx := b.Attempt.Machine.ID()
	members := x.nodes["n1"].reservations[tx].members
	next := x.succeeded()
	next.give(ResumeWork{})
	next.clear()
	next.hear(next.hosts["n1"])
	return next, next.adoptions[tx], grant.Grant{Tx: tx, Epoch: x.post.Epoch(), State: grant.Waiting, Members: members}
}

func (x *scene) tellsOf(g grant.Grant) {
	x.hear(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Grants: []grant.Grant{g}}})
}

// TestAPreemptionGoesOnOnceItsPlaceIsFound: it is taken over when all its members
// are kept, and not once it is being given up.
func TestAPreemptionGoesOnOnceItsPlaceIsFound(t *testing.T) {
	x, d, g := keptPlace(t)
	x.tellsOf(g)
	if a := x.work.Attempts[g.Tx]; a == nil || d.unit.Attempt != a || len(a.Victims) != 1 || x.adoptions[g.Tx] != nil {
		t.Errorf("it does not go on: %+v", a)
	}

	x, d, g = keptPlace(t)
	none := g
	none.Members = nil
	if x.tellsOf(none); x.work.Attempts[g.Tx] != nil || d.over {
		t.Errorf("without members: goes on %t, is given up %t", x.work.Attempts[g.Tx] != nil, d.over)
	}

	x, d, g = keptPlace(t)
	x.do(func() { x.abandon(d) })
	if x.tellsOf(g); x.work.Attempts[g.Tx] != nil || len(d.found) > 0 {
		t.Error("it goes on though it is being given up")
	}
}

// TestAPreemptionIsGivenUpOnce: with one write; its record is the leader's to
// collect only if that landed.
func TestAPreemptionIsGivenUpOnce(t *testing.T) {
	for landed, collected := range map[bool]int{true: 1, false: 0} {
		x, d, _ := keptPlace(t)
		x.answers()
		if !landed {
			x.put(record.TxKey(d.tx), record.MustEncode(record.Tx{State: grant.RecordAborted, Epoch: 1, UnitUID: d.unit.Record.UID}))
		}
		x.do(func() { x.abandon(d); x.abandon(d) })
		if len(x.asked) != 1 {
			t.Fatalf("%d writes, want one", len(x.asked))
		}
		if x.answer(); len(x.retired.all()) != collected || d.unit.Adopting != "" {
			t.Errorf("landed %t: %d records to collect, want %d", landed, len(x.retired.all()), collected)
		}
	}
}

// TestAnAgentMayHaveKeptSomethingElse: what is no place of the unit is not taken over.
func TestAnAgentMayHaveKeptSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]grant.Member) []grant.Member
		good   bool
	}{
		"its place":         {func(m []grant.Member) []grant.Member { return m }, true},
		"a member twice":    {func(m []grant.Member) []grant.Member { return append(m, m[0]) }, false},
		"a member too many": {func(m []grant.Member) []grant.Member { m[0].Index = 1; return m }, false},
		"a member below 0":  {func(m []grant.Member) []grant.Member { m[0].Index = -1; return m }, false},
		"fewer devices": {func(m []grant.Member) []grant.Member {
			m[0].Assignment.GPUs = m[0].Assignment.GPUs[1:]
			return m
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, d, g := keptPlace(t)
			d.found["n1"] = c.change(append([]grant.Member(nil), g.Members...))
			if _, err := x.placesOf(d); err == nil != c.good {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTwoAgentsMayHaveKeptTheSameMember: each of its own devices.
func TestTwoAgentsMayHaveKeptTheSameMember(t *testing.T) {
	x, d, g := keptPlace(t)
	x.hear(x.hosts["n2"])
	host := x.nodes["n2"].view.Host
	m := grant.Member{Index: g.Members[0].Index}
	if !host.Assign(host.NewFree(), d.unit.Demand.Request, &m.Assignment) {
		t.Fatal("n2 has no room")
	}
	d.found["n1"], d.found["n2"] = g.Members, []grant.Member{m}
	if id, err := x.placesOf(d); err == nil || id != "n2" {
		t.Errorf("%s: %v", id, err)
	}
}

// TestACreationThatHadNoAnswerIsFencedBeforeItIsRead: else it could land after the
// read.
func TestACreationThatHadNoAnswerIsFencedBeforeItIsRead(t *testing.T) {
	for landed, writes := range map[bool]int{true: 0, false: 1} {
		x := newScene(t)
		u := x.submit("a", 9, "")
		x.loses(landed)
		if e := x.asked[0]; e.Kind != post.WriteKeys || x.compares() != "tx/of nobody absent" {
			t.Fatalf("the next question is %d about %s", e.Kind, e.Key)
		}
		x.answer()
		if e := x.asked[0]; e.Kind != post.ReadKey || e.Key != u.Record.Path().Key() {
			t.Fatalf("the one after that is %d about %s", e.Kind, e.Key)
		}
		if x.answer(); len(x.asked) != writes || u.Stored != 0 != landed {
			t.Errorf("landed %t: stored at %d, %d writes follow", landed, u.Stored, len(x.asked))
		}
		if x.answers(); u.Stored == 0 || u.Err != nil {
			t.Errorf("landed %t: %v", landed, u.Err)
		}
	}
}

// TestACreationIsKnownByItsUID: another's unit of the same name is not it.
func TestACreationIsKnownByItsUID(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 9, "")
	x.loses(false)
	other := u.Record
	other.UID = "alloc-other"
	x.put(u.Record.Path().Key(), record.MustEncode(other))
	if x.answers(); u.Err == nil || u.Err.Code != 409 {
		t.Errorf("%v, stored at %d", u.Err, u.Stored)
	}
}

// TestAnAbandonedPreemptionWaitsForThoseNotHeard: of a restored store it may have
// been committed, and be held on a node that is not heard.
func TestAnAbandonedPreemptionWaitsForThoseNotHeard(t *testing.T) {
	for _, victims := range []int{0, 1} {
		x := newScene(t)
		a := x.running("a", 2, "")
		x.nodes["n2"].connected = false
		d := &adoption{tx: transaction(1), victims: []*work.Attempt{a.Attempt}[:victims]}
		x.adoptions = map[resource.TxID]*adoption{d.tx: d}
		x.do(func() { x.abandon(d) })
		op := x.asked[0].Write.Ops[0]
		if rec, err := record.Decode[record.Tx](op.Key, op.Value); err != nil || len(rec.Unheard) != victims || victims > 0 && rec.Unheard[0] != "n2" {
			t.Errorf("%d victims: it waits for %v, %v", victims, rec.Unheard, err)
		}
	}
}
