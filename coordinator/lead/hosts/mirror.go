package hosts

import (
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Mirror holds the grants that a node's agent has reported, without this
// leader's plans. The sum is therefore the hash of the agent's ledger, which
// comes with every message. The two differ only while the agent reports one
// decision in several messages.
//
// Invariant: sum is that of prints.
type Mirror struct {
	Prints map[resource.TxID]uint64
	Sum    uint64
	Told   uint64 // the agent's hash, as the last message had it
	// astray counts the audits in a row that found the two different.
	astray int
}

// Reset replaces the mirror by the agent's report of all grants.
func (m *Mirror) Reset(grants []grant.Grant, hash uint64) {
	*m = Mirror{Prints: make(map[resource.TxID]uint64, len(grants)), Told: hash}
	for _, g := range grants {
		if g.State != grant.Tombstone {
			m.put(g.Tx, g.Members)
		}
	}
}

// Heard takes the agent's report about one transaction.
func (m *Mirror) Heard(e grant.Replied) {
	m.Told = e.LedgerHash
	switch e.State {
	case grant.Reserved, grant.Held, grant.Evicting, grant.Stopping, grant.Waiting:
		m.put(e.Tx, e.Members)
	case grant.None, grant.Tombstone:
		m.drop(e.Tx)
	case grant.No: // leaves the transaction's grant unchanged
	}
}

func (m *Mirror) put(tx resource.TxID, members []grant.Member) {
	m.drop(tx)
	f := resource.NewFingerprint(tx)
	for i := range members {
		f.Add(members[i].Index, &members[i].Assignment)
	}
	m.Prints[tx] = f.Sum()
	m.Sum += m.Prints[tx]
}

func (m *Mirror) drop(tx resource.TxID) {
	m.Sum -= m.Prints[tx]
	delete(m.Prints, tx)
}

// LastsAstray reports whether two audits in a row have found a difference.
func (m *Mirror) LastsAstray() bool {
	if m.Sum == m.Told {
		m.astray = 0
		return false
	}
	m.astray++
	return m.astray > 1
}

// ClearAstray begins the count anew, once something is done about the difference.
func (m *Mirror) ClearAstray() { m.astray = 0 }
