package lead

import (
	"iter"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file is what may be read of the leader between two inputs.

// specification is what the store has registered for a node.
type specification struct {
	record.NodeSpec
	Revision resource.Revision
}

// Specifications are those of all nodes, in their order.
func (l *Leader) Specifications() iter.Seq2[resource.NodeID, specification] {
	return func(yield func(resource.NodeID, specification) bool) {
		for _, at := range l.state.Nodes() {
			if n := l.nodes[at.ID]; !yield(at.ID, specification{n.spec, n.specRev}) {
				return
			}
		}
	}
}

// Knows reports whether the leader knows a node.
func (l *Leader) Knows(id resource.NodeID) bool { return l.nodes[id] != nil }

// Sizes counts nodes, units, transactions under way or live, and units that wait.
func (l *Leader) Sizes() (nodes, units, live, queued int) {
	return len(l.nodes), len(l.work.Units), len(l.work.Attempts), l.room.Order().Len()
}

// IdleMessages counts the messages of agents that said nothing new.
func (l *Leader) IdleMessages() uint64 { return l.idle }

// WakeUps counts how often everything that waits was woken.
func (l *Leader) WakeUps() uint64 { return l.generation }

// Efforts counts work of the leader since the beginning of its term.
type Efforts struct {
	Trials     uint64 // of units, by passes
	Judgements uint64 // whether a unit can ever run
}

// Efforts is the work so far.
func (l *Leader) Efforts() Efforts {
	return Efforts{Trials: l.room.Trials(), Judgements: l.fates.judgements}
}

// Show is the leader's allocations and jobs.
func (l *Leader) Show() Shown { return Shown{l} }
