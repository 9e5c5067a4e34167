package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// status is the refusal that the client has got since clear, nil for none.
func (x *scene) status() *api.Status {
	for _, e := range x.left {
		if e.Kind == post.AnswerClient {
			return e.Status
		}
	}
	return nil
}

// code is that of status, 0 for none.
func (x *scene) code() int {
	if s := x.status(); s != nil {
		return s.Code
	}
	return 0
}

// TestARegistrationEndsAFence: exactly one that came after the fence was written.
func TestARegistrationEndsAFence(t *testing.T) {
	for revision, ends := range map[resource.Revision]bool{0: false, 4: false, 5: false, 6: true} {
		x := newScene(t)
		n := x.nodes["n1"]
		n.setFence(&fence{revision: 5})
		n.revision = revision
		if n.registered() != ends {
			t.Errorf("at %d: registered %t", revision, n.registered())
		}
		if x.do(func() { x.onAgentReturned(n) }); (n.fence == nil) != ends {
			t.Errorf("at %d: the fence is %+v", revision, n.fence)
		}
	}
}

// TestAFenceThatIsOlderThanWhatIsKnownChangesNothing: the store's answers come in
// any order.
func TestAFenceThatIsOlderThanWhatIsKnownChangesNothing(t *testing.T) {
	cases := map[string]struct {
		fence, registered resource.Revision // that are known
		takes             bool
	}{
		"nothing is known":           {0, 4, true},
		"an older fence":             {4, 3, true},
		"the same fence":             {5, 3, false},
		"a newer fence":              {6, 3, false},
		"it has registered since":    {0, 6, false},
		"it was of that very moment": {0, 5, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			n := x.nodes["n1"]
			n.revision = c.registered
			if c.fence != 0 {
				n.setFence(&fence{revision: c.fence})
			}
			x.do(func() { x.fenced(n, &fence{revision: 5, dead: true}) })
			if took := n.fence != nil && n.fence.dead; took != c.takes {
				t.Errorf("taken over: %t", took)
			}
		})
	}
}

// TestWhoIsAliveIsNotFenced: neither who is heard nor who is connected, but by
// force.
func TestWhoIsAliveIsNotFenced(t *testing.T) {
	for name, c := range map[string]struct {
		connected, leased, force bool
		refused                  bool
	}{
		"nobody hears it":       {},
		"it is connected":       {connected: true, refused: true},
		"another hears it":      {leased: true, refused: true},
		"connected, with force": {connected: true, force: true},
		"heard, with force":     {leased: true, force: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			if !c.connected {
				x.hear(grant.Disconnected{Node: "n1"})
			}
			if c.leased {
				x.put(record.NodeLeaseKey("n1"), record.MustEncode(record.NodeLease{Coordinator: "c2"}))
			}
			x.give(ClientRequest{1, FenceNode{"n1", api.FenceOptions{Force: c.force}}})
			x.answers()
			if refused := x.code() == 409; refused != c.refused || refused == (x.nodes["n1"].fence != nil) {
				t.Errorf("answered %v, fence %+v", x.status(), x.nodes["n1"].fence)
			}
		})
	}
}

// TestADeathIsOfTheIncarnationThatWasMeant: one that registers while its death is
// written is back.
func TestADeathIsOfTheIncarnationThatWasMeant(t *testing.T) {
	for dead, refused := range map[bool]bool{true: true, false: false} {
		x := newScene(t)
		x.hear(grant.Disconnected{Node: "n1"})
		x.give(ClientRequest{1, FenceNode{"n1", api.FenceOptions{ConfirmDead: dead}}})
		x.answer()
		x.answer()
		x.put(record.NodeIdentityKey("n1"), record.MustEncode(record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "n1", BootID: "new"}}))
		if x.answers(); x.code() == 409 != refused {
			t.Errorf("confirmed dead %t: answered %v", dead, x.status())
		}
	}
}

func TestAFenceIsTriedEightTimes(t *testing.T) {
	x := newScene(t)
	x.hear(grant.Disconnected{Node: "n1"})
	x.give(ClientRequest{1, FenceNode{"n1", api.FenceOptions{}}})
	tries := 0
	for x.code() == 0 {
		x.answer()
		x.answer()
		x.put(record.NodeIdentityKey("n1"), record.MustEncode(record.NodeIdentity{Incarnation: x.nodes["n1"].incarnation}))
		x.answer()
		tries++
	}
	if tries != fenceAttempts {
		t.Errorf("it was tried %d times, want %d", tries, fenceAttempts)
	}
}

// TestWhatEndsWithANode: what is undecided goes elsewhere; what is decided stays,
// until the node is confirmed dead.
func TestWhatEndsWithANode(t *testing.T) {
	for dead, phase := range map[bool]api.Phase{false: api.Running, true: api.Failed} {
		x := newScene(t)
		a := x.running("a", 2, "")
		b := x.submit("b", 2, "")
		x.hear(grant.Disconnected{Node: "n1"})
		x.give(ClientRequest{1, FenceNode{"n1", api.FenceOptions{ConfirmDead: dead}}})
		x.answers()
		if a.Phase() != phase {
			t.Errorf("dead %t: what ran is %s", dead, a.Phase())
		}
		if b.Attempt != nil && b.Attempt.Machine.Nodes()[0] == "n1" {
			t.Errorf("dead %t: what was undecided counts on the node", dead)
		}
	}
}

// TestANodeThatIsBackFreesForItself: what counts as freed because its node was dead
// does so no more.
func TestANodeThatIsBackFreesForItself(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.dies("n1")
	x.answer() // EVICTING
	x.answer() // RELEASING
	n, at := x.nodes["n1"], a.Attempt
	if !at.AssumedFreed["n1"] || !at.Machine.FreedAt("n1") {
		t.Fatal("a dead node does not count as freed")
	}
	x.connect("n1")
	if n.fence != nil || at.AssumedFreed["n1"] || at.Machine.FreedAt("n1") {
		t.Errorf("fence %+v, assumed freed %v", n.fence, at.AssumedFreed)
	}
	x.answers() // RELEASED meets its compare
	if a.Attempt == nil {
		t.Error("it is RELEASED though its node is back")
	}
	x.says(a, grant.Tombstone)
	if x.answers(); a.Attempt != nil {
		t.Errorf("its agent has freed it, and it is %s", a.Phase())
	}
}

// TestAFenceAnewIsNoDeath: a node that has registered and is fenced again, without a
// word on its death, does not count as freed.
func TestAFenceAnewIsNoDeath(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.dies("n1")
	x.answer()
	x.answer()
	x.do(func() { x.fenced(x.nodes["n1"], &fence{revision: 1 << 20}) })
	if a.Attempt.AssumedFreed["n1"] {
		t.Error("it counts as freed")
	}
}

// TestAnEndThatMetAConflictLooksForTheNode: it may have registered with another
// coordinator.
func TestAnEndThatMetAConflictLooksForTheNode(t *testing.T) {
	x := newScene(t)
	x.running("a", 2, "")
	x.dies("n1")
	x.answer()
	x.answer()
	x.put(record.NodeIdentityKey("n1"), record.MustEncode(record.NodeIdentity{Incarnation: x.nodes["n1"].incarnation}))
	x.answer() // RELEASED meets a conflict
	if key := x.next(); key.Kind != post.ReadKey || key.Key != record.NodeIdentityKey("n1") {
		t.Errorf("it asks %d %s", key.Kind, key.Key)
	}
}

// TestAnEndThatMetAConflictLooksForEveryNode: the first dead node stays dead for
// good, and the second has registered with another coordinator.
func TestAnEndThatMetAConflictLooksForEveryNode(t *testing.T) {
	x := newScene(t)
	a := x.submitJob("a", 2, 8)
	x.settles(a, grant.Reserved)
	x.dies("n1")
	x.answer() // EVICTING
	x.dies("n2")
	x.answer() // RELEASING
	at := a.Attempt
	if !at.AssumedFreed["n1"] || !at.AssumedFreed["n2"] {
		t.Fatalf("assumed freed: %v", at.AssumedFreed)
	}
	back := record.NodeIdentity{Incarnation: x.nodes["n2"].incarnation}
	x.put(record.NodeIdentityKey("n2"), record.MustEncode(back))
	for range 10 { // RELEASED meets a conflict
		if len(x.asked) > 0 {
			x.answer()
		}
	}
	if len(x.asked) > 0 || at.AssumedFreed["n2"] || !at.AssumedFreed["n1"] {
		t.Errorf("%d questions have no answer, assumed freed: %v", len(x.asked), at.AssumedFreed)
	}
}

// TestALearnedRegistrationIsToldByItsAgent: what the agent is registered as counts
// only if it is as new as what the store has.
func TestALearnedRegistrationIsToldByItsAgent(t *testing.T) {
	for revision, keeps := range map[resource.Revision]bool{8: false, 9: true} {
		x := newScene(t)
		n := x.nodes["n1"]
		n.setFence(&fence{revision: 5})
		n.revision = revision
		kv := record.KV{Key: record.NodeIdentityKey("n1"), Value: record.MustEncode(record.NodeIdentity{Incarnation: n.incarnation}), ModRev: 9}
		x.do(func() { x.learn(n, kv) })
		if n.fence != nil || n.revision != 0 != keeps {
			t.Errorf("at %d: fence %+v, registered at %d", revision, n.fence, n.revision)
		}
	}
}

// TestARecordWaitsForEveryNodeThatCountedAsFreed: it is collected once each has told
// that it holds nothing of it.
func TestARecordWaitsForEveryNodeThatCountedAsFreed(t *testing.T) {
	x := newScene(t)
	tx := transaction(1)
	waits := func() bool { _, is := x.retired.unheard[tx]; return is }
	x.do(func() { x.retired.add(tx, []resource.NodeID{"n1", "n2"}, x.post.Now()) })
	x.do(func() {
		x.retired.report(tx, "n3", x.post.Now())
		x.retired.report(tx, "n1", x.post.Now())
		x.retired.report(tx, "n1", x.post.Now())
	})
	if !waits() || len(x.retired.terminal) > 0 {
		t.Fatal("it is collected though n2 has not told")
	}
	held := []grant.Grant{{Tx: tx, State: grant.Held}}
	x.hear(grant.Occupied{Node: "n2", Occupancy: grant.Occupancy{Grants: held}})
	if !waits() {
		t.Error("it is collected though n2 holds it")
	}
	registered := x.nodes["n2"].revision
	x.nodes["n2"].revision = 0
	x.hear(grant.Occupied{Node: "n2"})
	if !waits() {
		t.Error("it is collected though n2 is registering, and says nothing")
	}
	x.nodes["n2"].revision = registered
	x.hear(grant.Occupied{Node: "n2"})
	if waits() || len(x.retired.terminal) != 1 {
		t.Error("it is not collected though all have told")
	}
}

// TestWhenAFencedNodeCountsAsDead: the limit counts from the newest fence.
func TestWhenAFencedNodeCountsAsDead(t *testing.T) {
	limit := time.Minute
	long := shown.AssumedDeadAfter(limit)
	for name, c := range map[string]struct {
		f     *fence
		after time.Duration
		dead  bool
	}{
		"no fence":                  {nil, time.Hour, false},
		"no policy":                 {&fence{revision: 5}, time.Hour, false},
		"dead already":              {&fence{revision: 5, assume: limit, dead: true}, time.Hour, false},
		"a moment before the limit": {&fence{revision: 5, assume: limit}, long - 1, false},
		"the limit":                 {&fence{revision: 5, assume: limit}, long, true},
		"a later fence":             {&fence{revision: 6, assume: limit}, long, false},
	} {
		a, began := assumption{}, time.Unix(1000, 0)
		a.dead(&fence{revision: 5, assume: limit}, began)
		if got := a.dead(c.f, began.Add(c.after)); got != c.dead {
			t.Errorf("%s: dead %t", name, got)
		}
	}
}

// TestASilentNodeIsFencedByItsPolicy, and then counts as dead without a registration.
func TestASilentNodeIsFencedByItsPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		limit                     int64
		returns, fenced, declared bool
	}{
		"no policy": {},
		"silent":    {limit: 60_000, fenced: true, declared: true},
		"back":      {limit: 60_000, fenced: true, returns: true},
	} {
		x := newScene(t)
		n, kv := x.nodes["n1"], record.MustEncode(record.NodeIdentity{Incarnation: x.nodes["n1"].incarnation, AssumeDeadMillis: c.limit})
		x.put(record.NodeIdentityKey("n1"), kv)
		x.hear(grant.Disconnected{Node: "n1"})
		if x.seconds(1); (n.fence != nil) != c.fenced || c.fenced && n.fence.dead {
			t.Errorf("%s: the fence is %+v", name, n.fence)
		}
		x.seconds(1)
		if c.returns {
			x.put(record.NodeIdentityKey("n1"), kv)
		}
		x.pass(time.Hour)
		if x.seconds(1); (n.fence != nil && n.fence.dead) != c.declared || c.returns && n.fence != nil {
			t.Errorf("%s: after an hour the fence is %+v", name, n.fence)
		}
	}
}
