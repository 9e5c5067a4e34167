package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// nodeObject shows a node.
func (l *Leader) nodeObject(n *node) *api.Node {
	s := l.showNode(n, l.addresses(n.spec.AgentAddr))
	return s.Show()
}

// showNode makes the shown value of a node and of those who hold something
// there.
func (l *Leader) showNode(n *node, book shown.AddressBook) shown.Node {
	s := n.show()
	s.Now, s.Beside = l.now, book.Beside(n.view.ID, &n.spec)
	s.Told = n.said.conditions
	for tx, h := range n.reservations {
		if a := l.attempts[tx]; a != nil {
			for _, m := range h.members {
				s.Allocations = append(s.Allocations, a.unit.record.Namespace+"/"+a.unit.memberName(m.Index))
			}
		}
	}
	return s
}

// addresses makes the book of all nodes' addresses, of one alone where only is
// not "".
func (l *Leader) addresses(only string) shown.AddressBook {
	return shown.AddressesOf(func(yield func(resource.NodeID, *record.NodeSpec) bool) {
		for id, n := range l.nodes {
			if !yield(id, &n.spec) {
				return
			}
		}
	}, only)
}

// show makes the shown value of what a node has of its own.
func (n *node) show() shown.Node {
	s := shown.Node{
		ID: n.view.ID, Spec: &n.spec, Revision: n.specRev, Labels: n.view.Labels.Values(), Hardware: n.hardware(),
		Incarnation: n.incarnation, Registered: n.revision != 0, Unheard: n.unheard, Lease: n.lease, Ban: n.ban, Violation: n.violation(), Unapproved: n.unapproved,
		Stream: &shown.Stream{
			Connected: n.connected, Quarantine: n.quarantine, DiskFull: n.diskFull, MemoryPressure: n.memoryPressure, Unread: !n.specified(), Unregistered: n.unregistered,
			Host: n.view.Host, Free: n.view.Free, Usage: n.usage, Uses: n.uses, Withheld: n.withheld,
		},
	}
	if n.fence != nil {
		s.Fence = n.fence.show()
	}
	if n.breaker.trips > 0 {
		s.Stream.Suspicion = n.breaker.String()
	}
	if len(n.health) > 0 {
		s.Stream.Health = make(map[int]shown.Health, len(n.health))
		for i, h := range n.health {
			s.Stream.Health[i] = shown.Health(h)
		}
	}
	return s
}

// hardware is a node's, as its agent's stream and its registration describe it.
func (n *node) hardware() shown.Hardware {
	return shown.Hardware{Topology: n.host.Topology, Inventory: n.host.Inventory, Summary: &n.spec.Topology}
}

// show makes the shown value of a fence.
func (f *fence) show() *shown.Fence {
	return &shown.Fence{Dead: f.dead, At: f.at, Reason: f.reason, Assume: f.assume, DeadAfter: AssumedDeadAfter(f.assume)}
}

// String says it in plain words.
func (f *fence) String(id resource.NodeID) string { return f.show().Sentence(id) }

// said are the conditions that an agent told with its heartbeats, as the store's
// key of a revision has them.
type said struct {
	conditions []record.Condition
	revision   resource.Revision
}

// takeStatus takes over the conditions of a node's agent. A key that cannot be
// read has none: followers refuse to show it.
func (n *node) takeStatus(kv record.KV) {
	if kv.ModRev == n.said.revision {
		return
	}
	status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
	if err != nil {
		status.Conditions = nil
	}
	n.setSaid(said{status.Conditions, kv.ModRev})
}
