package ledger

import (
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Event is a change of the ledger; the journal keeps events.
type Event interface{ event() }

type (
	// Started: an agent runs under another incarnation than before.
	Started struct {
		Incarnation resource.Incarnation
		At          time.Time
		// Heard and Forgotten are those of the ledger, for a journal that begins
		// here. They never go down.
		Heard     resource.Revision
		Forgotten Attempt
	}
	// Enrolled: the present incarnation is registered, and the store's records
	// of this node have been applied. Store was the store's revision.
	Enrolled struct{ Revision, Store resource.Revision }
	// EpochRaised: requests of older epochs take no effect from now on.
	EpochRaised struct{ Epoch resource.Epoch }
	// Granted: a grant appears, in any state.
	Granted struct{ Grant Grant }
	// Committed: Reserved becomes Held, or a Held grant's record moved on. An
	// Evicting or Stopping grant becomes Held again: the store it is registered
	// in has lost the change that ended it.
	Committed struct {
		Tx       resource.TxID
		Revision resource.Revision
	}
	// Renewed: a Waiting or Reserved grant is adopted by a leader, with a new
	// deadline.
	Renewed struct {
		Tx       resource.TxID
		Epoch    resource.Epoch
		Deadline time.Time
	}
	// Promoted: Waiting becomes Reserved.
	Promoted struct {
		Tx       resource.TxID
		Deadline time.Time
	}
	// Noticed: Reserved or Held becomes Evicting; of an Evicting grant the
	// grace is extended. Revision, here and below, is that of the record which
	// it follows from, 0 where none was read.
	Noticed struct {
		Tx, By   resource.TxID
		Since    time.Time
		Deadline time.Time
		Grace    time.Duration
		Revision resource.Revision
	}
	// StopBegun: Reserved, Held or Evicting becomes Stopping.
	StopBegun struct {
		Tx       resource.TxID
		Since    time.Time
		Deadline time.Time
		Grace    time.Duration
		Reason   string
		Revision resource.Revision
	}
	// Buried: the grant becomes a Tombstone and its devices free. Unknown
	// transactions get one too.
	Buried struct {
		Tx       resource.TxID
		Revision resource.Revision
	}
	// Dropped: a Waiting, Reserved or Tombstone grant disappears, or an orphan.
	Dropped struct {
		Tx       resource.TxID
		Revision resource.Revision
	}
	// CordonSet: the host takes new work, or does not.
	CordonSet struct{ Cordoned bool }
	// KubeletPoolSet: the operators' part of the kubelet's pool is another one.
	KubeletPoolSet struct{ Add, Remove []string }
	// Quarantined: the store was at revision Store when this agent had seen
	// revision Heard. Nothing is promised, stopped, adopted or freed from now
	// on.
	Quarantined struct{ Heard, Store resource.Revision }
	// Reconciled: the quarantine is over. The highest revision and epoch seen
	// begin anew, and so does the registration. Released grants that it does
	// not list are stopped then, with Grace.
	Reconciled struct {
		Epoch    resource.Epoch
		Revision resource.Revision
		Released []resource.TxID // ascending
		Grace    time.Duration
	}
	// Marked: the store had this term, and the agent has accepted this restoration.
	Marked Marks
	// HealthChanged: a device is in another state, or for another reason. Of
	// a device that is not in the inventory it is kept until it is back.
	HealthChanged struct {
		UUID   string
		Health devices.Health
		Reason string
	}
)

func (Started) event()        {}
func (Enrolled) event()       {}
func (EpochRaised) event()    {}
func (Granted) event()        {}
func (Committed) event()      {}
func (Renewed) event()        {}
func (Promoted) event()       {}
func (Noticed) event()        {}
func (StopBegun) event()      {}
func (Buried) event()         {}
func (Dropped) event()        {}
func (CordonSet) event()      {}
func (KubeletPoolSet) event() {}
func (HealthChanged) event()  {}
func (Quarantined) event()    {}
func (Reconciled) event()     {}
func (Marked) event()         {}
