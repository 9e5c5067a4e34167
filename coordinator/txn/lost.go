package txn

import "github.com/musterd/muster/resource"

// This file is about nodes that do not answer any more: a node that is fenced and
// confirmed dead counts as freed (PROTOCOL.md I10). The owner sends Freed for such a
// node, and lets each Txn that depends on it compare that the node still is dead.

// FreedAt reports whether a node has freed its members, or counts as such.
func (m *Machine) FreedAt(node resource.NodeID) bool {
	p := m.part(node)
	return p != nil && p.freed
}

// returned takes back that a node counts as freed: from now on only the node's
// agent reports the freeing. A Txn to RELEASED that is under way fails its compare, unless the node
// was still dead when it landed.
func (m *Machine) returned(in Returned) {
	if p := m.part(in.Node); p != nil && m.state != Released {
		p.freed = false
	}
}
