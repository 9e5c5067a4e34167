package lead

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/hosts"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file keeps the occupants of the State: the units with an attempt. A change
// of an attempt, of a unit's end or of a node's reservations notes the unit, the
// transaction or the node; occupied derives the noted occupants anew before anybody
// reads them.

// occupied returns the State with all occupants as they are now.
func (l *Leader) occupied() *cluster.State {
	for id := range l.occupancy.nodes {
		for o := range l.state.OccupantsOf(id) { // the agent may have lost the reservation
			l.occupancy.noteOccupant(o.Unit)
		}
		if n := l.nodes[id]; n != nil {
			for tx := range n.reservations {
				l.occupancy.noteReservation(id, tx, false)
			}
		}
	}
	clear(l.occupancy.nodes)
	for tx := range l.occupancy.txs {
		if a := l.work.Attempts[tx]; a != nil {
			l.occupancy.noteUnit(a.Unit)
		}
	}
	clear(l.occupancy.txs)
	for path := range l.occupancy.units {
		if o := l.occupantOf(path); o != nil {
			l.state.SetOccupant(o)
		} else {
			l.state.RemoveOccupant(path)
		}
	}
	clear(l.occupancy.units)
	return l.state
}

// mostNoted bounds how many units and transactions stay noted while nobody reads the
// occupants.
const mostNoted = 1024

// boundOccupancy derives the noted occupants once there are too many. A unit that
// came and went in between costs almost nothing then.
func (l *Leader) boundOccupancy() {
	if len(l.occupancy.units)+len(l.occupancy.txs) > mostNoted {
		l.occupied()
	}
}

// occupantOf derives a unit's occupant, nil for none.
func (l *Leader) occupantOf(path string) *cluster.Occupant {
	u := l.work.Units[path]
	if u == nil || u.Attempt == nil || l.work.Attempts[u.Attempt.Machine.ID()] != u.Attempt {
		return nil
	}
	o := &cluster.Occupant{
		Unit: path, Tx: u.Attempt.Machine.ID(), Priority: u.Record.Priority, Nodes: u.Attempt.Machine.Nodes(), Status: l.statusOf(u), Pinned: u.Groups.Unpreemptable || u.Life.EndAsked(),
		Claimed: u.Attempt.Preemptor != nil, Displaces: u.Attempt.VictimPaths(), Arrived: cluster.Arrival{Epoch: u.Key.Epoch, Counter: u.Key.Counter},
		Subject: u.Demand.Subject, Gang: u.GangName(),
	}
	o.Counts = u.Attempt.CountsOn(o.Nodes)
	switch o.Status {
	case cluster.Evictable, cluster.Leaving, cluster.Displaced:
		o.Started, o.Parts = int64(u.Attempt.Committed), l.recordedParts(u.Attempt)
	default:
		o.Parts = l.reservedParts(u.Attempt)
	}
	return o
}

// statusOf is how far a unit with an attempt is from giving way.
func (l *Leader) statusOf(u *work.Unit) cluster.Status {
	a := u.Attempt
	switch {
	case u.IsLeavingSoon() && a.Preemptor == nil && a.Machine.By() == "":
		return cluster.Leaving
	case u.IsLeavingSoon():
		return cluster.Displaced
	case a.Machine.State() == txn.Reading || a.Machine.State() == txn.Losing: // the write of its end may be in doubt
		return cluster.InDoubt
	case u.Evictable() && l.isContested(u):
		return cluster.Contested
	case u.Evictable():
		return cluster.Evictable
	case a.Preemptor != nil || a.Machine.State() == txn.Claimed:
		return cluster.Claimed
	case u.Life.EndAsked():
		return cluster.Ending
	}
	return cluster.Starting
}

// recordedParts are the members of a committed attempt, by the numbers of the hosts
// as they are.
func (l *Leader) recordedParts(a *work.Attempt) []cluster.Part {
	var parts []cluster.Part
	for _, id := range a.Machine.Nodes() {
		vote, _ := a.Machine.Vote(id)
		members := vote.Members
		if n := l.nodes[id]; n != nil {
			members = hosts.MembersOn(n.view.Host, members)
		}
		for _, m := range members {
			parts = append(parts, cluster.Part{Node: id, Assignment: m.Assignment})
		}
	}
	return parts
}

// reservedParts are an attempt's members as the view has them. Of the place of a
// preemptor, its victims hold what its reservation has not taken yet.
func (l *Leader) reservedParts(a *work.Attempt) []cluster.Part {
	var parts []cluster.Part
	for _, id := range a.Machine.Nodes() {
		n := l.nodes[id]
		if n == nil || n.reservations[a.Machine.ID()] == nil {
			continue
		}
		h := n.reservations[a.Machine.ID()]
		if a.IsPreempting() {
			for _, taken := range h.taken {
				parts = append(parts, cluster.Part{Node: id, Assignment: taken})
			}
			continue
		}
		for _, m := range h.members {
			parts = append(parts, cluster.Part{Node: id, Assignment: m.Assignment})
		}
	}
	return parts
}

// checkOccupants compares the occupants with those that all attempts give.
func (l *Leader) checkOccupants() error {
	state, known := l.occupied(), 0
	for _, path := range slices.Sorted(maps.Keys(l.work.Units)) {
		want, got := l.occupantOf(path), state.Occupant(path)
		if got != nil {
			known++
		}
		if !reflect.DeepEqual(want, got) {
			return fmt.Errorf("%s is the occupant %+v, want %+v", path, got, want)
		}
	}
	for o := range state.Occupants() {
		if known--; l.work.Units[o.Unit] == nil {
			return fmt.Errorf("%s is an occupant, and no unit", o.Unit)
		}
	}
	if known != 0 {
		return fmt.Errorf("%d occupants are not counted by unit", known)
	}
	return nil
}

// attemptsOn lists the transactions with a part on a node, in order.
func (l *Leader) attemptsOn(node resource.NodeID) []resource.TxID {
	var txs []resource.TxID
	for o := range l.occupied().OccupantsOf(node) {
		txs = append(txs, l.work.Units[o.Unit].Attempt.Machine.ID())
	}
	slices.Sort(txs)
	return txs
}

// isContested reports whether a unit has devices that are nominated to another
// unit, whose plan did not include that: the agent has refused the plan, or
// will. Until the nomination is given up, no other unit may plan with those
// devices (I7).
func (l *Leader) isContested(u *work.Unit) bool {
	own := u.Attempt.Machine.ID()
	for _, node := range u.Attempt.Machine.Nodes() {
		n := l.nodes[node]
		if n == nil {
			continue
		}
		vote, _ := u.Attempt.Machine.Vote(node)
		for tx, h := range n.reservations {
			if h.waiting && tx != own && slices.ContainsFunc(h.members, func(m grant.Member) bool {
				return slices.ContainsFunc(vote.Members, func(n grant.Member) bool { return shareGPU(m.Assignment, n.Assignment) })
			}) {
				return true
			}
		}
	}
	return false
}

// shareGPU reports whether two assignments of one node have a GPU, or an
// instance of one, in common.
func shareGPU(a, b resource.Assignment) bool {
	return slices.ContainsFunc(a.GPUs, func(x resource.GPUGrant) bool {
		return slices.ContainsFunc(b.GPUs, func(y resource.GPUGrant) bool { return x.UUID == y.UUID })
	}) || slices.ContainsFunc(a.MIG, func(x resource.MIGGrant) bool {
		return slices.ContainsFunc(b.MIG, func(y resource.MIGGrant) bool { return x.UUID == y.UUID })
	})
}

// hasLeavingUnit reports whether a unit with members on a node is leaving: others
// may have counted on its room.
func (l *Leader) hasLeavingUnit(n *node) bool {
	for o := range l.occupied().OccupantsOf(n.view.ID) {
		switch o.Status {
		case cluster.Leaving, cluster.Displaced, cluster.InDoubt:
			return true
		}
	}
	return false
}
