package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the invariants of evictions.

// nomination is what a preemption was begun for.
type nomination struct {
	nodes  []resource.NodeID
	client *client
}

// checkI7 verifies, when a record becomes EVICTING, that it does so for an
// undecided preemptor of higher priority, for which every member's agent waits;
// or that an operator has asked for it.
func (s *Sim) checkI7(tx resource.TxID, r record.Tx) {
	if r.By == "" {
		if !s.asked[tx] {
			s.fail("I7", "%s is EVICTING for nobody, and nobody asked for it", short(tx))
		}
		return
	}
	if state := s.decided[r.By]; state != grant.RecordAbsent {
		s.fail("I7", "%s is EVICTING for %s, which is %s", short(tx), short(r.By), state)
	}
	n := s.nominated[r.By]
	if c := s.clientOf(r); c.priority >= n.client.priority {
		s.fail("I7", "%s of priority %d is EVICTING for %s of priority %d", short(tx), c.priority, short(r.By), n.client.priority)
	}
	for _, node := range n.nodes {
		a := s.host(node).agent
		who, _ := value[identity](s.store, identityKey(node))
		registered := who.incarnation
		if a == nil || a.incarnation != registered || a.h.lying() {
			continue // down, or the store does not know yet of what is lost with it
		}
		if g, _ := a.l.Lookup(r.By); g.State != grant.Waiting && g.State != grant.Reserved || g.Incarnation != registered {
			s.fail("I7", "%s is EVICTING for %s, which is %s on %s since %s, and that is %s now", short(tx), short(r.By), g.State, node, g.Incarnation, registered)
		}
	}
}

// checkNominated verifies that a commit uses nothing that an agent keeps for
// another.
func (s *Sim) checkNominated(tx resource.TxID, r record.Tx) {
	if !s.evictions {
		return
	}
	for _, m := range r.Members {
		a := s.host(m.Node).agent
		if a == nil || a.l.Registration() == 0 || a.h.lying() {
			continue
		}
		for _, g := range a.l.Snapshot().Grants {
			if g.State != grant.Waiting || g.Tx == tx || slices.Contains(g.Victims, tx) || s.decided[g.Tx] != grant.RecordAbsent {
				continue
			}
			for _, member := range g.Members {
				for _, d := range member.Assignment.GPUs {
					if slices.ContainsFunc(m.Assignment.GPUs, func(x resource.GPUGrant) bool { return x.UUID == d.UUID }) {
						s.fail("I7", "%s is COMMITTED with %s, which is kept for %s", short(tx), d.UUID, short(g.Tx))
					}
				}
			}
		}
	}
}

// checkSwap verifies that EVICTING becomes RELEASED only together with the
// commit of what it was evicted for.
func (s *Sim) checkSwap(tx resource.TxID, before map[resource.TxID]grant.RecordState, r record.Tx) {
	if before[tx] != grant.RecordEvicting {
		return
	}
	was, together := before[r.By]
	p, _ := value[record.Tx](s.store, txKey(r.By))
	if !together || was != grant.RecordAbsent || p.State != grant.RecordCommitted {
		s.fail("I11", "%s goes from EVICTING to RELEASED without the commit of %s", short(tx), strings.TrimSpace(short(r.By)))
	}
}

// promise notes the grace that an eviction brings.
func (h *host) promise(tx resource.TxID, grace time.Duration) {
	if w := h.running[tx]; w != nil {
		w.promised = grace
	}
}

// evicted is notice for an eviction: its grace is never cut short, and may be
// extended.
func (h *host) evicted(tx resource.TxID, promised time.Duration) {
	w := h.running[tx]
	switch {
	case w == nil:
	case w.noticed && !h.forgetful:
		w.grace = max(w.grace, promised)
	default:
		h.notice(tx, max(promised, w.promised))
	}
}
