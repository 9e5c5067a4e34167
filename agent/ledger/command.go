package ledger

import (
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Limits of a command; a command that exceeds them is refused as
// InvalidRequest. They keep the events of one decision well below a journal
// payload.
const (
	MaxMembers = 1024 // of one transaction on one host
	MaxVictims = 1024
	MaxText    = 256 // bytes of a transaction's, unit's or device's identifier, of a reason or a tenant
	MaxName    = 512 // bytes of a unit's name
	// MaxUnitMembers is the most members of one unit, on all hosts.
	MaxUnitMembers = 1 << 20
	// MaxGrants is the most grants, tombstones included, with which new work is
	// taken: all of them fit into one message to the leader.
	MaxGrants = 2048
)

// Command is an input that the ledger decides: the leader's commands of package
// grant but Resync, and the owner's below. All commands may be repeated any
// number of times; the answer for a known transaction is its present state. The
// leader's are refused until this incarnation has registered and while the
// agent is in quarantine, and those with an Epoch also when it is older than
// the highest one seen.
type Command interface{ LedgerCommand() }

// Commands of the owner. Their replies may be sent on only while Registered.
type (
	// Start is the first command after a replay.
	Start struct{ Incarnation resource.Incarnation }
	// Registered reports that this incarnation is registered at Revision, and
	// the records that the store's index of this node listed after that.
	Registered struct {
		Revision resource.Revision
		// Store is the store's revision at the registration, or at the read
		// after it if that is lower; 0 where it is unknown. Heard is the value
		// of Ledger.Heard from before the registration: a Store below it has
		// gone back, and the agent goes into quarantine.
		Store, Heard resource.Revision
		// Lost: by the coordinator's finding the store has lost facts known to this
		// agent, or was restored since the agent's last registration.
		Lost bool
		// Marks are the store's; the zero value of an older coordinator is unknown.
		Marks   Marks
		Records []Record
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
		// Asked is the grant's state when the record was asked for. If the
		// state is another by now, the answer may be too old to be alarmed by.
		Asked grant.State
	}
	// Stopped reports that the transaction's workload has ended. Busy lists the
	// devices, GPUs and MIG instances by UUID, on which a process was last seen
	// all the same. Where a Waiting grant would become Reserved with one of
	// them, Stopped has no effect and has to be repeated.
	Stopped struct {
		Tx   resource.TxID
		Busy []string
	}
	// SetHealth sets a device's health; Device is its index. Reason is the
	// cause in plain words if the health is not OK; of an OK device it is not
	// kept.
	SetHealth struct {
		Device int
		Health devices.Health
		Reason string
	}
	// Observed lists the GPUs and MIG instances, by UUID, on which a process
	// that no grant explains may run, and those without any process; of others
	// nothing is known. A device in both lists is busy. Before the registration
	// and in quarantine Observed has no effect: the owner repeats it after the
	// registration, in the same group, so that nothing is promised in between.
	Observed struct{ Busy, Idle []string }
	// Pool lists the GPUs and MIG instances, by UUID, that the kubelet may hand out.
	// Listed devices join the pool once they are wholly free; devices that are not
	// listed leave the pool once no container has them. Before the registration and
	// in quarantine Pool has no effect, as Observed.
	Pool struct{ Devices []string }
	// Lend says that the kubelet gives devices of the pool to a container: all of
	// them, or none where one is not in the pool. Lend needs no registration: the
	// devices are this host's own.
	Lend struct{ Devices []string }
	// Return says that no container has the devices any more. Busy lists the devices
	// on which a process was last seen: these stay lent.
	Return struct{ Devices, Busy []string }
	// Tick asks for the due transactions. It changes nothing.
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
func (Pool) LedgerCommand()       {}
func (Lend) LedgerCommand()       {}
func (Return) LedgerCommand()     {}
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
	// Alarms are violations of the protocol, in plain words, for an operator.
	Alarms []string
}

// Refused reports whether the answer is No.
func (r Reply) Refused() bool { return len(r.Reasons) > 0 }
