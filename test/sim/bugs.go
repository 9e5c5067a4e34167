package sim

// Bug is a mistake that the simulation can make in the code around the real
// machines, to show that its checks would find it.
type Bug int

// The bugs. Most are mutants of the protocol's model (PROTOCOL.md section 9).
const (
	NoBug Bug = iota
	// CommitWithoutIncarnation: the commit Txn does not compare identities.
	CommitWithoutIncarnation
	// CompareIdentityReadAnew: it compares the identity as it is now, not the
	// one that said Yes.
	CompareIdentityReadAnew
	// AnswerBeforeRegistering: a new incarnation promises at once.
	AnswerBeforeRegistering
	// RegisterWithoutReading: it does not ask what the store lists.
	RegisterWithoutReading
	// ReadBeforeRegistering: it asks before it registers.
	ReadBeforeRegistering
	// FreedBeforeDurable: a tombstone is not synced before Freed is answered.
	FreedBeforeDurable
	// FreedBeforeStopped: Freed is answered while the workload runs.
	FreedBeforeStopped
	// UnknownIsAborted: a commit without an answer is taken for failed.
	UnknownIsAborted
	// EpochNotCompared: a leader's Txns do not compare its election.
	EpochNotCompared
	// SumBeforeElection: a new leader reads the state from before its election.
	SumBeforeElection
	// TombstoneForgottenEarly: the leader lets a tombstone go when it hears
	// Freed, not when the record has ended.
	TombstoneForgottenEarly
	// FreeWithoutFencing: an expired reservation is freed without a fence.
	FreeWithoutFencing
	// AckBeforeCommit: the client is told before the record is durable.
	AckBeforeCommit
	// ReleasedBeforeAllFreed: the first Freed ends the charge.
	ReleasedBeforeAllFreed
	// CollectInDoubt: an ABORTED record is deleted while its commit may land.
	CollectInDoubt
	// CommitOverRecord: the commit Txn does not compare with "absent".
	CommitOverRecord
	// RestoreUnnoticed: an agent believes a store that has gone back.
	RestoreUnnoticed
	// EvictForDecided: the Txn that evicts does not compare that the preemptor
	// has no record.
	EvictForDecided
	// EvictWithoutIncarnations: it does not compare identities.
	EvictWithoutIncarnations
	// SwapBeforeFreed: the preemptor commits once its victims have their notice.
	SwapBeforeFreed
	// SwapKeepsVictims: the commit of a preemptor leaves its victims' records.
	SwapKeepsVictims
	// GraceCut: an agent gives a victim no grace.
	GraceCut
	// CollectEvictionInDoubt: an ABORTED preemptor is deleted while its Txn that
	// evicts may land.
	CollectEvictionInDoubt
	// VictimsNotRead: an eviction without an answer is taken for failed.
	VictimsNotRead
	// AdoptionForgotten: a new leader does not see that victims leave for a
	// preemptor.
	AdoptionForgotten
	// CollectNamed: an ABORTED preemptor is deleted while a victim's record names
	// it.
	CollectNamed
	// FencedIsDead: a node that is fenced counts as dead.
	FencedIsDead
	// EndIgnoresFence: the Txn to RELEASED does not compare that the nodes which
	// count as freed still are dead.
	EndIgnoresFence
	// CollectUnheard: a record is deleted though a dead node has not told of
	// itself.
	CollectUnheard
	// DeathRetried: after a conflict the death is confirmed of whoever is
	// registered by then.
	DeathRetried
	// DeathOutlived: a node that was fenced anew after it was back still counts as
	// dead.
	DeathOutlived
	// OrphansUnseen: what runs on free devices is not told to the ledger.
	OrphansUnseen
	// EndedInQuarantine: what is held or evicted is buried when a quarantine ends, before
	// the registration.
	EndedInQuarantine
	// VictimsUnseen: the ledger is not told what runs where a victim has stopped.
	VictimsUnseen
	BugCount
)

var bugNames = [...]string{
	"none", "commit without the incarnation compare", "compare the identity read anew", "answer before registering",
	"register without reading", "read before registering", "Freed before it is durable", "Freed before the workload has stopped",
	"unknown outcome taken for aborted", "epoch not compared", "sum taken before the election",
	"tombstone forgotten early", "reservation freed without a fence", "acknowledged before the commit", "charge ended before all freed",
	"record collected while its commit is in doubt", "commit without \"record absent\"",
	"restored store not noticed",
	"evicted for a decided preemptor", "evicted without the incarnation compare", "swapped before the victims are freed",
	"swapped without the victims", "grace cut short",
	"record collected while its eviction is in doubt", "unknown eviction taken for failed",
	"preemption forgotten at an election", "record collected that a victim names",
	"fenced taken for dead", "ended for a node that is back", "record collected before a dead node is heard",
	"death confirmed of who is back", "a death outlives a new fence",
	"free devices handed out that something runs on",
	"a grant ends before the registration",
	"a preemptor takes a busy device",
}

// needs are the parts that a run with the bug has.
func (b Bug) needs() Parts {
	switch {
	case b == RestoreUnnoticed:
		return Restores
	case b == EndedInQuarantine:
		return Restores | Evictions
	case b == VictimsUnseen:
		return Stragglers | Evictions
	case b >= OrphansUnseen:
		return Stragglers
	case b >= FencedIsDead:
		return Fences
	case b >= EvictForDecided:
		return Evictions
	}
	return 0
}

// String says what the mistake is.
func (b Bug) String() string { return bugNames[b] }
