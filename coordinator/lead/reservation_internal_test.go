package lead

import (
	"testing"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestANominationLeavesARunningUnitItsDevices: a nomination waits for a device of a
// unit, whose agent restarts and reports nothing yet. The device is free after the
// end of the nomination only where nothing is to run there any more.
func TestANominationLeavesARunningUnitItsDevices(t *testing.T) {
	for name, c := range map[string]struct {
		found grant.RecordState // "" where the unit has no record yet
		freed bool              // the agent had reported the end
		free  bool
	}{
		"a unit that runs":             {found: grant.RecordCommitted},
		"a unit that is leaving":       {found: grant.RecordReleasing},
		"a unit that has left":         {found: grant.RecordReleasing, freed: true, free: true},
		"a unit that is to start only": {free: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, n := alone(t)
			begin := func(tx resource.TxID, m *txn.Machine) *work.Attempt {
				a := &work.Attempt{Unit: &work.Unit{Path: "x/alloc/" + string(tx) + "/0", Record: record.Unit{Namespace: "x"}}, Held: map[resource.NodeID]bool{}}
				a.SetMachine(m)
				l.insertAttempt(tx, a)
				return a
			}
			own, nominated := transaction(1), transaction(2)
			m, _ := txn.New(own, []resource.NodeID{"n1"})
			if c.found != 0 {
				m, _ = txn.Recover(own, txn.Found{State: c.found, Revision: 7}, map[resource.NodeID]txn.Vote{"n1": {Members: instances(n, 2)}})
			}
			if c.freed {
				m.Step(txn.Freed{Node: "n1"})
			}
			begin(own, m)
			n.confirm(own, instances(n, 2), nil, false, l.post)
			if n.confirm(own, instances(n, 2), nil, false, l.post) {
				t.Error("the same answer again frees something")
			}
			m, _ = txn.New(nominated, []resource.NodeID{"n1"}, own)
			begin(nominated, m).Victims = []*work.Attempt{l.work.Attempts[own]}
			n.confirm(nominated, instances(n, 2), nil, true, l.post)

			l.agentEvent(grant.Occupied{Node: "n1", Occupancy: grant.Occupancy{Health: n.health}})
			n.drop(nominated)
			if free := n.take(instances(n, 2)) != nil; free != c.free {
				t.Errorf("the device is free: %t, want %t", free, c.free)
			}
		})
	}
}
