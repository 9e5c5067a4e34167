package txn

import "github.com/musterd/muster/resource"

// Input is something that happened. Every input may come at any time, late,
// doubled or never; one that does not apply changes nothing.
type Input interface{ input() }

// Outcome is the answer to a write.
type Outcome uint8

const (
	// Landed: the write is durable.
	Landed Outcome = iota
	// Conflict: a compare failed, nothing was written.
	Conflict
	// Unknown: it may have landed, or may yet.
	Unknown
)

// RecordState is what the store holds for a transaction.
type RecordState uint8

// The record's states; RecordAbsent means undecided, not aborted.
const (
	RecordAbsent RecordState = iota
	RecordCommitted
	RecordReleasing
	RecordReleased
	RecordAborted
)

type (
	// Voted: a node said Yes.
	Voted struct {
		Node resource.NodeID
		Vote Vote
	}
	// Refused: a node said No.
	Refused struct {
		Node    resource.NodeID
		Reasons []resource.Reason
	}
	// BudgetSpent: the time for collecting votes is over.
	BudgetSpent struct{}
	// CommitAnswered: the commit Txn's outcome.
	CommitAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// FenceAnswered: the outcome of the Txn that creates ABORTED.
	FenceAnswered struct{ Outcome Outcome }
	// RecordRead: the record, read linearizably.
	RecordRead struct {
		State RecordState
		// Revision is that of the record's latest write, or of the store at the
		// read if the record is absent.
		Revision resource.Revision
	}
	// ReleaseAsked: the owner of the allocation wants it ended.
	ReleaseAsked struct {
		GraceSeconds int64
		Reason       string
	}
	// ReleasingAnswered: the outcome of the Txn to RELEASING.
	ReleasingAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// Freed: a node's devices are free and will stay so.
	Freed struct{ Node resource.NodeID }
	// ReleasedAnswered: the outcome of the Txn to RELEASED.
	ReleasedAnswered struct {
		Outcome  Outcome
		Revision resource.Revision
	}
	// Reconnected: the stream to a node is new; what it was told may be lost.
	Reconnected struct{ Node resource.NodeID }
)

func (Voted) input()             {}
func (Refused) input()           {}
func (BudgetSpent) input()       {}
func (CommitAnswered) input()    {}
func (FenceAnswered) input()     {}
func (RecordRead) input()        {}
func (ReleaseAsked) input()      {}
func (ReleasingAnswered) input() {}
func (Freed) input()             {}
func (ReleasedAnswered) input()  {}
func (Reconnected) input()       {}

// Effect is something for the owner to do.
type Effect interface{ effect() }

type (
	// SendReserve asks a node for its members.
	SendReserve struct{ Node resource.NodeID }
	// SendCommit tells a node that the record is COMMITTED.
	SendCommit struct {
		Node     resource.NodeID
		Revision resource.Revision
	}
	// SendAbort tells a node that the record is ABORTED.
	SendAbort struct{ Node resource.NodeID }
	// SendRelease tells a node to stop and free.
	SendRelease struct {
		Node         resource.NodeID
		GraceSeconds int64
		Reason       string
	}
	// SendForget tells a node that the record is terminal.
	SendForget struct{ Node resource.NodeID }
	// WriteCommit asks for the commit Txn; answered by CommitAnswered.
	WriteCommit struct{}
	// WriteAborted asks for the Txn that creates ABORTED; FenceAnswered.
	WriteAborted struct{}
	// ReadRecord asks for a linearizable read, repeated until it is answered
	// by RecordRead.
	ReadRecord struct{}
	// WriteReleasing asks for COMMITTED → RELEASING; ReleasingAnswered.
	WriteReleasing struct {
		GraceSeconds int64
		Reason       string
	}
	// WriteReleased asks for RELEASING → RELEASED; ReleasedAnswered.
	WriteReleased struct{}
	// AckCommitted: the allocation may be acknowledged.
	AckCommitted struct{ Revision resource.Revision }
	// AckReleasing: the release may be acknowledged.
	AckReleasing struct{ Revision resource.Revision }
	// AckReleased: the charge has ended; the machine is done.
	AckReleased struct{}
	// AckAborted: this attempt is over and holds nothing; the unit may be
	// planned anew. The machine is done.
	AckAborted struct{}
)

func (SendReserve) effect()    {}
func (SendCommit) effect()     {}
func (SendAbort) effect()      {}
func (SendRelease) effect()    {}
func (SendForget) effect()     {}
func (WriteCommit) effect()    {}
func (WriteAborted) effect()   {}
func (ReadRecord) effect()     {}
func (WriteReleasing) effect() {}
func (WriteReleased) effect()  {}
func (AckCommitted) effect()   {}
func (AckReleasing) effect()   {}
func (AckReleased) effect()    {}
func (AckAborted) effect()     {}
