package lead

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/lead/hosts"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file changes the reservations of a node and the free amounts that are
// left beside them.

// reservation holds the members of one transaction on a node: planned, or
// confirmed by the agent.
type reservation struct {
	members []grant.Member
	// surplus are the devices that the agent reports beside those of the record. They
	// are nobody's to hand out: the agent refuses them to others.
	surplus   []grant.Member
	confirmed bool
	// recorded: the agent has not reported the members, and a record has them. The
	// agent holds the members again once it has registered and read its records.
	recorded bool
	// waiting: other transactions still hold a part of the members' devices. The
	// free part is taken, and the rest as soon as it is free.
	waiting bool
	// taken is subtracted from view.Free, nil for nothing: the members'
	// assignments, or the part of them that the host still has, and the free part of
	// the surplus.
	taken []resource.Assignment
}

// reservationOf returns the reservation of a transaction and makes an absent
// one.
func (n *node) reservationOf(tx resource.TxID) *reservation {
	h := n.reservations[tx]
	if h == nil {
		h = &reservation{}
		n.reservations[tx] = h
		n.occupancy.noteReservation(n.view.ID, tx, false)
	}
	return h
}

// removeReservation removes a reservation; rebuild gives its taken amounts
// back.
func (n *node) removeReservation(tx resource.TxID) {
	n.occupancy.noteReservation(n.view.ID, tx, n.reservations[tx].waiting)
	delete(n.reservations, tx)
}

// addMember adds a planned member, or one of a record.
func (h *reservation) addMember(m grant.Member) { h.members = append(h.members, m) }

// takeOver sets the members of a transaction that an agent reports; rebuild takes
// their amounts.
func (h *reservation) takeOver(members, surplus []grant.Member, s grant.State) {
	h.members, h.surplus, h.confirmed, h.recorded, h.waiting = members, surplus, true, false, s == grant.Waiting
}

// setPlanned marks the reservation as unknown to the agent, and to the store.
func (h *reservation) setPlanned(waiting bool) {
	h.surplus, h.confirmed, h.recorded, h.waiting = nil, false, false, waiting
}

// setRecorded marks the reservation as unknown to the agent, which has yet to read
// its record.
func (h *reservation) setRecorded() {
	h.surplus, h.confirmed, h.recorded, h.waiting = nil, false, true, false
}

// setPlacedTaken marks the members as subtracted, which placing them has done.
func (h *reservation) setPlacedTaken() {
	for _, m := range h.members {
		h.taken = append(h.taken, m.Assignment)
	}
}

// takeWaiting subtracts the free part of a reservation that waits for other
// transactions.
func (n *node) takeWaiting(h *reservation) {
	h.waiting = true
	n.occupancy.noteNode(n.view.ID)
	h.taken = n.takePresent(h.members)
}

// rebuild computes Free anew from the reservations: confirmed first, then
// recorded, then the surplus of reports, then waiting, then planned, in order. A
// nomination takes no devices of a unit whose agent has restarted: the unit runs
// there, and the nomination may end before the agent reports the unit. A planned reservation that no longer fits
// stays untaken until the agent has answered. A confirmed or recorded reservation
// takes only devices that the host still has, because a host may lose a card in use.
func (n *node) rebuild(out *post.Post) {
	n.occupancy.noteNode(n.view.ID)
	if n.view.Host == nil {
		return
	}
	n.state.Reset(&n.view, n.view.Host, n.closedDevices())
	n.applyConflicts()
	txs := slices.SortedFunc(maps.Keys(n.reservations), cmp.Compare[resource.TxID])
	for _, rank := range []int{heldNow, heldSoon, heldNext, heldLast} {
		for _, tx := range txs {
			h := n.reservations[tx]
			if h.rank() != rank {
				continue
			}
			h.members = hosts.MembersOn(n.view.Host, h.members)
			h.taken = n.take(h.members)
			switch {
			case h.taken != nil:
			case rank == heldNow:
				out.Warn("view_conflict", "node", n.view.ID, "tx", tx)
				h.taken = n.takePresent(h.members)
			case rank == heldSoon, rank == heldNext:
				h.taken = n.takePresent(h.members)
			}
		}
		if rank == heldSoon {
			n.takeSurplus(txs)
		}
	}
	n.followLimit()
}

// takeSurplus subtracts the free part of the devices that the agent reports for
// transactions beside those of their records.
func (n *node) takeSurplus(txs []resource.TxID) {
	for _, tx := range txs {
		if h := n.reservations[tx]; len(h.surplus) > 0 {
			h.surplus = hosts.MembersOn(n.view.Host, h.surplus)
			h.taken = append(h.taken, n.takePresent(h.surplus)...)
		}
	}
}

// The order in which reservations are taken.
const (
	heldNow = iota
	heldSoon
	heldNext
	heldLast
)

func (h *reservation) rank() int {
	switch {
	case h.waiting:
		return heldNext
	case h.confirmed:
		return heldNow
	case h.recorded:
		return heldSoon
	}
	return heldLast
}

// take subtracts all members and returns their assignments, or subtracts
// nothing and returns nil.
func (n *node) take(members []grant.Member) []resource.Assignment {
	taken := make([]resource.Assignment, 0, len(members))
	for _, m := range members {
		if err := n.state.Take(&n.view, m.Assignment); err != nil {
			n.giveBack(taken)
			return nil
		}
		taken = append(taken, m.Assignment)
	}
	return taken
}

// takePresent subtracts what the host has of what the members hold, and
// returns that.
func (n *node) takePresent(members []grant.Member) []resource.Assignment {
	taken := make([]resource.Assignment, 0, len(members))
	for _, m := range members {
		taken = append(taken, n.state.TakePresent(&n.view, m.Assignment))
	}
	return taken
}

func (n *node) giveBack(taken []resource.Assignment) {
	for _, a := range taken {
		if err := n.state.Give(&n.view, a); err != nil {
			panic("coordinator: " + string(n.view.ID) + ": " + err.Error())
		}
	}
}

// drop ends a reservation.
func (n *node) drop(tx resource.TxID) {
	h := n.reservations[tx]
	if h == nil {
		return
	}
	n.occupancy.noteReservation(n.view.ID, tx, h.waiting)
	delete(n.reservations, tx)
	if h.taken == nil || n.view.Free == nil {
		return
	}
	n.giveBack(h.taken)
	n.fillWaiting()
	n.followLimit()
}

// nominated lists the transactions that wait for victims to leave. No other
// unit may plan with the devices of those victims.
func (n *node) nominated() []resource.TxID {
	var waiting []resource.TxID
	for tx, h := range n.reservations {
		if h.waiting {
			waiting = append(waiting, tx)
		}
	}
	slices.Sort(waiting)
	return waiting
}

// fillWaiting gives amounts that have become free to the waiting reservations,
// before any unit is placed.
func (n *node) fillWaiting() {
	for _, tx := range n.nominated() {
		n.occupancy.noteReservation(n.view.ID, tx, false)
		h := n.reservations[tx]
		n.giveBack(h.taken)
		h.taken = n.takePresent(h.members)
	}
}

// confirm replaces the planned members of a transaction by the members that the
// agent reports, or those of its record and the surplus of the report. The result is
// true if amounts may be free now that were not, or may become free by an eviction:
// the agent has chosen other devices, the plan was not taken, or the plan of another
// transaction does not fit any more.
func (n *node) confirm(tx resource.TxID, members, surplus []grant.Member, waiting bool, out *post.Post) (freed bool) {
	h := n.reservationOf(tx)
	same := h.taken != nil && !h.recorded && h.waiting == waiting && slices.EqualFunc(h.members, members, hosts.EqualMember) && slices.EqualFunc(h.surplus, surplus, hosts.EqualMember)
	waited := h.waiting
	n.occupancy.noteReservation(n.view.ID, tx, waited || waiting)
	h.confirmed, h.recorded, h.waiting = true, false, waiting
	if same {
		return false
	}
	freed = len(h.members) > 0 && (h.taken == nil || !slices.EqualFunc(h.members, members, hosts.EqualMember)) || len(h.surplus) > 0
	if h.taken != nil && n.view.Free != nil {
		n.giveBack(h.taken)
		h.taken = nil
	}
	h.members, h.surplus = members, surplus
	if n.view.Free == nil {
		return freed
	}
	if !waiting {
		h.taken = n.take(members)
	}
	switch {
	case h.taken != nil:
		n.takeSurplus([]resource.TxID{tx})
	case waiting, waited: // the agent may report the end of the wait before the end of the victims
		h.waiting = true
		h.taken = n.takePresent(members)
	default:
		n.rebuild(out)
		return true
	}
	n.followLimit()
	return freed
}
