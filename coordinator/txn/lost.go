package txn

import (
	"slices"

	"github.com/musterd/muster/resource"
)

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

// nodeLost has the record lose its members on a dead node (ADR 110). A step that is under
// way comes first: the owner asks again.
func (m *Machine) nodeLost(in NodeLost) []Effect {
	if m.state != Committed || !m.Has(in.Node) || len(m.parts) < 2 {
		return nil
	}
	m.losing = in.Node
	return m.resume()
}

func (m *Machine) lossAnswered(in LossAnswered) []Effect {
	if m.state != Losing || m.losing != in.Node {
		return nil
	}
	switch in.Outcome {
	case Landed:
		effects := m.loses([]resource.NodeID{in.Node}, in.Revision)
		return append(effects, m.resume()...)
	case Conflict: // the node is back, or a Txn without an answer has landed
		m.losing = ""
	case Unknown: // sent again, until an answer is definite: else the Txn could land later
	}
	return m.read()
}

// loses takes over that the record has lost its members on some nodes.
func (m *Machine) loses(nodes []resource.NodeID, revision resource.Revision) (effects []Effect) {
	for _, node := range nodes {
		if m.losing == node {
			m.losing = ""
		}
		if m.Has(node) {
			m.parts = slices.DeleteFunc(m.parts, func(p part) bool { return p.node == node })
			m.revision = max(m.revision, revision)
			effects = append(effects, AckLoss{node, revision})
		}
	}
	return effects
}
