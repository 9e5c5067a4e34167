package ledger

import (
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Limits of a command; what exceeds them is refused as InvalidRequest. They
// keep the events of one decision well below a journal payload.
const (
	MaxMembers = 1024 // of one transaction on one host
	MaxVictims = 1024
	MaxText    = 256 // bytes of a transaction's, unit's or device's identifier, of a reason or a tenant
	MaxName    = 512 // bytes of a unit's name
	// MaxGrants is the most grants, tombstones included, with which new work is
	// taken: all of them fit into one message to the leader.
	MaxGrants = 2048
)

// Command is what the ledger decides: the leader's commands of package grant
// but Resync, and the owner's below. All commands may be repeated any number of
// times; the answer for a known transaction is its present state. The leader's
// are refused until this incarnation has registered and while the agent is in
// quarantine, and those with an Epoch also when it is older than the highest
// one seen.
type Command interface{ LedgerCommand() }

// Commands of the owner. Their replies may be sent on only while Registered.
type (
	// Start is the first command after a replay.
	Start struct{ Incarnation resource.Incarnation }
	// Registered says that this incarnation is registered at Revision, and
	// what the store's index of this node listed after that.
	Registered struct {
		Revision resource.Revision
		// Store is the store's revision at the registration, or at the read after
		// it if that is lower; 0 where the store does not tell. Heard is what
		// Ledger.Heard was before any of it was asked for: a Store below it has
		// gone back, and the agent goes into quarantine.
		Store, Heard resource.Revision
		Records      []Record
	}
	// NewEpoch announces a leader.
	NewEpoch struct{ Epoch resource.Epoch }
	// Resolved is the record as a linearizable read saw it. RecordAbsent is
	// an answer that did not fence: nothing follows from it.
	Resolved struct {
		Tx       resource.TxID
		State    grant.RecordState
		Revision resource.Revision
		Grace    time.Duration
		// Asked is what the grant was when the record was asked for. If it is
		// something else by now, the answer may be too old to be alarmed by.
		Asked grant.State
	}
	// Stopped says that nothing that was started for the transaction runs any
	// more. On the devices Busy, GPUs and MIG instances by UUID, something was
	// last seen to run all the same. Where a Waiting grant would become Reserved
	// with one of them, nothing follows: it is to be said again.
	Stopped struct {
		Tx   resource.TxID
		Busy []string
	}
	// SetHealth sets a device's health; Device is its index. Reason says in
	// plain words why it is not OK; of an OK device it is not kept.
	SetHealth struct {
		Device int
		Health devices.Health
		Reason string
	}
	// Observed says on which GPUs and MIG instances, by UUID, something that no
	// grant explains may run, and on which nothing does; of others it is not
	// known. One in both lists is busy. Before the registration and in quarantine
	// nothing follows: the owner says it again after the registration, in the same
	// group, so that nothing is promised in between.
	Observed struct{ Busy, Idle []string }
	// Tick asks what is due. It changes nothing.
	Tick struct{}
)

// LedgerCommand marks the commands that a ledger decides.
func (Start) LedgerCommand()      {}
func (Registered) LedgerCommand() {}
func (NewEpoch) LedgerCommand()   {}
func (Resolved) LedgerCommand()   {}
func (Stopped) LedgerCommand()    {}
func (SetHealth) LedgerCommand()  {}
func (Observed) LedgerCommand()   {}
func (Tick) LedgerCommand()       {}

// Reply is the answer to a command. Its slices are never changed.
type Reply struct {
	// Tx is the transaction, "" where the command names none.
	Tx resource.TxID
	// State is that of Tx after the events: Reserved and Held are the vote
	// Yes, Tombstone is Freed.
	State grant.State
	// Reasons are why the command was refused: the vote No. Empty means that
	// it was not.
	Reasons []resource.Reason
	// Members are those of Tx, with their assignments.
	Members []Holding
	// Incarnation and Registered vouch for the answer.
	Incarnation resource.Incarnation
	Registered  resource.Revision
	// Resolve lists transactions whose record the owner is to resolve: with a
	// fence where they are Waiting or Reserved here, by reading otherwise.
	Resolve []resource.TxID
	// Stop lists transactions whose grace is over: stop them by force.
	Stop []resource.TxID
	// Woken lists Waiting grants that became Reserved: they answer Yes now.
	Woken []resource.TxID
	// Alarms say what must not happen, in plain words, for an operator.
	Alarms []string
}

// Refused reports whether the answer is No.
func (r Reply) Refused() bool { return len(r.Reasons) > 0 }
