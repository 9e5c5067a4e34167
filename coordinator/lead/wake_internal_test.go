package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/api"
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
			for n.woken.Take(l.now, wakeRate) { // by many messages
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
			n.confirm(g.Tx, g.Members, nil, g.State == grant.Waiting, &l.out)
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

// A preemption that is given up leaves its place to others, though its own unit
// ends.
func TestAnAbandonedPreemptionWakesWhatWaits(t *testing.T) {
	for name, u := range map[string]*unit{
		"its unit waits no more": nil,
		"its unit waits":         {path: "x/alloc/a/0", key: queue.Key{Path: "x/alloc/a/0"}, lifecycle: phaseAdopting, record: record.Unit{Phase: string(api.Pending)}},
		"its unit ends":          {stored: 1, ending: &txn.ReleaseAsked{}},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := alone(t)
			d := &adoption{tx: transaction(1), unit: u, over: true}
			l.adoptions = map[resource.TxID]*adoption{d.tx: d}
			w := sleeps(l, sched.Evidence{Code: sched.NoPlace})
			if l.abandoned(d, true, nil); !w.woken() {
				t.Error("nothing is tried again")
			}
			if u != nil && u.ending == nil && !l.room.Offered(u.path) {
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
	u := &unit{path: "x/alloc/a/0", key: queue.Key{Path: "x/alloc/a/0"}, allocation: &api.Allocation{}, record: record.Unit{Namespace: "x", Phase: string(api.Pending)}}
	g := &lost{}
	g.Tx, g.holders = transaction(1), map[resource.NodeID]grant.Grant{"n1": {Members: instances(n, 2)}}
	a := &attempt{unit: u, charges: []record.Charge{{Tree: "quota"}}, held: map[resource.NodeID]bool{}}
	over := sleeps(l, sched.Evidence{Code: sched.OverLimit})
	l.notAdopted(adoptee{unit: u, waited: true}, func() *attempt {
		b := *a
		b.machine, _ = txn.Recover(g.Tx, txn.Found{State: grant.RecordCommitted}, nil)
		return &b
	}())
	if !over.woken() || !l.room.Offered(u.path) {
		t.Error("nothing is tried again though the charge has ended")
	}
	l.room = sched.NewRoom()
	w := sleeps(l, sched.Evidence{Code: sched.NoVictims})
	l.units[u.path] = u
	u.readopt(a, u.record, 7)
	l.adopted(a, g, map[resource.NodeID]txn.Vote{}, 7)
	if !w.woken() || !u.evictable() {
		t.Errorf("nothing is tried again though the unit is evictable: %t", u.evictable())
	}
}
