package lead

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/mix"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file gives the part of the scheduling state that the store does not have, so that
// another leader can go on from a copy of both.

// CaptureState asks for that part; the result is a *Captured. Nothing changes.
type CaptureState struct{}

// Captured is the part of a leader's state that the store does not have. Others only
// read it: its slices and maps are not shared, and hosts never change.
type Captured struct {
	At    time.Time
	Epoch resource.Epoch
	// Revision is a revision of the store that is not newer than the state. Keys that
	// are read at it or later belong to the state.
	Revision resource.Revision
	Rules    Rules // without a decision log
	Mix      mix.State
	Turn     sched.Turn     // of the search for work that nothing has woken
	Nodes    []CapturedNode // ascending by ID
	// Refused are the waiting units of the store with attempts that failed, ascending by Unit.
	Refused []RefusedUnit
	// Undecided counts the attempts that are not in the store yet. Their units wait in
	// the copy.
	Undecided int
}

// RefusedUnit is the leader's memory of the failed attempts of a waiting unit.
type RefusedUnit struct {
	Unit string           `json:"unit"` // path
	UID  resource.UnitUID `json:"uid"`
	// Times counts the attempts in a row that failed; the backoff grows with it.
	Times int `json:"times,omitempty"`
	// Avoid counts, by node, the attempts that failed there. Placement prefers other nodes.
	Avoid map[resource.NodeID]int `json:"avoid,omitempty"`
	// Until is the end of the backoff; zero where the unit may be tried.
	Until time.Time `json:"until,omitzero"`
}

// CapturedNode is the part of a node that its agent and gossip have reported.
type CapturedNode struct {
	ID resource.NodeID
	// Connected: a stream to the agent is open. All further fields are of its agent.
	Connected   bool
	Suspected   bool
	Incarnation resource.Incarnation
	Revision    resource.Revision // of the registration; 0 for none
	Host        grant.Host
	Health      map[int]grant.DeviceHealth // by index; devices that are ok are left out
	DiskFull    bool
	// MemoryPressure as in grant.HealthChanged, Quarantine as in grant.Hello.
	MemoryPressure bool
	Quarantine     string
	// LastUntil is the instant until which placement takes the node last, because the
	// agent has failed attempts; zero where it does not.
	LastUntil time.Time
	// Busy are the GPUs and MIG instances that something other than a transaction of a
	// leader has: the kubelet's pool, and processes that nobody has granted. By UUID,
	// ascending.
	Busy []string
}

func (CaptureState) serve(l *Leader, c *desk.Call) { c.Answer(l.capture(), nil) }

func (l *Leader) capture() *Captured {
	s := &Captured{At: l.post.Now(), Epoch: l.post.Epoch(), Revision: l.reached, Rules: l.rules, Mix: l.learner.Learned(), Turn: l.room.Turn()}
	s.Rules.Decisions = nil
	s.Rules.Namespaces = maps.Clone(l.rules.Namespaces)
	for _, id := range slices.SortedFunc(maps.Keys(l.nodes), cmp.Compare[resource.NodeID]) {
		s.Nodes = append(s.Nodes, l.captureNode(l.nodes[id]))
	}
	for _, a := range l.work.Attempts {
		if a.Machine.State() < txn.Committed {
			s.Undecided++
		}
	}
	s.Refused = refusedUnits(l.work.Units)
	return s
}

func refusedUnits(units map[string]*work.Unit) (refused []RefusedUnit) {
	for _, path := range slices.Sorted(maps.Keys(units)) {
		u := units[path]
		if !u.Waiting() || u.Stored == 0 || u.Wait.Refusals == 0 && len(u.Wait.Avoid) == 0 {
			continue
		}
		r := RefusedUnit{Unit: path, UID: u.Record.UID, Times: u.Wait.Refusals, Avoid: maps.Clone(u.Wait.Avoid)}
		if u.Life.Phase() == work.Resting {
			r.Until = u.Wait.Rested
		}
		refused = append(refused, r)
	}
	return refused
}

// resumeRefused has waiting units go on with the failed attempts of a snapshot, and begins
// the backoffs that have not ended.
func (l *Leader) resumeRefused(refused []RefusedUnit) {
	for _, r := range refused {
		u := l.work.Units[r.Unit]
		if u == nil || u.Record.UID != r.UID || !u.Waiting() {
			continue
		}
		u.Wait.RestoreRefusals(r.Times, r.Avoid)
		if wait := min(r.Until.Sub(l.post.Now()), lastBackoff); wait > 0 && u.Life.Phase() == work.Waiting {
			l.rest(u, wait)
			l.offer(u) // a group starts without this member for now
		}
	}
}

func (l *Leader) captureNode(n *node) CapturedNode {
	c := CapturedNode{ID: n.view.ID, Connected: n.connected && n.host.Inventory != nil, Suspected: n.view.Suspect}
	if !c.Connected {
		return c
	}
	c.Incarnation, c.Revision, c.Host = n.incarnation, n.revision, n.host
	c.Health, c.DiskFull, c.MemoryPressure, c.Quarantine = maps.Clone(n.health), n.diskFull, n.memoryPressure, n.quarantine
	for _, until := range []time.Time{n.loud, n.breaker.Until()} {
		if until.After(l.post.Now()) && until.After(c.LastUntil) {
			c.LastUntil = until
		}
	}
	for tx, h := range n.reservations {
		if _, ours := n.grants[tx]; ours || l.work.Attempts[tx] != nil || !h.confirmed {
			continue
		}
		for _, m := range h.members {
			for _, g := range m.Assignment.GPUs {
				c.Busy = append(c.Busy, g.UUID)
			}
			for _, g := range m.Assignment.MIG {
				c.Busy = append(c.Busy, g.UUID)
			}
		}
	}
	slices.Sort(c.Busy)
	return c
}
