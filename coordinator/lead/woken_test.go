package lead

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// preempting is the part of a specification that lets units below priority 5 give
// way.
const preempting = `"priority":5,"preemptionPolicy":"PreemptLowerPriority",`

// asksFor reports whether the leader has asked a node, since clear, to reserve
// members of an allocation.
func (x *scene) asksFor(name string) bool {
	return slices.ContainsFunc(x.left, func(e post.Effect) bool {
		r, is := e.Command.(grant.Reserve)
		return e.Kind == post.SendCommand && is && r.Name == "default/alloc/"+name+"/0"
	})
}

// ask hands the leader a client's request.
func (x *scene) ask(r Request) { x.give(ClientRequest{99, r}) }

// leaves has the owner of an allocation delete it; the devices stay taken.
func (x *scene) leaves(name string) {
	x.t.Helper()
	x.ask(DeleteAllocation{Namespace: "default", Name: name})
	x.answers()
}

// bounds sets the number of GPUs that the namespace may have.
func (x *scene) bounds(gpus string, create bool) {
	x.t.Helper()
	q := &api.ResourceQuota{Kind: api.KindResourceQuota, Metadata: api.ObjectMeta{Name: "q", Namespace: "default"}}
	q.Spec.Hard = map[resource.Name]string{resource.GPU: gpus}
	x.ask(PutResourceQuota{Object: q, Create: create})
	x.answers()
}

// shares puts a quota tree of two groups, one and two, with four GPUs each.
func (x *scene) shares() {
	x.t.Helper()
	group := func(parent any, gpus string) map[string]any {
		return map[string]any{"parent": parent, "quota": map[string]string{string(resource.GPU): gpus}}
	}
	spec, err := json.Marshal(map[string]any{
		"resourceNames": []resource.Name{resource.GPU},
		"nodes":         map[string]any{"all": group(nil, "8"), "one": group("all", "4"), "two": group("all", "4")},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	object := &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: "Org"}, Spec: spec}
	parsed, status := charges.SpecOf(*object)
	if status != nil {
		x.t.Fatal(status)
	}
	x.ask(PutQuotaTree{Object: object, Create: true, Spec: parsed})
	x.answers()
}

// reports is a message of an agent about the health of a device, and nothing else.
func reports(id resource.NodeID, reason string) grant.HealthChanged {
	e := grant.HealthChanged{Node: id}
	if reason != "" {
		e.Health = map[int]grant.DeviceHealth{0: {Health: devices.Tainted, Reason: reason}}
	}
	return e
}

// countsOnRoom has w wait for the room of a unit that leaves the first node; one of lower
// priority runs on the second.
func countsOnRoom(x *scene) {
	x.running("a", 8, `"priority":9,`)
	x.running("c", 8, "")
	x.leaves("a")
	x.accepted("w", 8, preempting)
}

// holdsStray leaves both nodes full, the first with a grant without a record, listed behind
// a tombstone.
func (x *scene) holdsStray() {
	x.t.Helper()
	a := x.running("a", 8, "")
	x.running("c", 8, "")
	stray := grant.Grant{Tx: transaction(1), Epoch: 1, State: grant.Held, Members: x.reply(a, grant.Held).Members}
	x.leaves("a")
	x.settles(a, grant.Tombstone)
	x.hear(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Grants: []grant.Grant{{Tx: transaction(2), State: grant.Tombstone}, stray}}})
	x.answers()
}

// TestWhatWakesAUnitThatWaits: a unit that waits is asked for as soon as an event
// makes its start possible, and not before. Nothing else happens in between.
func TestWhatWakesAUnitThatWaits(t *testing.T) {
	for _, kind := range []map[string]wakeUp{byNodes, byEnds, byQuota} {
		for name, c := range kind {
			t.Run(name, func(t *testing.T) {
				rules := sceneRules()
				if c.rules != nil {
					c.rules(&rules)
				}
				x := newSceneOf(t, rules)
				if c.before(x); x.asksFor("w") {
					t.Fatal("it does not wait")
				}
				if c.event(x); !x.asksFor("w") {
					t.Error("nobody asks for it")
				}
			})
		}
	}
}

// TestAUnitThatStartsAgainIsClaimedOnceItRuns, though nobody was interested in it
// since it ran before.
func TestAUnitThatStartsAgainIsClaimedOnceItRuns(t *testing.T) {
	x := newScene(t)
	x.shares()
	x.running("own", 4, `"quota":{"groups":{"Org":"one"}},`)
	lent := x.submitDocument([]byte(`{"metadata":{"name":"lent"},"spec":{"parallelism":1,"template":{"spec":{"quota":{"groups":{"Org":"one"}},"resources":{"requests":{"nvidia.com/gpu":"4"}}}}}}`))
	x.settles(lent, grant.Reserved)
	x.hear(grant.Disconnected{Node: "n2"}) // the leader looks at those who run
	x.hear(x.hosts["n2"])
	x.finish(func() { x.evict(lent, txn.EvictAsked{}) })
	x.settles(lent, grant.Tombstone)
	x.says(lent, grant.Reserved)
	commit := x.next()
	x.submit("w", 4, `"quota":{"groups":{"Org":"two"}},`)
	if x.answers(); x.asksFor("w") {
		t.Fatal("it does not wait")
	}
	x.asked = []post.Effect{commit}
	if x.answer(); !x.asksFor("w") {
		t.Error("nobody asks for it")
	}
}

// TestANodeThatIsLostWakesNobodyInVain: those who count on units that leave other
// nodes go on waiting.
func TestANodeThatIsLostWakesNobodyInVain(t *testing.T) {
	x := newScene(t)
	x.running("a", 8, "")
	x.running("c", 8, `"priority":9,`)
	x.leaves("a")
	w := x.accepted("w", 8, preempting)
	tries := w.Wait.Attempts
	if x.hear(grant.Disconnected{Node: "n2"}); w.Wait.Attempts != tries {
		t.Errorf("tried %d times, then %d times", tries, w.Wait.Attempts)
	}
}

// TestAListThatSaysNothingNew wakes nobody, and keeps nobody from being woken.
func TestAListThatSaysNothingNew(t *testing.T) {
	x := newScene(t)
	a, c := x.running("a", 8, ""), x.running("c", 8, "")
	empty, other := a.Attempt.Machine.Nodes()[0], c.Attempt.Machine.Nodes()[0]
	x.leaves("a")
	x.settles(a, grant.Tombstone)
	w := x.submitJob("w", 2, 8) // it fits on no two nodes
	x.answers()
	tries := w.Wait.Attempts
	if x.hear(grant.Occupied{Node: empty}); w.Wait.Attempts != tries {
		t.Errorf("tried %d times, then %d times", tries, w.Wait.Attempts)
	}
	x.leaves("c")
	effects := x.Apply(x.clock, AgentEvent{x.reply(c, grant.Tombstone)}, nil)
	x.clear()
	if x.take(x.Apply(x.clock, AgentEvent{grant.Occupied{Node: other}}, effects)); len(x.commands()) < 2 {
		t.Errorf("the job is not tried: commands %v", x.commands())
	}
}

// TestAUnitWhoseEndIsNotWritten waits as before.
func TestAUnitWhoseEndIsNotWritten(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 8, "")
	x.running("c", 8, "")
	x.accepted("w", 8, "")
	x.ask(DeleteAllocation{Namespace: "default", Name: "w"})
	end := x.next()
	x.leaves("a")
	x.says(a, grant.Tombstone)
	if x.answers(); x.asksFor("w") {
		t.Error("it is tried while it ends")
	}
	if x.give(WriteAnswer{end.Token, txn.Conflict, 0, nil}); !x.asksFor("w") {
		t.Error("nobody asks for it")
	}
}

// TestAGangGrowsOnceItRuns: not before, and at once.
func TestAGangGrowsOnceItRuns(t *testing.T) {
	x := newScene(t)
	gang := x.submitJob("j", 3, 2)
	x.answers()
	if x.says(gang, grant.Reserved); gang.Job.Units[1].Attempt != nil {
		t.Error("it grows before it runs")
	}
	if x.answers(); gang.Job.Units[1].Attempt == nil {
		t.Error("it does not grow")
	}
}

// TestAnOverlookedUnit is found by the backstop, and counts.
func TestAnOverlookedUnit(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 8, "")
	x.running("c", 8, "")
	x.leaves("a")
	x.accepted("w", 8, "")
	x.Apply(x.clock, AgentEvent{x.reply(a, grant.Tombstone)}, nil)
	x.state.TakeGrown() // this is the fault
	if x.pass(time.Millisecond); x.asksFor("w") || x.missed() {
		t.Fatal("it is not overlooked")
	}
	if x.give(SecondPassed{}); !x.asksFor("w") || !x.missed() {
		t.Errorf("asked for %t, counted %t", x.asksFor("w"), x.missed())
	}
}

// TestAnAgentDoesNotDecideHowOftenAllAreTried: an agent that has reported too much
// wakes those who wait within a second, and not at once.
func TestAnAgentDoesNotDecideHowOftenAllAreTried(t *testing.T) {
	for _, kind := range []map[string]wakeUp{byNodes, byEnds, byQuota} {
		for name, c := range kind {
			if c.limited == "" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				x := newScene(t)
				c.before(x)
				for x.nodes[c.limited].woken.Take(x.clock, wakeRate) { // by many reports
				}
				if c.event(x); x.asksFor("w") {
					t.Error("it is tried at once")
				}
				if x.give(SecondPassed{}); !x.asksFor("w") || x.missed() {
					t.Errorf("asked for %t, overlooked %t", x.asksFor("w"), x.missed())
				}
			})
		}
	}
}

// TestTheBackstopIsNotBlamedForNews: a unit that an event wakes is none that the
// backstop has found, though both come between two passes.
func TestTheBackstopIsNotBlamedForNews(t *testing.T) {
	for name, in := range map[string]func(*scene, post.Effect) []Input{
		"the news first": func(x *scene, commit post.Effect) []Input { return []Input{x.lands(commit), SecondPassed{}} },
		"the news last":  func(x *scene, commit post.Effect) []Input { return []Input{SecondPassed{}, x.lands(commit)} },
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.running("c", 8, `"priority":9,`)
			a := x.submit("a", 8, "")
			x.accepted("w", 8, preempting)
			x.says(a, grant.Reserved)
			x.clear()
			var effects []post.Effect
			for _, i := range in(x, x.next()) {
				effects = x.Apply(x.clock, i, effects)
			}
			if x.take(effects); !x.asksFor("w") {
				t.Fatal("nobody asks for it")
			}
			if x.missed() {
				t.Error("it counts as overlooked")
			}
		})
	}
}

// lands has a write land, and returns the answer.
func (x *scene) lands(e post.Effect) Input {
	x.t.Helper()
	r, err := x.kv.Txn(x.t.Context(), record.Txn{If: e.Write.Compares, Then: e.Write.Ops})
	if err != nil || !r.Succeeded {
		x.t.Fatal(r, err)
	}
	return WriteAnswer{e.Token, txn.Landed, r.Revision, nil}
}

// missed reports whether a unit was overlooked since clear.
func (x *scene) missed() bool {
	return slices.ContainsFunc(x.left, func(e post.Effect) bool { return e.Kind == post.MeasureValue && e.Metric == post.MetricMissedWakes })
}
