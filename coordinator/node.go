package coordinator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// node is the leader's view of one host.
//
// Invariant: view.Free is what the host has, less every hold that is taken.
type node struct {
	view place.Node
	// spec is what the store holds; specRev its mod revision.
	spec    record.NodeSpec
	specRev resource.Revision

	connected   bool
	incarnation resource.Incarnation
	revision    resource.Revision // of the registration; 0 = not registered
	host        grant.Host
	held        map[resource.TxID]*hold
	mirror      mirror
	health      map[int]grant.DeviceHealth // by index; devices that are ok are left out
	diskFull    bool
	usage       resource.Vector // measured on the host; nil = not heard yet
	fence       *fence          // nil: its incarnation may be counted on
	ban         *record.Ban     // nil: it is not banned
	unheard     bool            // its lease is over
	assumption  assumption      // the leader's
	// quarantine says why the agent promises nothing and obeys nothing, "" while
	// it does; grants are all that it told last, told counts how often it did, and
	// known: that was all it holds.
	quarantine string
	grants     map[resource.TxID]grant.Grant
	told       uint64
	known      bool
	// accused is why the node is isolated, as long as that is not in the store.
	accused  *record.Violation
	accusing bool // it is being written
	breaker  breaker
	loud     time.Time // until then it is the last choice, see loudBreak
	stream   uint64    // how many streams to its agent have begun
	// learning: its specification is being read; learnAgain: it is to be read
	// once more after that.
	learning, learnAgain bool
	// unanswered: something that its agent said had no answer, because it said
	// too much. It is asked for everything later.
	unanswered                   bool
	logs, answered, ended, woken bucket
	leased                       bool              // its lease lives, as far as the store has been followed
	identity                     resource.Revision // of the registration in the store, likewise; 0 for none
	// wakes: something that it said would have woken what waits, and it has said
	// too much. That is made good later.
	wakes bool
	said  said
	// changes are operators' changes that wait for the first of them, which is
	// under way: each compares what the one before has written.
	changes []func()
	admitted
}

// hold is what a transaction has on a node: planned, or confirmed by the agent.
type hold struct {
	members   []grant.Member
	confirmed bool
	// waiting: others hold some of it still. What is free of it is taken, and
	// the rest as soon as it is.
	waiting bool
	// taken is what is subtracted from view.Free, nil for nothing: all that the
	// members hold, or what the host still has of it.
	taken []resource.Assignment
}

func newNode(id resource.NodeID) *node {
	n := &node{view: place.Node{ID: id}, held: map[resource.TxID]*hold{}, mirror: mirror{prints: map[resource.TxID]uint64{}}}
	n.admit()
	return n
}

// setHost takes over the host's hardware and rebuilds what is free: amounts of
// the hardware before mean nothing on it.
func (n *node) setHost(h grant.Host, host *fit.Host, out *outbox) {
	n.host, n.view.Host = h, host
	n.rebuild(out)
	n.compareOffer()
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
	txs := slices.SortedFunc(maps.Keys(n.held), cmp.Compare[resource.TxID])
	for _, rank := range []int{heldNow, heldNext, heldLast} {
		for _, tx := range txs {
			h := n.held[tx]
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

func (h *hold) rank() int {
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
			n.give(taken)
			return nil
		}
		taken = append(taken, m.Assignment)
	}
	return taken
}

func (n *node) give(taken []resource.Assignment) {
	for _, a := range taken {
		if err := n.view.Host.Give(n.view.Free, a); err != nil {
			panic("coordinator: " + string(n.view.ID) + ": " + err.Error())
		}
	}
}

// drop ends a hold.
func (n *node) drop(tx resource.TxID) {
	h := n.held[tx]
	if h == nil {
		return
	}
	delete(n.held, tx)
	if h.taken == nil || n.view.Free == nil {
		return
	}
	n.give(h.taken)
	n.handOn()
	n.view.Refresh()
}

// nominated lists the transactions that wait for others to leave: nobody else is
// to plan with what they wait for.
func (n *node) nominated() []resource.TxID {
	var waiting []resource.TxID
	for tx, h := range n.held {
		if h.waiting {
			waiting = append(waiting, tx)
		}
	}
	slices.Sort(waiting)
	return waiting
}

// handOn lets the holds that wait take what has become free, before anybody
// else can.
func (n *node) handOn() {
	for _, tx := range n.nominated() {
		h := n.held[tx]
		n.give(h.taken)
		h.taken = n.takePresent(h.members)
	}
}

// confirm replaces what was planned for a transaction by what the agent says. It
// reports whether something may be free now that was not, or may become so by an
// eviction: the agent has chosen other devices, the plan was not taken, or what
// others had planned does not fit any more.
func (n *node) confirm(tx resource.TxID, members []grant.Member, waiting bool, out *outbox) (freed bool) {
	h := n.held[tx]
	if h == nil {
		h = &hold{}
		n.held[tx] = h
	}
	same := h.taken != nil && h.waiting == waiting && slices.EqualFunc(h.members, members, equalMember)
	waited := h.waiting
	h.confirmed, h.waiting = true, waiting
	if same {
		return false
	}
	freed = len(h.members) > 0 && (h.taken == nil || !slices.EqualFunc(h.members, members, equalMember))
	if h.taken != nil && n.view.Free != nil {
		n.give(h.taken)
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

// applyHealth marks the devices that take no new work.
func (n *node) applyHealth() {
	if n.view.Free == nil {
		return
	}
	var mask uint64
	for i, h := range n.health {
		if i < len(n.host.Inventory.Devices) && !h.Health.Allocatable() {
			mask |= 1 << i
		}
	}
	n.view.Free.Unhealthy = mask
}

// setSpec takes over a specification, unless a newer one is known, and reports
// whether it has.
func (n *node) setSpec(spec record.NodeSpec, rev resource.Revision) bool {
	if rev <= n.specRev {
		return false
	}
	n.spec, n.specRev = spec, rev
	n.admit()
	n.setReady()
	return true
}

// cordoned reports whether the agent is to refuse new work too: an operator has
// cordoned the node, or it is isolated. Capacity that waits for approval is the
// leader's matter alone.
func (n *node) cordoned() bool { return n.spec.Unschedulable || n.violation() != nil }

// setReady recomputes whether the node takes new work.
func (n *node) setReady() {
	n.view.Ready = n.connected && n.registered() && n.specified() && n.view.Host != nil && !n.diskFull && n.quarantine == "" && n.ban == nil && n.unregistered.IsZero()
	n.view.Unschedulable = n.cordoned() || n.ban != nil || !n.unapproved.IsZero()
	n.view.Closed = n.closed()
}
