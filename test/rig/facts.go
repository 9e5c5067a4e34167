package rig

import (
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// This file tells the checker what leaders and agents say to each other.

// restarts are the last restart of each host, cards the devices that each node
// was ever heard to have.
type (
	restarts map[resource.NodeID]time.Time
	cards    map[resource.NodeID]map[string]bool
)

// others are the writes that are not the leader's alone; quotas and a node's
// specification are, but are compared with revisions that agents change too.
func others() []string {
	return []string{"txn candidacy", "txn registration", "txn node", "txn agent's fence", "txn fence"}
}

// landed takes a Txn of a coordinator.
func (a *audit) landed(coordinator string, revision resource.Revision, t record.Txn) {
	names, _ := TxnSteps(t)
	if slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(others(), func(other string) bool { return strings.HasPrefix(name, other) })
	}) {
		return
	}
	w := invariant.Write{Revision: revision, What: strings.Join(names, ", ") + " of " + coordinator}
	for _, c := range t.If {
		if strings.HasPrefix(c.Key, record.LeaderPrefix) {
			w.Epoch = resource.Epoch(c.Rev)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.report(a.checker.Wrote(w))
}

// restarted takes the restart of a host.
func (a *audit) restarted(node resource.NodeID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restarts[node] = time.Now()
	a.checker.Restarted(node, a.restarts[node])
}

// told takes a message of a leader to an agent.
func (a *audit) told(node resource.NodeID, m *musterv1.LeaderMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := m.GetReserve(); r != nil {
		a.report(a.checker.Asked(resource.TxID(r.GetTx()), resource.Epoch(r.GetEpoch())))
	}
	if r := m.GetRelease(); r != nil {
		a.checker.Dismissed(node, resource.TxID(r.GetTx()))
	}
	if e := m.GetEvict(); e != nil {
		a.checker.Warned(node, resource.TxID(e.GetTx()), time.Duration(e.GetGraceMillis())*time.Millisecond)
	}
}

// heard takes a message of an agent in the session of a leader.
func (a *audit) heard(node resource.NodeID, epoch resource.Epoch, m *musterv1.AgentMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r := m.GetReply(); r.GetState() {
	case musterv1.Reply_FREED, musterv1.Reply_NONE:
		a.report(a.checker.Freed(node, resource.TxID(r.GetTx()), time.Now()))
	case musterv1.Reply_HELD:
		a.checker.Held(node, resource.TxID(r.GetTx()))
	}
	for _, d := range m.GetHello().GetHost().GetInventory().GetDevices() {
		if a.cards[node] == nil {
			a.cards[node] = map[string]bool{}
		}
		a.cards[node][d.GetUuid()] = true
		a.checker.Cards(node, d.GetUuid())
	}
	for _, o := range []*musterv1.Occupancy{m.GetHello().GetOccupancy(), m.GetOccupancy()} {
		a.holds(node, o)
	}
	switch {
	case m.GetHello() != nil && m.GetHello().GetRegisteredRevision() > 0:
		a.checker.Occupied(node, epoch, transactions(m.GetHello().GetOccupancy()))
	case m.GetOccupancy() != nil:
		a.checker.Occupied(node, epoch, transactions(m.GetOccupancy()))
	case m.GetReply() != nil:
		state := m.GetReply().GetState()
		promise := state == musterv1.Reply_RESERVED || state == musterv1.Reply_WAITING
		a.report(a.checker.Answered(node, epoch, resource.TxID(m.GetReply().GetTx()), promise))
	}
}

// holds takes all that an agent says it has; mu is held.
func (a *audit) holds(node resource.NodeID, o *musterv1.Occupancy) {
	for _, g := range o.GetGrants() {
		switch tx := resource.TxID(g.GetTx()); g.GetState() {
		case musterv1.Reply_FREED:
			a.report(a.checker.Freed(node, tx, time.Now()))
		case musterv1.Reply_HELD:
			a.checker.Held(node, tx)
		}
	}
}

func transactions(o *musterv1.Occupancy) []resource.TxID {
	var txs []resource.TxID
	for _, g := range o.GetGrants() {
		txs = append(txs, resource.TxID(g.GetTx()))
	}
	return txs
}
