package lead

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file changes what transactions hold on a node, and what is free of it.

// reservation is what a transaction has on a node: planned, or confirmed by the agent.
type reservation struct {
	members   []grant.Member
	confirmed bool
	// waiting: others hold some of it still. What is free of it is taken, and
	// the rest as soon as it is.
	waiting bool
	// taken is what is subtracted from view.Free, nil for nothing: all that the
	// members hold, or what the host still has of it.
	taken []resource.Assignment
}

// reservationOf returns a transaction's, made on first sight.
func (n *node) reservationOf(tx resource.TxID) *reservation {
	h := n.reservations[tx]
	if h == nil {
		h = &reservation{}
		n.reservations[tx] = h
	}
	return h
}

// removeReservation forgets a hold; rebuild gives back what it has taken.
func (n *node) removeReservation(tx resource.TxID) { delete(n.reservations, tx) }

// addMember adds a planned member, or one of a record.
func (h *reservation) addMember(m grant.Member) { h.members = append(h.members, m) }

// takeOver takes over what an agent says that it holds; rebuild takes that.
func (h *reservation) takeOver(g grant.Grant) {
	h.members, h.confirmed, h.waiting = g.Members, true, g.State == grant.Waiting
}

// setPlanned says that the agent has not heard of the hold, or not any more.
func (h *reservation) setPlanned(waiting bool) { h.confirmed, h.waiting = false, waiting }

// setPlacedTaken notes what placing the members has subtracted already.
func (h *reservation) setPlacedTaken() {
	for _, m := range h.members {
		h.taken = append(h.taken, m.Assignment)
	}
}

// takeWaiting subtracts what is free of a hold that others have some of.
func (n *node) takeWaiting(h *reservation) {
	h.waiting = true
	h.taken = n.takePresent(h.members)
	n.view.Refresh()
}

// rebuild computes Free anew from the holds: confirmed ones first, then those
// that wait for them, then planned ones in order; a planned hold that no longer
// fits stays untaken until the agent has answered. Of a confirmed one counts
// what the host has: it may have lost a card that is held.
func (n *node) rebuild(out *outbox) {
	if n.view.Host == nil {
		return
	}
	n.view.Free = n.view.Host.NewFree()
	n.applyHealth()
	txs := slices.SortedFunc(maps.Keys(n.reservations), cmp.Compare[resource.TxID])
	for _, rank := range []int{heldNow, heldNext, heldLast} {
		for _, tx := range txs {
			h := n.reservations[tx]
			if h.rank() != rank {
				continue
			}
			h.taken = n.take(h.members)
			switch {
			case h.taken != nil:
			case rank == heldNow:
				out.warn("view_conflict", "node", n.view.ID, "tx", tx)
				h.taken = n.takePresent(h.members)
			case rank == heldNext:
				h.taken = n.takePresent(h.members)
			}
		}
	}
	n.view.Refresh()
}

// The order in which holds take what they have.
const (
	heldNow = iota
	heldNext
	heldLast
)

func (h *reservation) rank() int {
	switch {
	case h.waiting:
		return heldNext
	case h.confirmed:
		return heldNow
	}
	return heldLast
}

// take subtracts all members and returns what they hold, or nil and subtracts
// nothing.
func (n *node) take(members []grant.Member) []resource.Assignment {
	taken := make([]resource.Assignment, 0, len(members))
	for _, m := range members {
		if err := n.view.Host.Take(n.view.Free, m.Assignment); err != nil {
			n.giveBack(taken)
			return nil
		}
		taken = append(taken, m.Assignment)
	}
	return taken
}

func (n *node) giveBack(taken []resource.Assignment) {
	for _, a := range taken {
		if err := n.view.Host.Give(n.view.Free, a); err != nil {
			panic("coordinator: " + string(n.view.ID) + ": " + err.Error())
		}
	}
}

// drop ends a hold.
func (n *node) drop(tx resource.TxID) {
	h := n.reservations[tx]
	if h == nil {
		return
	}
	delete(n.reservations, tx)
	if h.taken == nil || n.view.Free == nil {
		return
	}
	n.giveBack(h.taken)
	n.fillWaiting()
	n.view.Refresh()
}

// nominated lists the transactions that wait for others to leave: nobody else is
// to plan with what they wait for.
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

// fillWaiting lets the holds that wait take what has become free, before anybody
// else can.
func (n *node) fillWaiting() {
	for _, tx := range n.nominated() {
		h := n.reservations[tx]
		n.giveBack(h.taken)
		h.taken = n.takePresent(h.members)
	}
}

// confirm replaces what was planned for a transaction by what the agent says. It
// reports whether something may be free now that was not, or may become so by an
// eviction: the agent has chosen other devices, the plan was not taken, or what
// others had planned does not fit any more.
func (n *node) confirm(tx resource.TxID, members []grant.Member, waiting bool, out *outbox) (freed bool) {
	h := n.reservationOf(tx)
	same := h.taken != nil && h.waiting == waiting && slices.EqualFunc(h.members, members, equalMember)
	waited := h.waiting
	h.confirmed, h.waiting = true, waiting
	if same {
		return false
	}
	freed = len(h.members) > 0 && (h.taken == nil || !slices.EqualFunc(h.members, members, equalMember))
	if h.taken != nil && n.view.Free != nil {
		n.giveBack(h.taken)
		h.taken = nil
	}
	h.members = members
	if n.view.Free == nil {
		return freed
	}
	if !waiting {
		h.taken = n.take(members)
	}
	switch {
	case h.taken != nil:
	case waiting, waited: // that it has what it waited for may be told before that others have left
		h.waiting = true
		h.taken = n.takePresent(members)
	default:
		n.rebuild(out)
		return true
	}
	n.view.Refresh()
	return freed
}

func equalMember(a, b grant.Member) bool {
	return a.Index == b.Index && a.Assignment.Equal(b.Assignment)
}
