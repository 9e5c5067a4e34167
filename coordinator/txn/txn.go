// Package txn is the leader's side of reserve and commit: one Machine per
// transaction, from its first Reserve to its end (PROTOCOL.md section 4,
// "Leader, per transaction").
//
// A Machine decides what to do next; it does nothing itself. Step takes what
// happened and returns effects as values, for the owner to carry out and to
// answer with further inputs. It has no clock, no I/O and no goroutine, and
// nothing in it is durable: a new leader rebuilds machines from records.
package txn

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// State is how far a transaction is.
type State uint8

// The states in the order they are passed. Reading is entered whenever the
// outcome of a write is unknown or the write's compare failed: the record
// decides, never a guess.
const (
	Reserving  State = iota // Reserve sent, votes outstanding
	Committing              // the commit Txn is under way
	Fencing                 // the Txn that creates ABORTED is under way
	Reading                 // the record is being read
	Committed               // COMMITTED is durable
	Ending                  // the Txn to RELEASING is under way
	Releasing               // RELEASING is durable, Freed outstanding
	Closing                 // the Txn to RELEASED is under way
	Released                // RELEASED is durable; the machine has ended
	Aborted                 // ABORTED is durable; the machine has ended
)

var stateNames = [...]string{"Reserving", "Committing", "Fencing", "Reading", "Committed", "Ending", "Releasing", "Closing", "Released", "Aborted"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// Member is one member of the unit and what it holds on its node.
type Member struct {
	Index      int // in the unit
	Assignment resource.Assignment
}

// Vote is a node's Yes: all members there, in the incarnation that promised.
type Vote struct {
	Incarnation resource.Incarnation
	// Revision is the store's revision of that incarnation's registration: the
	// commit compares it, so a Yes of a lost memory cannot count.
	Revision resource.Revision
	Members  []Member
}

// part is one node's share of the transaction.
type part struct {
	node  resource.NodeID
	voted bool
	vote  Vote
	freed bool
}

// Machine is one transaction. One goroutine owns it.
//
// Invariant: a commit Txn is asked for only with every part voted; RELEASED
// only with every part freed; ABORTED is told to agents only once it is
// durable.
type Machine struct {
	id    resource.TxID
	state State
	parts []part // ascending by node

	// commitInDoubt: a commit Txn was sent and no definite answer is known.
	commitInDoubt bool
	revision      resource.Revision // of the record, once it exists
	refusals      []Refused
	release       *ReleaseAsked // asked for; carried out as soon as the state allows
}

// New returns a transaction over the given nodes and the effects that start
// it. Nodes must be distinct; their order does not matter.
func New(id resource.TxID, nodes []resource.NodeID) (*Machine, []Effect) {
	m := &Machine{id: id, state: Reserving}
	var effects []Effect
	for _, n := range slices.Sorted(slices.Values(nodes)) {
		m.parts = append(m.parts, part{node: n})
		effects = append(effects, SendReserve{n})
	}
	return m, effects
}

// Recover returns the machine of a record that a new leader found: COMMITTED,
// or RELEASING when releasing is set. votes holds each node's members; the
// effects repeat what the record demands of the agents.
func Recover(id resource.TxID, revision resource.Revision, votes map[resource.NodeID]Vote, releasing *ReleaseAsked) (*Machine, []Effect) {
	m := &Machine{id: id, state: Committed, revision: revision, release: releasing}
	for n, v := range votes {
		m.parts = append(m.parts, part{node: n, voted: true, vote: v})
	}
	slices.SortFunc(m.parts, func(a, b part) int { return cmp.Compare(a.node, b.node) })
	if releasing != nil {
		m.state = Releasing
		return m, m.tellRelease()
	}
	return m, m.tellCommit()
}

// ID returns the transaction's identifier.
func (m *Machine) ID() resource.TxID { return m.id }

// State returns how far the transaction is.
func (m *Machine) State() State { return m.state }

// Revision is the store's revision of the record's latest known write.
func (m *Machine) Revision() resource.Revision { return m.revision }

// CommitInDoubt reports whether a commit Txn was sent that may still land: it
// had no definite answer and the record was not read COMMITTED. An ABORTED
// record must then not be collected in this epoch.
func (m *Machine) CommitInDoubt() bool { return m.commitInDoubt }

// Nodes returns the nodes in ascending order.
func (m *Machine) Nodes() []resource.NodeID {
	nodes := make([]resource.NodeID, len(m.parts))
	for i, p := range m.parts {
		nodes[i] = p.node
	}
	return nodes
}

// Vote returns the Yes of a node, if it has one.
func (m *Machine) Vote(node resource.NodeID) (Vote, bool) {
	if p := m.part(node); p != nil && p.voted {
		return p.vote, true
	}
	return Vote{}, false
}

// Refusals returns why nodes said no, in the order the answers came.
func (m *Machine) Refusals() []Refused { return slices.Clone(m.refusals) }

// part finds a node's part, or nil.
func (m *Machine) part(node resource.NodeID) *part {
	i, ok := slices.BinarySearchFunc(m.parts, node, func(p part, n resource.NodeID) int { return cmp.Compare(p.node, n) })
	if !ok {
		return nil
	}
	return &m.parts[i]
}

// String shows state and votes, for logs and transcripts.
func (m *Machine) String() string {
	voted, freed := 0, 0
	for _, p := range m.parts {
		if p.voted {
			voted++
		}
		if p.freed {
			freed++
		}
	}
	return fmt.Sprintf("%s %s voted=%d/%d freed=%d/%d", m.id, m.state, voted, len(m.parts), freed, len(m.parts))
}
