package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/judge.go: a leader believes no vote that is not what
// it asked for.

// breaks says in what a Yes, or a Waiting, differs from what was asked of the
// node; "" where it does not. ofHost: only the host that the leader knows speaks
// against it, and that may be of another time than the vote.
func breaks(h *fit.Host, asked []grant.MemberRequest, members []ledger.Holding) (why string, ofHost bool) {
	if len(members) != len(asked) {
		return fmt.Sprintf("%d members, want %d", len(members), len(asked)), false
	}
	assignments := make([]resource.Assignment, len(members))
	for i, m := range members {
		if m.Index != asked[i].Index {
			return fmt.Sprintf("member %d in place of %d", m.Index, asked[i].Index), false
		}
		if why, ofHost = mismatch(h.Satisfies(asked[i].Request, m.Assignment)); why != "" {
			return fmt.Sprintf("member %d: %s", m.Index, why), ofHost
		}
		assignments[i] = m.Assignment
	}
	return mismatch(h.Disjoint(assignments...))
}

// mismatch splits an error of fit.Host.Satisfies or Disjoint; "" for none.
func mismatch(err error) (why string, ofHost bool) {
	var m *fit.Mismatch
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &m):
		return m.Error(), m.OfHost
	}
	return err.Error(), false
}

// judge reports whether a node's promise to an attempt is what was asked of it.
// One that is not counts as a No; a node that cannot have meant well is left out
// from then on.
func (t *term) judge(id resource.NodeID, a *attempt, r ledger.Reply) bool {
	if r.State != grant.Reserved && r.State != grant.Waiting || r.Refused() || !a.machine.Undecided() || t.sim.bug == VotesNotJudged {
		return true
	}
	v := t.node(id)
	asked, takesPart := a.requests[id]
	why, ofHost := "it was not asked", false
	if takesPart {
		why, ofHost = breaks(v.view.Host, asked, r.Members)
	}
	if why == "" {
		return true
	}
	t.sim.logf("%s: does not believe %s on %s: %s", t.name, id, short(r.Tx), why)
	t.sim.stats["votes not believed"]++
	t.step(a, txn.Refused{Node: id, Reasons: []resource.Reason{{Code: "protocol-violation", Detail: why}}})
	if !ofHost {
		t.isolateLiar(id)
	}
	return false
}

// isolateLiar keeps new work off a node that has lied, until an operator lets
// it back.
func (t *term) isolateLiar(id resource.NodeID) {
	v := t.node(id)
	if !v.view.Ready && v.lied {
		return
	}
	if !t.sim.host(id).lying() {
		t.sim.fail("judge", "%s takes %s for a liar", t.name, id)
	}
	t.sim.stats["liars isolated"]++
	v.lied = true
	v.setReady()
	if t.leavesFrom(id) { // its stream ends, which wakes what waits
		t.wake()
	}
}

// ofLiar reports whether a breach of the decision log is about a device of the
// liar's own host.
func (s *Sim) ofLiar(v decisions.Violation) bool {
	return s.liar.host != nil && strings.Contains(v.Detail, " of "+string(s.liar.host.node)+",")
}

// forgive is an operator who lets all nodes back.
func (t *term) forgive() {
	for _, n := range t.order {
		v := t.nodes[n.ID]
		v.lied = false
		v.setReady()
	}
	t.wake()
}

// judgePromise is judge for a promise that was made to an earlier leader: what
// that one asked of the node is unknown, so each member has to be one of the
// unit's, as the unit asks for it, and no other node's.
func (t *term) judgePromise(id resource.NodeID, d *adoption, g ledger.Grant) bool {
	if d.unit == nil || t.sim.bug == VotesNotJudged {
		return true
	}
	demand, host := d.unit.client.demand, t.node(id).view.Host
	assignments := make([]resource.Assignment, 0, len(g.Members))
	why, ofHost := "", false
	last := -1
	for _, m := range g.Members {
		switch {
		case m.Index <= last || m.Index >= demand.Members:
			why = fmt.Sprintf("member %d follows %d, of %d members", m.Index, last, demand.Members)
		default:
			why, ofHost = mismatch(host.Satisfies(demand.Request, m.Assignment))
		}
		if last = m.Index; why != "" {
			break
		}
		assignments = append(assignments, m.Assignment)
	}
	if why == "" {
		why, ofHost = mismatch(host.Disjoint(assignments...))
	}
	for other, found := range d.found {
		for _, m := range found {
			if other != id && slices.ContainsFunc(g.Members, func(x ledger.Holding) bool { return x.Index == m.Index }) {
				return false // one of the two nodes lies: nobody goes on with it
			}
		}
	}
	if why == "" && len(g.Members) > 0 {
		return true
	}
	if !ofHost {
		t.isolateLiar(id)
	}
	return false
}
