package lead

import (
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// mirror holds the grants that a node's agent has reported, without this
// leader's plans. Its sum is therefore the hash of the agent's ledger, which
// comes with every message. The two differ only while the agent reports one
// decision in several messages.
//
// Invariant: sum is that of prints.
type mirror struct {
	prints map[resource.TxID]uint64
	sum    uint64
	told   uint64 // the agent's hash, as it came last
	// astray counts the audits in a row that found the two different.
	astray int
}

// reset replaces the mirror by the agent's report of all its grants.
func (m *mirror) reset(grants []grant.Grant, hash uint64) {
	*m = mirror{prints: make(map[resource.TxID]uint64, len(grants)), told: hash}
	for _, g := range grants {
		if g.State != grant.Tombstone {
			m.put(g.Tx, g.Members)
		}
	}
}

// heard takes the agent's report about one transaction.
func (m *mirror) heard(e grant.Replied) {
	m.told = e.LedgerHash
	switch e.State {
	case grant.Reserved, grant.Held, grant.Evicting, grant.Stopping, grant.Waiting:
		m.put(e.Tx, e.Members)
	case grant.None, grant.Tombstone:
		m.drop(e.Tx)
	case grant.No: // leaves the transaction's grant unchanged
	}
}

func (m *mirror) put(tx resource.TxID, members []grant.Member) {
	m.drop(tx)
	f := resource.NewFingerprint(tx)
	for i := range members {
		f.Add(members[i].Index, &members[i].Assignment)
	}
	m.prints[tx] = f.Sum()
	m.sum += m.prints[tx]
}

func (m *mirror) drop(tx resource.TxID) {
	m.sum -= m.prints[tx]
	delete(m.prints, tx)
}

// lastsAstray reports whether two audits in a row have found a difference.
func (m *mirror) lastsAstray() bool {
	if m.sum == m.told {
		m.astray = 0
		return false
	}
	m.astray++
	return m.astray > 1
}

// audit asks an agent for all its grants if the ledger's hash differs from the
// mirror.
func (l *Leader) audit() {
	for _, v := range l.state.Nodes() {
		n := l.nodes[v.ID]
		if !n.connected || !n.mirror.lastsAstray() {
			continue
		}
		n.mirror.clearAstray()
		l.post.Count(post.MetricAstray, "")
		if n.violation() != nil {
			continue // it has counted wrongly before
		}
		l.post.Error("view_astray", "node", n.view.ID, "heard", n.mirror.sum, "ledger", n.mirror.told)
		l.post.Command(n.view.ID, grant.Resync{})
	}
}

// clearAstray begins the count anew, once something is done about the difference.
func (m *mirror) clearAstray() { m.astray = 0 }
