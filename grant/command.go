package grant

import (
	"time"

	"github.com/musterd/muster/resource"
)

// Command is a message of the leader to an agent. Every command may be repeated
// any number of times; the answer for a known transaction is its present state.
type Command interface{ command() }

type (
	// Reserve requests all members of a transaction that go to one host, all or
	// nothing.
	Reserve struct {
		Tx      resource.TxID
		Unit    resource.UnitUID
		Epoch   resource.Epoch
		Members []MemberRequest // ascending by Index
		// TTL is how long the agent keeps the promise before it requests the
		// outcome: > 0.
		TTL time.Duration
		// After names grants to wait for; a grant that the agent does not have has ended.
		After []resource.TxID
		// Name is the unit's, "namespace/alloc|job/name/n", and Tenant whose it
		// is. They are kept for people, and for a store that has lost the record.
		Name   string
		Tenant resource.TenantID
		// UnitMembers is how many members the unit has, on all hosts: greater than
		// each Index, or 0 where the number is not given.
		UnitMembers int
		// Registered is the revision of the host's registration by which the
		// leader knows the agent. An agent that is registered at another revision
		// refuses a transaction that it does not have. 0: not given.
		Registered resource.Revision
	}
	// Commit reports that the record is COMMITTED at Revision.
	Commit struct {
		Tx       resource.TxID
		Epoch    resource.Epoch
		Revision resource.Revision
	}
	// Abort reports that the record is ABORTED.
	Abort struct {
		Tx    resource.TxID
		Epoch resource.Epoch
	}
	// Release reports that the record is RELEASING: stop, free, answer Freed.
	Release struct {
		Tx     resource.TxID
		Epoch  resource.Epoch
		Grace  time.Duration // >= 0
		Reason string
	}
	// Evict reports that the record is EVICTING: give notice, let the grace run,
	// stop, answer Freed. By is the preemptor, or "".
	Evict struct {
		Tx    resource.TxID
		Epoch resource.Epoch
		Grace time.Duration // >= 0
		By    resource.TxID
	}
	// Forget reports that the record is terminal: a tombstone may be removed.
	Forget struct{ Tx resource.TxID }
	// Resync requests the whole occupancy.
	Resync struct{}
	// Cordon sets whether the host takes new work.
	Cordon struct{ Cordoned bool }
	// Reconcile ends a quarantine: from now on the agent's grants follow the
	// records of the store at Revision, under the leader of Epoch. Adopted transactions
	// have new records there. The agent registers again, and promises nothing before;
	// Released transactions that are not listed then are stopped with Grace.
	Reconcile struct {
		Epoch             resource.Epoch
		Revision          resource.Revision
		Adopted, Released []resource.TxID
		Grace             time.Duration // >= 0
	}
)

func (Reserve) command()   {}
func (Commit) command()    {}
func (Abort) command()     {}
func (Release) command()   {}
func (Evict) command()     {}
func (Forget) command()    {}
func (Resync) command()    {}
func (Cordon) command()    {}
func (Reconcile) command() {}

// LedgerCommand marks the commands that an agent's ledger decides: all but Resync.
func (Reserve) LedgerCommand()   {}
func (Commit) LedgerCommand()    {}
func (Abort) LedgerCommand()     {}
func (Release) LedgerCommand()   {}
func (Evict) LedgerCommand()     {}
func (Forget) LedgerCommand()    {}
func (Cordon) LedgerCommand()    {}
func (Reconcile) LedgerCommand() {}
