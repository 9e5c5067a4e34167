// Package txn is the leader's side of reserve and commit: one Machine per
// transaction, from its first Reserve to its end (PROTOCOL.md section 4,
// "Leader, per transaction").
//
// A Machine only decides. Step takes an event and returns effects as values; the
// owner carries the effects out and answers with further inputs. A Machine has no
// clock, no I/O and no goroutine, and its state is not durable: a new leader
// rebuilds machines from records.
//
// # Preemption
//
// A preemptor and each victim have machines of their own (PROTOCOL.md section
// 6). Two Txns write several records: the first evicts all victims, the second
// releases them and commits the preemptor. The preemptor's machine sends both, and
// the owner forwards the outcome to the victims' machines:
//
//	preemptor                 owner sends to its victims
//	WriteEvictions            VictimClaimed, before the Txn is sent
//	AckEvictions              Evicted
//	AckCommitted              Displaced
//	AckAborted                PreemptorAborted
//
//	victim                    owner sends to its preemptor
//	AckFreed                  VictimFreed
//
// A victim's machine writes no record from VictimClaimed on until Displaced or
// PreemptorAborted. After PreemptorAborted it ends like any other eviction: EVICTING
// becomes RELEASING once every node has freed it, then RELEASED.
package txn

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// State is the progress of a transaction.
type State uint8

// The states in the order they are passed. Reading is entered whenever the
// outcome of a write is unknown or the write's compare failed: the record
// decides.
const (
	Reserving  State = iota // Reserve sent, answers outstanding
	Clearing                // the Txn that evicts the victims is under way
	Displacing              // the victims are EVICTING; they are to be freed, and every Yes is to come
	Committing              // the commit Txn is under way
	Fencing                 // the Txn that creates ABORTED is under way
	Reading                 // the record is being read
	Committed               // COMMITTED is durable
	Losing                  // the Txn is under way by which the record loses its members on a dead node
	Claimed                 // a preemptor's Txn that makes the record EVICTING is under way
	Noticing                // the Txn to EVICTING, for no preemptor, is under way
	Evicting                // EVICTING is durable, Freed outstanding or the preemptor undecided
	Ending                  // the Txn to RELEASING is under way
	Releasing               // RELEASING is durable, Freed outstanding
	Closing                 // the Txn to RELEASED is under way
	Released                // RELEASED is durable; the machine has ended
	Aborted                 // ABORTED is durable; the machine has ended
)

var stateNames = [...]string{
	"Reserving", "Clearing", "Displacing", "Committing", "Fencing", "Reading", "Committed", "Losing", "Claimed", "Noticing", "Evicting", "Ending", "Releasing", "Closing",
	"Released", "Aborted",
}

// IsInDoubt reports whether a Txn, other than those of an end, has no answer: agents may have
// read the change from the store, and have acted.
func (s State) IsInDoubt() bool { return s == Noticing || s == Claimed || s == Losing || s == Reading }

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// Vote is a node's Yes, or its Waiting, for all members on the node, with the
// incarnation of the agent that promised.
type Vote struct {
	Incarnation resource.Incarnation
	// Revision is the store's revision of that incarnation's registration: the
	// Txns compare it, so a promise that the agent has lost cannot count.
	Revision resource.Revision
	Members  []grant.Member
}

// part is the share of a single node in the transaction.
type part struct {
	node resource.NodeID
	// answered: vote is the node's latest answer, a Yes if voted, else Waiting.
	answered bool
	voted    bool
	vote     Vote
	freed    bool
}

// victim is a transaction that has to end before this transaction commits.
type victim struct {
	tx    resource.TxID
	freed bool // by every node of its
}

// Machine is the state of a single transaction. A single goroutine owns it.
//
// Invariant: a commit Txn is sent only with every part voted and every
// victim freed; victims are evicted only with every part answered; RELEASED
// only with every part freed; ABORTED is sent to agents only once it is
// durable; while by is set the machine writes no record.
type Machine struct {
	id    resource.TxID
	state State
	parts []part // ascending by node

	victims []victim // ascending; see preempt.go

	// commitInDoubt: a commit Txn was sent and has no definite answer;
	// evictionsInDoubt: the same of the Txn that evicts the victims.
	commitInDoubt, evictionsInDoubt bool
	revision                        resource.Revision // of the record, once it exists
	refusals                        []Refused
	release                         *ReleaseAsked // requested; carried out as soon as the state allows
	releaseAcked                    bool
	notice                          *EvictAsked     // the eviction, once it is requested
	by                              resource.TxID   // the undecided preemptor that has claimed this victim
	losing                          resource.NodeID // the dead node without whose members the record goes on; see lost.go
}

// New returns a transaction over the given nodes and the effects that start
// it. Nodes must be distinct; their order does not matter. With victims it is a
// preemption: it commits once they are evicted, in the Txn that ends them.
func New(id resource.TxID, nodes []resource.NodeID, victims ...resource.TxID) (*Machine, []Effect) {
	m := &Machine{id: id, state: Reserving}
	for _, tx := range slices.Sorted(slices.Values(victims)) {
		m.victims = append(m.victims, victim{tx: tx})
	}
	for _, n := range slices.Sorted(slices.Values(nodes)) {
		m.parts = append(m.parts, part{node: n})
	}
	return m, m.tellReserve()
}

// Adopt returns the machine of a preemption that an earlier leader began and whose victims
// are EVICTING for it: agents that wait for them answer as before.
func Adopt(id resource.TxID, nodes []resource.NodeID, victims ...resource.TxID) (*Machine, []Effect) {
	m, effects := New(id, nodes, victims...)
	m.state = Displacing
	return m, effects
}

// Found is a live record that a new leader has found.
type Found struct {
	State    grant.RecordState // RecordCommitted, RecordEvicting or RecordReleasing
	Revision resource.Revision
	// By is the undecided preemptor of an EVICTING record, "" if there is none.
	By resource.TxID
	// GraceSeconds and Reason are of a record that is EVICTING or RELEASING. Evicted:
	// a RELEASING record was EVICTING, and its owner has not requested its end. Kept as
	// in ReleaseAsked.
	GraceSeconds int64
	Reason       string
	Evicted      bool
	Kept         bool
}

// Recover returns the machine of a record that a new leader found. votes holds
// each node's members; the effects repeat what the record demands of the
// agents.
func Recover(id resource.TxID, found Found, votes map[resource.NodeID]Vote) (*Machine, []Effect) {
	m := &Machine{id: id, state: Committed, revision: found.Revision}
	for n, v := range votes {
		m.parts = append(m.parts, part{node: n, answered: true, voted: true, vote: v})
	}
	slices.SortFunc(m.parts, func(a, b part) int { return cmp.Compare(a.node, b.node) })
	switch found.State {
	case grant.RecordEvicting:
		m.state, m.by = Evicting, found.By
		m.notice = &EvictAsked{GraceSeconds: found.GraceSeconds, Reason: found.Reason}
		return m, m.tellEvict()
	case grant.RecordReleasing:
		m.state, m.releaseAcked = Releasing, true
		m.release = &ReleaseAsked{GraceSeconds: found.GraceSeconds, Reason: found.Reason, Evicted: found.Evicted, Kept: found.Kept}
		return m, m.tellRelease()
	}
	return m, m.tellCommit()
}

// ID returns the transaction's identifier.
func (m *Machine) ID() resource.TxID { return m.id }

// State returns the progress of the transaction.
func (m *Machine) State() State { return m.state }

// Undecided reports whether there is no record yet: the transaction may become
// COMMITTED or ABORTED.
func (m *Machine) Undecided() bool { return m.revision == 0 && m.state != Aborted }

// Revision is the store's revision of the latest write of the record that was read or acknowledged.
func (m *Machine) Revision() resource.Revision { return m.revision }

// CommitInDoubt reports whether a commit Txn was sent that may still land: it
// had no definite answer and the record was not read COMMITTED. An ABORTED
// record must then not be collected in this epoch, nor if EvictionsInDoubt.
func (m *Machine) CommitInDoubt() bool { return m.commitInDoubt }

// EvictionsInDoubt reports whether the Txn that evicts the victims was sent and
// may have landed, or may yet while the transaction has no record.
func (m *Machine) EvictionsInDoubt() bool { return m.evictionsInDoubt }

// Victims returns the transactions that have to end before this transaction commits,
// in ascending order.
func (m *Machine) Victims() []resource.TxID {
	txs := make([]resource.TxID, len(m.victims))
	for i, v := range m.victims {
		txs[i] = v.tx
	}
	return txs
}

// By returns the undecided preemptor that has claimed this transaction, or "".
func (m *Machine) By() resource.TxID { return m.by }

// Freed reports whether every node has freed its members for good.
func (m *Machine) Freed() bool {
	for _, p := range m.parts { // model: mutant END_BEFORE_FREED
		if !p.freed {
			return false
		}
	}
	return true
}

// Has reports whether a node has members of the transaction.
func (m *Machine) Has(node resource.NodeID) bool { return m.part(node) != nil }

// FreedBy reports whether a node has freed its members for good.
func (m *Machine) FreedBy(node resource.NodeID) bool {
	p := m.part(node)
	return p != nil && p.freed
}

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

// Answer returns the Yes or Waiting of a node, whichever came last.
func (m *Machine) Answer(node resource.NodeID) (Vote, bool) {
	if p := m.part(node); p != nil && p.answered {
		return p.vote, true
	}
	return Vote{}, false
}

// Refusals returns the reasons of the nodes that refused, in the order of their answers.
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
	s := fmt.Sprintf("%s %s voted=%d/%d freed=%d/%d", m.id, m.state, voted, len(m.parts), freed, len(m.parts))
	if m.by != "" {
		s += " by=" + string(m.by)
	}
	if len(m.victims) == 0 {
		return s
	}
	freed = 0
	for _, v := range m.victims {
		if v.freed {
			freed++
		}
	}
	return fmt.Sprintf("%s victims-freed=%d/%d", s, freed, len(m.victims))
}

// Record is the state of the record of a machine between the decision and the end.
func (s State) Record() grant.RecordState {
	switch {
	case s <= Noticing:
		return grant.RecordCommitted
	case s <= Ending:
		return grant.RecordEvicting
	}
	return grant.RecordReleasing
}
