package assignment

import (
	"time"

	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file says which changes of the ledger give a grant its files, and which
// take the files away. A notice changes files.

// After implements [follow.Follower].
func (s *Writer) After(g follow.Group) {
	for _, c := range g.Changes {
		switch n := c.Notice.(type) {
		case follow.Registered:
			s.registered(g, n.Live)
		case follow.Confirmed:
			s.Confirm(n.Tx)
		case follow.Resumed:
			s.Reopen()
		case follow.Overdue:
			s.Remove(n.Tx)
		}
		switch e := c.Event.(type) {
		case ledger.Granted:
			if !e.Grant.Origin.Foreign() && (e.Grant.State == grant.Held || e.Grant.State == grant.Evicting) {
				s.handOver(g, e.Grant.Tx)
			}
		case ledger.Committed: // model: mutant START_BEFORE_COMMITTED
			s.handOver(g, e.Tx)
		case ledger.Noticed:
			if held, ok := g.Ledger.Lookup(e.Tx); ok && held.State == grant.Evicting {
				s.Renew(s.filesOf(held))
			}
		case ledger.Buried:
			s.Remove(e.Tx)
		case ledger.Dropped:
			s.Remove(e.Tx)
		}
	}
}

// handOver wishes for the files of a grant that may run.
func (s *Writer) handOver(g follow.Group, tx resource.TxID) {
	if held, ok := g.Ledger.Lookup(tx); ok && len(held.Members) > 0 && held.State.Holds() && held.State != grant.Reserved {
		s.Put(s.filesOf(held))
	}
}

// registered follows a registration: the files become those of the present grants,
// no others. A grant that is not live by the records of the store may have ended
// while the node was away, after a confirmed death say: unless its files are there
// already, they are written only after its record is read.
func (s *Writer) registered(g follow.Group, live map[resource.TxID]bool) {
	for _, held := range runnable(g) {
		if live[held.Tx] || held.Origin != ledger.OriginTxn {
			s.Put(s.filesOf(held))
		} else {
			s.Withhold(s.filesOf(held))
		}
	}
	s.Prune()
}

func (s *Writer) filesOf(g ledger.Grant) handoff.Grant {
	f := handoff.Grant{Tx: g.Tx, Unit: g.Unit, Name: g.Name, Tenant: g.Tenant, Node: s.node}
	if g.State == grant.Evicting { // the time line is the kernel's uptime
		f.End = handoff.End{GraceSeconds: int64(g.Grace / time.Second), UptimeSeconds: g.Deadline.Unix()}
	}
	for _, m := range g.Members {
		f.Members = append(f.Members, m.AsMember())
	}
	return f
}

// runnable lists the grants that ask for files.
func runnable(g follow.Group) []ledger.Grant {
	var live []ledger.Grant
	for _, held := range g.Ledger.Snapshot().Grants {
		if held.State.Holds() && held.State != grant.Reserved && !held.Origin.Foreign() && !isPastGrace(g, &held) {
			live = append(live, held)
		}
	}
	return live
}

// isPastGrace reports whether a grant's files are to go although it holds its devices.
func isPastGrace(g follow.Group, held *ledger.Grant) bool {
	return follow.MayEndGrants(g.Ledger) && (held.State == grant.Stopping || held.State == grant.Evicting && !g.Now.Before(held.Deadline))
}
