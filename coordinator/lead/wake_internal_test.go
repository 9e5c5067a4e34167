package lead

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// alone is a leader over a store, with one node that is partitioned.
func alone(t *testing.T) (*Leader, *node) {
	t.Helper()
	l := NewLeader(Beginning{Epoch: 1, Now: time.Now()})
	n := partitioned(t)
	l.nodes[n.view.ID], l.state, l.occupancy = n, n.state, n.occupancy
	return l, n
}

// transaction is an id of an earlier epoch, which nobody answers.
func transaction(counter uint64) resource.TxID {
	return resource.NewTxID("u", 0, counter, resource.Nonce{})
}

// instances is a member with MIG instances of the first device.
func instances(n *node, numbers ...int) []grant.Member {
	var a resource.Assignment
	for _, i := range numbers {
		a.MIG = append(a.MIG, resource.MIGGrant{GPU: 0, Instance: i, UUID: n.host.Inventory.Devices[0].MIG.Instances[i].UUID, Profile: "1g.10gb"})
	}
	return []grant.Member{{Assignment: a}}
}

// An agent that promises other devices than were planned leaves the planned ones
// free.
func TestAPromiseThatFreesSomethingWakesWhatWaits(t *testing.T) {
	own, other := transaction(1), transaction(2)
	cases := map[string]struct {
		planned map[resource.TxID][]int
		said    []int
		wakes   bool
	}{
		"the planned devices":                       {map[resource.TxID][]int{own: {2}}, []int{2}, false},
		"other devices":                             {map[resource.TxID][]int{own: {2}}, []int{3}, true},
		"nothing was planned":                       {nil, []int{3}, false},
		"what others planned does not fit any more": {map[resource.TxID][]int{other: {2, 3}}, []int{3}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l, n := alone(t)
			for tx, numbers := range c.planned {
				members := instances(n, numbers...)
				n.reservations[tx] = &reservation{members: members, taken: n.take(members)}
			}
			l.state.TakeGrown()
			l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: instances(n, c.said...)})
			if n.view.Grown() != c.wakes {
				t.Errorf("the node has grown: %t, want %t", n.view.Grown(), c.wakes)
			}
			for n.woken.Take(l.post.Now(), wakeRate) { // by many messages
			}
			l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: instances(n, 1)})
			if n.view.Grown() || !n.wakes {
				t.Errorf("after many messages the node has grown: %t, it is to count later: %t", n.view.Grown(), n.wakes)
			}
		})
	}
}

// What another transaction waits for is planned with again once its agent has
// given that up, though nothing is free by that.
func TestTheEndOfANominationWakesWhatWaits(t *testing.T) {
	for _, ended := range []bool{true, false} {
		l, n := alone(t)
		held := grant.Grant{Tx: transaction(1), State: grant.Held, Members: instances(n, 2)}
		waiting := grant.Grant{Tx: transaction(2), State: grant.Waiting, Members: instances(n, 2)}
		for _, g := range []grant.Grant{held, waiting} {
			n.confirm(g.Tx, g.Members, nil, g.State == grant.Waiting, l.post)
		}
		l.adoptions = map[resource.TxID]*adoption{waiting.Tx: {tx: waiting.Tx, over: true}}
		e := grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Health: n.health, Grants: []grant.Grant{held}}}
		if !ended {
			e.Occupancy.Grants = append(e.Occupancy.Grants, waiting)
		}
		l.state.TakeGrown()
		if l.agentEvent(e); n.view.Grown() != ended {
			t.Errorf("given up: %t, the node has grown: %t", ended, n.view.Grown())
		}
	}
}

// asleep is a unit of the room, of which the leader knows nothing else, that sleeps
// for a reason.
type asleep struct {
	l   *Leader
	key queue.Key
	why sched.Evidence
}

// sleeps puts a unit to sleep that wants an instance.
func sleeps(l *Leader, why sched.Evidence) asleep {
	s := asleep{l, queue.Key{Path: "sleeper"}, why}
	l.room.Offer(s.key, sched.Traits{Namespace: "x", Priority: 1}, &place.Unit{Members: 1, Request: resource.Request{MIG: 1, MIGProfile: "1g.10gb"}})
	l.room.Pass(1, s)
	return s
}

// Try fails (sched.Trial).
func (s asleep) Try(queue.Key, bool) *sched.Evidence { return &s.why }

// Wait is sched.Trial's.
func (s asleep) Wait(string, *sched.Evidence) {}

// woken reports whether the unit is to be tried again, or was.
func (s asleep) woken() bool {
	s.l.takeNews()
	return s.l.room.Asleep(s.key.Path) == nil
}

// A preemption that is given up leaves its place to others, though its own unit ends.
func TestAnAbandonedPreemptionWakesWhatWaits(t *testing.T) {
	var claimed, ending work.Life
	claimed.Restore(api.Pending)
	claimed.Take(work.StepClaimed, true)
	ending.AskEnd(txn.ReleaseAsked{}, 0, nil)
	for name, u := range map[string]*work.Unit{
		"its unit waits no more": nil,
		"its unit waits":         {Path: "x/alloc/a/0", Key: queue.Key{Path: "x/alloc/a/0"}, Life: claimed, Record: record.Unit{Phase: string(api.Pending)}},
		"its unit ends":          {Stored: 1, Life: ending},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := alone(t)
			d := &adoption{tx: transaction(1), unit: u, over: true}
			l.adoptions = map[resource.TxID]*adoption{d.tx: d}
			w := sleeps(l, sched.Evidence{Code: sched.NoPlace})
			if l.abandoned(d, true, nil); !w.woken() {
				t.Error("nothing is tried again")
			}
			if u != nil && !u.Life.EndAsked() && !l.room.Offered(u.Path) {
				t.Error("its unit is not tried again")
			}
		})
	}
}

// A grant that an operator adopts may be evicted from then on; where the store
// refused that, its quota is free.
func TestAnAdoptedGrantWakesWhatWaits(t *testing.T) {
	l, n := alone(t)
	l.state.SetReady(&n.view, true)
	u := &work.Unit{Path: "x/alloc/a/0", Key: queue.Key{Path: "x/alloc/a/0"}, Allocation: &api.Allocation{}, Record: record.Unit{Namespace: "x", Phase: string(api.Pending)}}
	g := &lost{}
	g.Tx, g.holders = transaction(1), map[resource.NodeID]grant.Grant{"n1": {Members: instances(n, 2)}}
	a := &work.Attempt{Unit: u, Charges: []record.Charge{{Tree: "quota"}}, Held: map[resource.NodeID]bool{}}
	over := sleeps(l, sched.Evidence{Code: sched.OverLimit})
	l.notAdopted(adoptee{unit: u, waited: true}, func() *work.Attempt {
		b := *a
		b.Machine, _ = txn.Recover(g.Tx, txn.Found{State: grant.RecordCommitted}, nil)
		return &b
	}())
	if !over.woken() || !l.room.Offered(u.Path) {
		t.Error("nothing is tried again though the charge has ended")
	}
	l.room = sched.NewRoom()
	w := sleeps(l, sched.Evidence{Code: sched.NoVictims})
	l.work.Units[u.Path] = u
	u.Readopt(a, u.Record, 7)
	l.adopted(a, g, map[resource.NodeID]txn.Vote{}, 7)
	if !w.woken() || !u.Evictable() {
		t.Errorf("nothing is tried again though the unit is evictable: %t", u.Evictable())
	}
}

// wakeUp makes the start of the allocation w possible, for which nothing else runs.
type wakeUp struct {
	rules  func(*Rules)
	before func(*scene) // at its end w waits
	event  func(*scene)
	// limited is the node whose agent decides how often that happens, "" for none.
	limited resource.NodeID
}

// byNodes are wake-ups by nodes that come, grow or go.
var byNodes = map[string]wakeUp{
	"a node that connects": {
		before: func(x *scene) {
			x.hear(grant.Disconnected{Node: "n1"})
			x.running("c", 8, "")
			x.accepted("w", 8, "")
		},
		event:   func(x *scene) { x.hear(x.hosts["n1"]) },
		limited: "n1",
	},
	"an agent that registers": {
		before: func(x *scene) {
			x.running("a", 8, "")
			stranger := x.hosts["n2"]
			stranger.Revision = 0
			x.hear(stranger)
			x.accepted("w", 8, "")
		},
		event: func(x *scene) {
			h := x.hosts["n2"]
			x.hear(grant.Registered{Node: "n2", Incarnation: h.Incarnation, Revision: h.Revision})
		},
		limited: "n2",
	},
	"a device that is well again": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.hear(reports("n2", "a fault"))
			x.accepted("w", 8, "")
		},
		event:   func(x *scene) { x.hear(reports("n2", "")) },
		limited: "n2",
	},
	"a device that is well again, of an agent that has said too much": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.hear(reports("n2", "a fault"))
			x.accepted("w", 8, "")
			for i := range 2 * wakeRate.Burst {
				x.hear(reports("n2", fmt.Sprint("fault ", i)))
			}
			x.hear(reports("n2", ""))
		},
		event: func(x *scene) { x.give(SecondPassed{}) },
	},
	"another node of a unit that may be evicted": {
		before: func(x *scene) {
			gang := x.submitJob("g", 2, 8)
			x.settles(gang, grant.Reserved)
			closed, full := true, reports("n2", "")
			x.ask(PatchNode{"n2", api.NodePatch{Unschedulable: &closed}})
			x.answers()
			full.DiskFull = true
			x.hear(full)
			x.accepted("w", 8, preempting)
		},
		event: func(x *scene) { x.hear(reports("n2", "")) },
	},
	"a taint that is gone": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.ask(PatchNode{"n2", api.NodePatch{Taints: &[]api.Taint{{Key: "team", Effect: "NoSchedule"}}}})
			x.answers()
			x.accepted("w", 8, "")
		},
		event:   func(x *scene) { x.ask(PatchNode{"n2", api.NodePatch{Taints: &[]api.Taint{}}}); x.answers() },
		limited: "n2",
	},
	"the end of a ban": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.give(NodeFacts{Node: "n2", Ban: &record.Ban{By: "root"}})
			x.accepted("w", 8, "")
		},
		event: func(x *scene) { x.give(NodeFacts{Node: "n2"}) },
	},
	"the end of an isolation that is not durable": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.hear(grant.Disconnected{Node: "n2"})
			x.accepted("w", 8, "")
			x.hear(grant.Disconnected{Node: "n2", Broken: true, Err: errors.New("no message")})
			x.hear(x.hosts["n2"])
		},
		event: func(x *scene) {
			back := false
			x.ask(PatchNode{"n2", api.NodePatch{Unschedulable: &back}})
		},
	},
	"the loss of a node from which a unit was leaving": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.running("c", 8, "")
			x.leaves("a")
			x.accepted("w", 8, preempting)
		},
		event:   func(x *scene) { x.hear(grant.Disconnected{Node: "n1"}) },
		limited: "n1",
	},
	"the fence of a node from which a unit was leaving": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.running("c", 8, "")
			x.leaves("a")
			x.accepted("w", 8, preempting)
		},
		event: func(x *scene) { x.ask(FenceNode{"n1", api.FenceOptions{Force: true}}); x.answers() },
	},
}

// byEnds are wake-ups by units and attempts that end, or that may be evicted from
// now on.
var byEnds = map[string]wakeUp{
	"an agent that has freed a unit": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.running("c", 8, "")
			x.leaves("a")
			x.accepted("w", 8, "")
		},
		event: func(x *scene) { x.says(x.work.Units["default/alloc/a/0"], grant.Tombstone) }, // RELEASED is not written yet
	},
	"the end of a charge": {
		before: func(x *scene) {
			x.bounds("8", true)
			a := x.running("a", 8, "")
			x.leaves("a")
			x.accepted("w", 8, "")
			x.says(a, grant.Tombstone)
		},
		event: func(x *scene) { x.answers() },
	},
	"an agent that has freed what no attempt has": {
		before:  func(x *scene) { x.holdsStray(); x.submit("w", 8, ""); x.answers() },
		event:   func(x *scene) { x.hear(grant.Replied{Node: "n1", Tx: transaction(1), State: grant.Tombstone}) },
		limited: "n1",
	},
	"a list of grants that lacks one": {
		before:  func(x *scene) { x.holdsStray(); x.submit("w", 8, ""); x.answers() },
		event:   func(x *scene) { x.hear(grant.Occupied{Node: "n1"}) },
		limited: "n1",
	},
	"a No": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.submit("b", 8, "")
			x.accepted("w", 8, "")
		},
		event:   func(x *scene) { x.says(x.work.Units["default/alloc/b/0"], grant.No) }, // ABORTED is not written yet
		limited: "n2",
	},
	"an attempt that was given up": {
		before: func(x *scene) {
			x.running("a", 8, "")
			x.submit("b", 8, "")
			x.accepted("w", 8, "")
			x.pass(x.rules.VoteBudget / 4) // b is late
			x.pass(x.rules.VoteBudget)
		},
		event: func(x *scene) { x.answers() },
	},
	"a fault of a node whose room was counted on": {
		before: countsOnRoom,
		event:  func(x *scene) { x.hear(reports("n1", "a fault")); x.answers() },
	},
	"a cordon of a node whose room was counted on": {
		before: countsOnRoom,
		event: func(x *scene) {
			closed := true
			x.ask(PatchNode{Node: "n1", Patch: api.NodePatch{Unschedulable: &closed}})
			x.answers()
		},
	},
	"a taint of a node whose room was counted on": {
		before: countsOnRoom,
		event: func(x *scene) {
			x.ask(PatchNode{Node: "n1", Patch: api.NodePatch{Taints: &[]api.Taint{{Key: "repair", Effect: "NoSchedule"}}}})
			x.answers()
		},
	},
	"a commit of a unit that may be evicted": {
		before: func(x *scene) {
			x.running("c", 8, `"priority":9,`)
			x.submit("a", 8, "")
			x.accepted("w", 8, preempting)
			x.says(x.work.Units["default/alloc/a/0"], grant.Reserved)
		},
		event: func(x *scene) { x.answers() },
	},
	"an eviction that has not landed": {
		before: func(x *scene) {
			_, b := x.preemptor()
			x.accepted("w", 8, `"priority":6,"preemptionPolicy":"PreemptLowerPriority",`)
			x.says(b, grant.Waiting)
			x.loses(false)
			x.answer() // ABORTED has landed; the victim's record is not read yet
		},
		event: func(x *scene) { x.answers() },
	},
}

// byQuota are wake-ups of units that were over quota.
var byQuota = map[string]wakeUp{
	"a limit that grows": {
		before: func(x *scene) { x.bounds("4", true); x.submit("w", 8, ""); x.answers() },
		event:  func(x *scene) { x.bounds("8", false) },
	},
	"the end of a charge to a tree": {
		before: func(x *scene) {
			x.shares()
			for _, name := range []string{"own", "lent"} {
				x.running(name, 4, `"quota":{"unPreemptable":true,"groups":{"Org":"one"}},`)
			}
			x.accepted("w", 4, `"quota":{"groups":{"Org":"two"}},`)
			x.leaves("lent")
			x.says(x.work.Units["default/alloc/lent/0"], grant.Tombstone)
		},
		event: func(x *scene) { x.answers() },
	},
	"the end of a protected runtime": {
		rules: func(r *Rules) { r.Quota.MinRunTime = time.Hour },
		before: func(x *scene) {
			x.shares()
			for _, name := range []string{"own", "lent"} {
				x.running(name, 4, `"quota":{"groups":{"Org":"one"}},`)
			}
			x.accepted("w", 4, `"quota":{"groups":{"Org":"two"}},`)
			x.pass(time.Hour - 1)
		},
		event: func(x *scene) { x.pass(1) },
	},
	"a charge that moves a unit up, which has run long enough": {
		rules: func(r *Rules) { r.Quota.MinRunTime = time.Hour },
		before: func(x *scene) {
			x.shares()
			for _, name := range []string{"own", "moved"} {
				x.running(name, 2, `"quota":{"groups":{"Org":"one"}},`)
			}
			x.pass(time.Hour)
			x.running("lent", 3, `"quota":{"groups":{"Org":"one"}},`)
			x.accepted("w", 2, `"quota":{"groups":{"Org":"two"}},`)
		},
		event: func(x *scene) { x.submit("mover", 1, `"priority":5,"quota":{"groups":{"Org":"one"}},`) },
	},
}
