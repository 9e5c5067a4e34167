package lead

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestARecordSaysWhatAUnitHolds: whatever an agent reports of a unit that runs, the
// devices of the unit's record are free for nobody.
func TestARecordSaysWhatAUnitHolds(t *testing.T) {
	own := transaction(1)
	held := func(members []grant.Member) grant.Grant {
		return grant.Grant{Tx: own, State: grant.Held, Members: members}
	}
	elsewhere := func(n *node) []grant.Member {
		members := instances(n, 2)
		members[0].Assignment.MIG[0].GPU += 60
		return members
	}
	for name, report := range map[string]func(l *Leader, n *node){
		"an answer with the recorded device": func(l *Leader, n *node) {
			l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: instances(n, 2)})
		},
		"an answer with a device that the host does not have": func(l *Leader, n *node) {
			l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: elsewhere(n)})
		},
		"an answer with another device": func(l *Leader, n *node) {
			l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: instances(n, 1)})
		},
		"a list of grants with a device that the host does not have": func(l *Leader, n *node) {
			l.agentEvent(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Health: n.health, Grants: []grant.Grant{held(elsewhere(n))}}})
		},
		"a list of grants without the members": func(l *Leader, n *node) {
			l.agentEvent(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Health: n.health, Grants: []grant.Grant{held(nil)}}})
		},
		"nothing after the host has numbered its devices anew": func(l *Leader, n *node) {
			renumber(t, n)
			l.agentEvent(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Health: n.health}})
		},
		"an answer of before the host has numbered its devices anew": func(l *Leader, n *node) {
			before := instances(n, 2)
			renumber(t, n)
			l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: before})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, n := alone(t)
			m, _ := txn.Recover(own, txn.Found{State: grant.RecordCommitted, Revision: 7}, map[resource.NodeID]txn.Vote{"n1": {Members: instances(n, 2)}})
			a := &work.Attempt{Unit: &work.Unit{Path: "x/alloc/a/0", Record: record.Unit{Namespace: "x"}}, Held: map[resource.NodeID]bool{}}
			a.SetMachine(m)
			l.insertAttempt(own, a)
			uuid := instances(n, 2)[0].Assignment.MIG[0].UUID
			n.confirm(own, instances(n, 2), nil, false, l.post)

			report(l, n)
			var free []string
			for gpu, d := range n.host.Inventory.Devices {
				for i, instance := range d.MIG.Instances {
					if n.view.Free.MIG[gpu]&(1<<i) != 0 {
						free = append(free, instance.UUID)
					}
				}
			}
			if len(free) == 0 || slices.Contains(free, uuid) {
				t.Errorf("free are %v, want others and not %s", free, uuid)
			}
			if slices.ContainsFunc(l.post.Effects(), func(e post.Effect) bool { return e.Event.Name == "view_conflict" }) {
				t.Error("the leader finds a conflict, want none")
			}
		})
	}
}

// renumber exchanges the first two devices of a node's host.
func renumber(t *testing.T, n *node) {
	t.Helper()
	h := n.host
	h.Inventory.Devices = slices.Clone(h.Inventory.Devices)
	list := h.Inventory.Devices
	list[0], list[1] = list[1], list[0]
	list[0].Index, list[1].Index = 0, 1
	equip(t, n, h)
}

// TestDevicesBesideTheRecordAreNotFree: an agent that has lied in its promise holds other
// devices than the record has. Both are taken until the agent reports otherwise.
func TestDevicesBesideTheRecordAreNotFree(t *testing.T) {
	own := transaction(1)
	replied := func(l *Leader, m []grant.Member) {
		l.agentEvent(grant.Replied{Node: "n1", Tx: own, State: grant.Held, Members: m})
	}
	occupied := func(l *Leader, m []grant.Member) {
		l.agentEvent(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Health: l.nodes["n1"].health, Grants: []grant.Grant{{Tx: own, State: grant.Held, Members: m}}}})
	}
	for name, c := range map[string]struct {
		reports func(*Leader, []grant.Member)
		says    []int
		free    []int // of 1, 2 and 3, where the record has 1
	}{
		"an answer with the record's device":      {replied, []int{1}, []int{2, 3}},
		"an answer with another device":           {replied, []int{2}, []int{3}},
		"an answer with a further device":         {replied, []int{1, 3}, []int{2}},
		"an occupancy with the record's device":   {occupied, []int{1}, []int{2, 3}},
		"an occupancy with another device":        {occupied, []int{2}, []int{3}},
		"an occupancy with a further device":      {occupied, []int{1, 3}, []int{2}},
		"an occupancy with nothing in the record": {occupied, nil, []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			l, n := alone(t)
			m, _ := txn.Recover(own, txn.Found{State: grant.RecordCommitted, Revision: 7}, map[resource.NodeID]txn.Vote{"n1": {Members: instances(n, 1)}})
			a := &work.Attempt{Unit: &work.Unit{Path: "x/alloc/a/0", Record: record.Unit{Namespace: "x"}}, Held: map[resource.NodeID]bool{}}
			a.SetMachine(m)
			l.insertAttempt(own, a)
			n.confirm(own, instances(n, 1), nil, false, l.post)
			look := func() (free []int) {
				for _, i := range []int{1, 2, 3} {
					if n.view.Free.MIG[0]&(1<<i) != 0 {
						free = append(free, i)
					}
				}
				return free
			}

			c.reports(l, instances(n, c.says...))
			if diff := cmp.Diff(c.free, look()); diff != "" {
				t.Errorf("free devices (-want +got):\n%s", diff)
			}
			c.reports(l, instances(n, c.says...)) // the same again changes nothing
			if diff := cmp.Diff(c.free, look()); diff != "" {
				t.Errorf("after the second report, free devices (-want +got):\n%s", diff)
			}
			c.reports(l, instances(n, 1))
			if diff := cmp.Diff([]int{2, 3}, look()); diff != "" {
				t.Errorf("after the truth, free devices (-want +got):\n%s", diff)
			}
			n.drop(own)
			if diff := cmp.Diff([]int{1, 2, 3}, look()); diff != "" {
				t.Errorf("after the end, free devices (-want +got):\n%s", diff)
			}
		})
	}
}
