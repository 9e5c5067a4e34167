package work

import (
	"cmp"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Unit is the smallest all-or-nothing set of members, as the leader knows it. Its
// phase changes in unit_phase.go; the reasons of the wait and the charges, in unit_wait.go.
//
// Invariant: see check in unit_phase.go.
type Unit struct {
	Path   string // "namespace/alloc|job/name/n"
	Record record.Unit
	Stored resource.Revision // mod revision of the unit's key
	// Queued: the order key is in the store.
	Queued bool
	Key    queue.Key

	// Forms are the requests that would do, in the order in which they are tried, nil where
	// there is one alone. number is the number among them of the form that the unit has.
	// See form.go.
	Forms  []form.Form
	Number int
	form.Form
	// Groups are the groups of the specification. charges are the unit's charges
	// when it is placed, by the bindings of that generation: its namespace first,
	// then trees in ascending order.
	Groups  api.QuotaDemand
	Policy  string // preemptionPolicy, as it was written
	Charges []record.Charge
	Bound   uint64
	// Enrolled: the trees know the unit by its path.
	Enrolled bool
	// exactly one of these is set: the object that the unit belongs to.
	Allocation *api.Allocation
	Job        *Job

	// Group is the group of an allocation that waits for others, nil for none.
	Group *Group

	// QueueNews notes changes of the unit's part in its queue; nil before a leader
	// knows the unit.
	QueueNews *queueNews

	// Life is the unit's phase in the leader, the request to end the unit and the Txn under
	// way; phase is the phase that clients see.
	Life Life

	// Create holds the further writes of the Txn that first stores the unit; nil
	// once the unit is stored.
	Create *Creation
	// Attempt is that of the phases trying, live and closing.
	Attempt *Attempt
	// Adopting is the preemption that an earlier leader began for the unit, in the phase
	// adopting alone: the leader goes on with the preemption or gives it up.
	Adopting resource.TxID

	// Hold is why the unit is not tried, beside its owner's wish.
	Hold hold
	// Told is why the unit waits as the store has it.
	Told Told
	// Fate is the reason why the unit can never run, as far as that is known.
	Fate Fate
	// Evidence is why the unit waited when its class last said; the class has newer
	// evidence where the unit may be tried.
	Evidence *sched.Evidence
	// Refusals in a row, for the backoff between attempts; rested is when the
	// backoff ends.
	Refusals int
	Rested   time.Time
	// Avoid counts, by node, the attempts since the last commit that failed there.
	Avoid       map[resource.NodeID]int
	Failed      Failure // the last one since the last commit
	Attempts    int
	LastAttempt time.Time

	// counted is the unit's part in the use of its namespace, as the census has it.
	counted count.Use

	// Err is why the unit came to nothing before it was stored.
	Err *api.Status
}

// Failure is how an attempt failed on a node.
type Failure struct {
	Node  resource.NodeID
	Fault breaker.Fault
	Said  string // the agent's reasons, where the agent refused
}

// String says how an attempt failed on the node.
func (f Failure) String() string {
	if f.Said != "" {
		return f.Fault.Sentence() + ": " + f.Said
	}
	return f.Fault.Sentence()
}

// Creation holds the further writes of a unit's first Txn.
type Creation struct {
	Ops      []record.Op
	Compares []record.Compare
	Request  record.RequestDigest // in leader.requests, or zero
	Started  time.Time
}

// Add adds a write, and what has to hold for the write.
func (c *Creation) Add(compare record.Compare, op record.Op) {
	c.Compares, c.Ops = append(c.Compares, compare), append(c.Ops, op)
}

// Answer adds the write by which a repetition of the request finds its answer.
func (c *Creation) Answer(request record.RequestDigest, op record.Op) {
	c.Request, c.Ops = request, append(c.Ops, op)
}

// SetAllocation sets the allocation that the unit belongs to.
func (u *Unit) SetAllocation(doc *api.Allocation) {
	u.Allocation = doc
	u.SetLabels(doc.Metadata.Labels)
}

// SetLabels takes over the labels by which rules of other units select the unit.
func (u *Unit) SetLabels(labels map[string]string) {
	subject := *u.Demand.Subject
	if subject.Labels = constraint.LabelsOf(labels); subject.Labels.Text() != u.Demand.Subject.Labels.Text() {
		u.Demand.Subject = &subject
		for i := range u.Forms {
			u.Forms[i].Demand.Subject = &subject
		}
	}
}

// SetJob sets the job that the unit belongs to.
func (u *Unit) SetJob(j *Job) { u.Job = j }

// SetSequence gives the unit its place in the order.
func (u *Unit) SetSequence(s record.Sequence) {
	u.Record.Sequence = s
	u.Key = queue.Key{Priority: u.Record.Priority, Epoch: s.Epoch, Counter: s.Counter, Path: u.Path}
}

// SetPriority gives the unit another priority, which changes its place in the order.
func (u *Unit) SetPriority(p int32) { u.Record.Priority, u.Key.Priority = p, p }

// enter has the unit take part: queueNews learns of the changes of the unit's part, and a unit
// without a preemptionPolicy has the default.
func (u *Unit) enter(n *queueNews, policy string) {
	u.QueueNews, u.Policy = n, cmp.Or(u.Policy, policy)
	n.Note(u.Path)
}

// SetCreation sets the further writes of the Txn that first stores the unit.
func (u *Unit) SetCreation(c *Creation) { u.Create = c }

// MemberName is how a member appears among allocations.
func (u *Unit) MemberName(index int) string {
	if u.Job == nil {
		return u.Record.Name
	}
	return MemberOfJob(u.Record.Name, u.Record.FirstMember+index)
}

// MemberOfJob is how a member of a job appears among allocations.
func MemberOfJob(job string, index int) string { return fmt.Sprintf("%s-%d", job, index) }

// Phase is the phase of the unit's members that clients see.
func (u *Unit) Phase() api.Phase { return api.Phase(u.Record.Phase) }

// Grows reports whether the unit is to grow a gang that does not run yet.
func (u *Unit) Grows() bool {
	return u.Job != nil && u.Job.Gang && u.Record.N > 0 && u.Job.Units[0].Phase() != api.Running
}

// Waiting reports whether the unit still waits for its place.
func (u *Unit) Waiting() bool { return u.Phase() == api.Pending }

// KeepLost takes over that the store has the unit without some members at rev.
func (u *Unit) KeepLost(lost []int, rev resource.Revision) { u.Record.Lost, u.Stored = lost, rev }
