// Package why turns the facts about one unit into the answer of `muster why`: the
// one reason that binds, whether the unit can ever run, what would help, and the
// nodes grouped by their reasons. It words and orders; it places, charges and
// preempts nothing, and reads no state but its arguments.
//
// Pure: no clock, no I/O.
package why

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// Stage is where a unit is on its way.
type Stage uint8

// The stages. Each but Waiting has a reason of its own; a unit that waits is held
// back by quota or by nodes.
const (
	Waiting   Stage = iota // in the order, and tried
	Storing                // its creation is being written
	Resting                // after refusals by agents, until the backoff ends
	Growing                // it grows a gang whose first unit does not run yet
	Adopting               // an earlier leader's preemption for it is looked into
	Asking                 // agents were asked, and not all have answered
	Nominated              // others make room for it
	Gathering              // too few members of its group have arrived
	Suspended              // its owner keeps it from running
	Blocked                // a rule of its queue holds it back
	Delayed                // its work has failed, until the instant of the next try
	Throttled              // as many members of its job run as may
	Depending              // a dependency of its job has not come true
	Running
	Leaving // it ends, and still holds something
	Ended
)

// Facts is all that is known of a unit. Answer changes none of it.
type Facts struct {
	Object          string // "Allocation" or "Job"
	Namespace, Name string
	Phase           api.Phase // of the object
	Priority        int32
	Policy          string // preemptionPolicy, as it was written
	Request         resource.Request
	Members         int // that the unit needs at once
	// Alternative is the number of the alternative that Request is of, 0 for the
	// specification's own request. Others are the facts about the alternatives of a unit
	// that waits, in order.
	Alternative int
	Others      []*Facts
	// Sets are the members of a unit whose members differ, and Set is the number of the one
	// that Request, Members, Fit, Nodes and Shortages are about; nil for equal members.
	Sets []place.Set
	Set  int
	// Total are the members of the whole object, of which Running run.
	Total, Running int
	Stage          Stage
	Now            time.Time

	// Waits says that a further unit of the object waits: of a job that runs with
	// fewer members than it may have.
	Waits bool
	// Ending is why a unit leaves or has ended, in words; Until when its grace
	// ends, zero where none runs.
	Ending string
	Until  time.Time
	// On are the nodes where the unit runs, or that were asked; Unconfirmed those
	// among them whose agents have not confirmed yet.
	On, Unconfirmed []resource.NodeID
	// Lost are the lost devices that a running unit holds, by node.
	Lost []Lost
	// Group is of Gathering.
	Group Group
	// Block is of Blocked.
	Block Block
	// Refused is of Resting: the attempts in a row that came to nothing, the last
	// node that failed one, and how.
	Refused Refused

	// Retry is of Delayed, and Parallelism of Throttled.
	Retry       Retry
	Parallelism int
	// Awaits is of Depending: the conditions that have not come true, in words.
	Awaits []string

	Queue       *api.QueuePlace
	Quota       []resource.Reason
	QuotaLevel  string // QuotaNamespace, QuotaTree, QuotaAbsent or QuotaInUse
	Borrowers   []Work // of QuotaInUse: they use the quota that is the unit's own
	Victims     []Work // of Nominated
	Noticed     time.Time
	Claims      bool   // the victims use quota that is the unit's own
	NoVictims   string // why nobody gives way, "" where that was not asked
	TooWide     string // why the place that there is cannot be committed
	Attempts    int
	LastAttempt time.Time

	// Elected is when the leader's term began, and Missing counts the registered
	// nodes to which no stream is open yet.
	Elected time.Time
	Missing int

	// Fit are the members that would fit now, and Nodes the answers of all nodes;
	// the reasons of a node are those of one member more than fits. Shortages are
	// the totals over the nodes that may take the unit.
	Fit       int
	Nodes     []api.NodeExplanation
	Domain    *resource.Reason // why no domain has room though the nodes have, nil where that is no reason
	Shortages []resource.Reason

	// DryRun: the unit was not submitted. Placement is the place that it would
	// have, now or once others have given way.
	DryRun    bool
	Placement []api.MemberNode

	Outlook *api.Outlook
	Help    []api.Help
}

// Lost are devices of a node that are gone while a unit holds them.
type Lost struct {
	Node  resource.NodeID
	UUIDs []string
}

// Refused is how attempts failed in a row.
type Refused struct {
	Times int
	Node  resource.NodeID // "" where none is known
	Fault string
	Until time.Time // of the backoff
}

// Retry is the next try of work that has failed.
type Retry struct {
	Failure       string // in words
	Number, Limit int    // of the retries of the job
	At            time.Time
}

// Group is a group of allocations that start together.
type Group struct {
	ID string
	// Arrived of MinMembers members have arrived.
	Arrived, MinMembers int
	// StartBy is the instant by which they have to start, zero for none.
	StartBy time.Time
}

// Block is the rule of a queue that holds a unit back.
type Block struct {
	// Code is QueueHeld, QueueStrict or QueueFull.
	Code, Queue string
	// Head is ahead of the unit, of QueueStrict.
	Head Work
	// Of QueueFull: Needs members start together, Running of Max hold something.
	Needs, Running, Max int
}

// Work is a unit of somebody, as an answer about another unit may mention it.
type Work struct {
	Unit      string // "namespace/alloc|job/name/n"
	Namespace string
	Priority  int32
	Members   int
	GPUs      resource.Milli
	Freed     bool
}

// Viewer is the caller who asks. Operators see every name; everybody else sees the
// names of work in namespaces of the own tenant, and of other work its number,
// GPUs and priority.
type Viewer struct {
	Operator bool
	// Owns reports whether a namespace belongs to the viewer's tenant. It is not
	// called for operators.
	Owns func(namespace string) bool
}

// Sees reports whether the viewer sees the names of the work in a namespace.
func (v Viewer) Sees(namespace string) bool {
	return v.Operator || v.Owns != nil && v.Owns(namespace)
}

// The codes of an answer's reason, beside those of package resource.
const (
	IsRunning      = "Running"
	IsPartial      = "PartlyRunning" // it runs with fewer members than it may have
	IsHoldingLost  = "DeviceLost"    // it runs and holds a device that is gone
	IsLeaving      = "Terminating"
	IsEnded        = "Ended"
	IsStoring      = "Storing"
	IsResting      = "Backoff"
	IsGrowing      = "AwaitsGang"
	IsSuspended    = "Suspended"
	IsGathering    = "WaitingForGang"
	QueueHeld      = "QueueOnHold"
	QueueStrict    = "BehindInQueue" // of a queue in strict order
	QueueFull      = "QueueFull"
	IsDelayed      = "RestartBackOff"
	IsThrottled    = "ParallelismReached"
	IsDepending    = "WaitingForDependency"
	IsAdopting     = "AdoptingPreemption"
	IsAsking       = "AwaitsVotes"
	IsNominated    = "AwaitsVictims"
	QuotaNamespace = "QuotaOfNamespace"
	QuotaTree      = "QuotaOfTree"
	QuotaAbsent    = "QuotaTreeAbsent"
	QuotaInUse     = "QuotaInUse" // by borrowers, who do not give way now
	NoNodes        = "NoNodes"
	JustElected    = "JustElected"
	NoNodeAllowed  = "NoNodeAllowed" // each node refuses for more than one reason
	AboutToStart   = "AboutToStart"
	TooManyNodes   = "TransactionTooLarge"
	RoomIsComing   = "AwaitsLeaving"
)
