package txn

import (
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Input is an event for the machine. Every input may come at any time, late,
// twice or never; an input that does not apply changes no state.
type Input interface{ input() }

// Outcome is the answer to a write.
type Outcome uint8

const (
	// Landed: the write is durable.
	Landed Outcome = iota
	// Conflict: a compare failed, and no key was written.
	Conflict
	// Unknown: the write may have landed, or may land later.
	Unknown
)

type (
	// Voted: a node answered Yes.
	Voted struct {
		Node resource.NodeID
		Vote Vote
	}
	// Waited: a node answered Waiting: it promises the members once the
	// victims have left.
	Waited struct {
		Node resource.NodeID
		Vote Vote
	}
	// Refused: a node answered No.
	Refused struct {
		Node    resource.NodeID
		Reasons []resource.Reason
	}
	// BudgetSpent: the time for collecting answers is over, or in Displacing
	// that for the victims to leave.
	BudgetSpent struct{}
	// EvictionsAnswered: the outcome of the Txn that evicts the victims.
	EvictionsAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// VictimFreed: every node of a victim has freed it for good.
	VictimFreed struct{ Tx resource.TxID }
	// CommitAnswered: the commit Txn's outcome.
	CommitAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// FenceAnswered: the outcome of the Txn that creates ABORTED.
	FenceAnswered struct{ Outcome Outcome }
	// RecordRead: the record, read linearizably.
	RecordRead struct {
		State grant.RecordState
		// Revision is that of the record's latest write, or of the store at the
		// read if the record is absent.
		Revision resource.Revision
		// By, GraceSeconds and Reason are of an EVICTING record; By is "" if
		// the preemptor is decided, or if there is no preemptor.
		By           resource.TxID
		GraceSeconds int64
		Reason       string
		// Lost are the nodes whose members the record has lost.
		Lost []resource.NodeID
	}
	// ReleaseAsked: the owner of the allocation wants it to end. Evicted is for
	// the machine itself: the allocation ends by an eviction, not by its owner's wish.
	// Kept: agents keep the grace for unattached work, too.
	ReleaseAsked struct {
		GraceSeconds int64
		Reason       string
		Evicted      bool
		Kept         bool
	}
	// EvictAsked: the allocation has to end under notice, without a preemptor.
	EvictAsked struct {
		GraceSeconds int64
		Reason       string
	}
	// NodeLost: a node is confirmed dead, and the transaction is to go on without its
	// members there. It has others.
	NodeLost struct{ Node resource.NodeID }
	// LossAnswered: the outcome of the Txn of WriteLoss. Conflict says that a compare has
	// failed, and that no such Txn can land any more but for one that the record shows.
	LossAnswered struct {
		Node     resource.NodeID
		Outcome  Outcome
		Revision resource.Revision
	}
	// EvictingAnswered: the outcome of the Txn to EVICTING.
	EvictingAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// VictimClaimed: a preemptor's Txn that makes the record EVICTING is about
	// to be sent.
	VictimClaimed struct{ By resource.TxID }
	// Evicted: that Txn has landed.
	Evicted struct {
		GraceSeconds int64
		Reason       string
		Revision     resource.Revision
	}
	// Displaced: the preemptor's commit Txn has landed and with it RELEASED.
	Displaced struct{ Revision resource.Revision }
	// PreemptorAborted: the preemptor will never commit. InDoubt: the Txn that
	// makes the record EVICTING may have landed.
	PreemptorAborted struct {
		By      resource.TxID
		InDoubt bool
	}
	// ReleasingAnswered: the outcome of the Txn to RELEASING.
	ReleasingAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// Freed: a node's devices are free and will stay so.
	Freed struct{ Node resource.NodeID }
	// Returned: a node that counted as freed without a report of its own is
	// back, and may hold its members still.
	Returned struct{ Node resource.NodeID }
	// ReleasedAnswered: the outcome of the Txn to RELEASED.
	ReleasedAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// Reconnected: the stream to a node is new; commands on the earlier stream
	// may be lost.
	Reconnected struct{ Node resource.NodeID }
)

func (Voted) input()             {}
func (Waited) input()            {}
func (Refused) input()           {}
func (BudgetSpent) input()       {}
func (EvictionsAnswered) input() {}
func (VictimFreed) input()       {}
func (CommitAnswered) input()    {}
func (FenceAnswered) input()     {}
func (RecordRead) input()        {}
func (ReleaseAsked) input()      {}
func (EvictAsked) input()        {}
func (NodeLost) input()          {}
func (LossAnswered) input()      {}
func (EvictingAnswered) input()  {}
func (VictimClaimed) input()     {}
func (Evicted) input()           {}
func (Displaced) input()         {}
func (PreemptorAborted) input()  {}
func (ReleasingAnswered) input() {}
func (Freed) input()             {}
func (Returned) input()          {}
func (ReleasedAnswered) input()  {}
func (Reconnected) input()       {}

// Effect is an action that the owner carries out.
type Effect interface{ effect() }

type (
	// SendReserve requests the members of a node, to be taken after the victims.
	SendReserve struct{ Node resource.NodeID }
	// SendCommit reports to a node that the record is COMMITTED.
	SendCommit struct {
		Node     resource.NodeID
		Revision resource.Revision
	}
	// SendAbort reports to a node that the record is ABORTED.
	SendAbort struct{ Node resource.NodeID }
	// SendEvict has a node give notice, wait for the grace, stop and free: the record
	// is EVICTING, or RELEASING with a kept grace.
	SendEvict struct {
		Node         resource.NodeID
		GraceSeconds int64
		Reason       string
	}
	// SendRelease orders a node to stop and free: only attached work and commands have
	// the grace.
	SendRelease struct {
		Node         resource.NodeID
		GraceSeconds int64
		Reason       string
	}
	// SendForget reports to a node that the record is terminal.
	SendForget struct{ Node resource.NodeID }
	// WriteEvictions sends the Txn that makes all victims EVICTING; answered
	// by EvictionsAnswered.
	WriteEvictions struct{}
	// WriteCommit sends the commit Txn, which also releases the victims;
	// answered by CommitAnswered.
	WriteCommit struct{}
	// WriteAborted sends the Txn that creates ABORTED; answered by FenceAnswered.
	WriteAborted struct{}
	// ReadRecord starts a linearizable read, repeated until it is answered
	// by RecordRead.
	ReadRecord struct{}
	// WriteLoss writes COMMITTED → COMMITTED without the members on a dead node; answered
	// by LossAnswered.
	WriteLoss struct{ Node resource.NodeID }
	// WriteEvicting writes COMMITTED → EVICTING; answered by EvictingAnswered.
	WriteEvicting struct {
		GraceSeconds int64
		Reason       string
	}
	// WriteReleasing writes COMMITTED or EVICTING → RELEASING; answered by
	// ReleasingAnswered. Evicted: by an eviction, not by its owner's wish. Kept as in
	// ReleaseAsked.
	WriteReleasing struct {
		GraceSeconds int64
		Reason       string
		Evicted      bool
		Kept         bool
	}
	// WriteReleased writes RELEASING → RELEASED; answered by ReleasedAnswered.
	WriteReleased struct{}
	// AckCommitted: the allocation may be acknowledged.
	AckCommitted struct{ Revision resource.Revision }
	// AckLoss: the record goes on without the members on the node.
	AckLoss struct {
		Node     resource.NodeID
		Revision resource.Revision
	}
	// AckEvictions: the victims are EVICTING.
	AckEvictions struct{ Revision resource.Revision }
	// AckEvicting: the eviction may be acknowledged. It may come again.
	AckEvicting struct {
		Revision     resource.Revision
		GraceSeconds int64
		Reason       string
	}
	// AckFreed: this victim has freed all its devices; its preemptor waits for that.
	AckFreed struct{}
	// AckReleasing: the release may be acknowledged, unless Evicted.
	AckReleasing struct {
		Revision resource.Revision
		Evicted  bool
	}
	// AckReleased: the charge has ended; the machine is done.
	AckReleased struct{}
	// AckAborted: this attempt has ended and holds no devices; the unit may be
	// planned again. The machine is done.
	AckAborted struct{}
)

func (SendReserve) effect()    {}
func (SendCommit) effect()     {}
func (SendAbort) effect()      {}
func (SendEvict) effect()      {}
func (SendRelease) effect()    {}
func (SendForget) effect()     {}
func (WriteEvictions) effect() {}
func (WriteCommit) effect()    {}
func (WriteAborted) effect()   {}
func (ReadRecord) effect()     {}
func (WriteLoss) effect()      {}
func (WriteEvicting) effect()  {}
func (WriteReleasing) effect() {}
func (WriteReleased) effect()  {}
func (AckCommitted) effect()   {}
func (AckLoss) effect()        {}
func (AckEvictions) effect()   {}
func (AckEvicting) effect()    {}
func (AckFreed) effect()       {}
func (AckReleasing) effect()   {}
func (AckReleased) effect()    {}
func (AckAborted) effect()     {}
