package txn

import "github.com/musterd/muster/resource"

// This file is about nodes that cannot be asked: fenced and confirmed dead, one
// counts as freed (PROTOCOL.md I10). Its owner says so with Freed, and has the
// Txns that rest on it compare that the node still is dead.

// FreedAt reports whether a node has freed its members, or counts as such.
func (m *Machine) FreedAt(node resource.NodeID) bool {
	p := m.part(node)
	return p != nil && p.freed
}

// returned takes back that a node counts as freed: from now on it is its agent's
// to say. A Txn to RELEASED that is under way fails its compare, unless the node
// was still dead when it landed.
func (m *Machine) returned(in Returned) {
	if p := m.part(in.Node); p != nil && m.state != Released {
		p.freed = false
	}
}
