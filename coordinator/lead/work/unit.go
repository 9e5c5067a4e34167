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
	"github.com/musterd/muster/resource"
)

// Unit is the smallest all-or-nothing set of members, as the leader knows the set. The phase
// changes in unit_phase.go, the charges in unit_charge.go; wait.go has the memory of the wait.
//
// Invariant: see Check in unit_phase.go.
type Unit struct {
	Path   string // "namespace/alloc|job/name/n"
	Record record.Unit
	Stored resource.Revision // mod revision of the unit's key
	// Queued: the order key is in the store.
	Queued bool
	Key    queue.Key

	// Forms are the requests of the specification and of the alternatives, in the order of the
	// tries; nil without alternatives. Number is the index in Forms of the unit's present form.
	// See unit_form.go.
	Forms  []form.Form
	Number int
	form.Form
	// Groups are the groups of the specification. Charges are the unit's charges when placed,
	// by the bindings of the generation Bound: the namespace first, then trees in ascending
	// order.
	Groups  api.QuotaDemand
	Policy  string // preemptionPolicy: as written, or by default once the unit is in a register
	Charges []record.Charge
	Bound   uint64
	// Enrolled: the trees know the unit by the path.
	Enrolled bool
	// Allocation or Job is set, never both: the object of the unit.
	Allocation *api.Allocation
	Job        *Job

	// Group is the group of an allocation with a groupId, nil for none.
	Group *Group

	// QueueNews notes changes of the unit's part in the queue; nil before a leader knows the
	// unit.
	QueueNews *QueueNews

	// Life is the unit's phase in the leader, the request to end the unit and the Txn under
	// way; the method Phase is the phase for clients.
	Life Life

	// Create holds the further writes of the unit's first Txn; nil once the unit is stored.
	Create *Creation
	// Attempt is the attempt of the phases Trying, Live and Closing.
	Attempt *Attempt
	// Adopting is the preemption begun for the unit by an earlier leader, in the phase Adopting
	// alone: the leader goes on with the preemption or gives the preemption up.
	Adopting resource.TxID

	// Hold is the reason why the unit is not tried, apart from the owner's wish.
	Hold Hold
	// Wait is how the unit waits, and the tries so far.
	Wait Wait
	// counted is the unit's part in the use of the namespace, according to the census.
	counted count.Use

	// Err is the reason why the unit came to nothing before the first write.
	Err *api.Status
}

// Failure is the failure of an attempt on a node.
type Failure struct {
	Node  resource.NodeID
	Fault breaker.Fault
	Said  string // the agent's reasons, where the agent refused
}

// String describes the failure in a sentence.
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
	Request  record.RequestDigest // in the leader's memory of requests, or zero
	Started  time.Time
}

// Add adds a write, and the condition of the write.
func (c *Creation) Add(compare record.Compare, op record.Op) {
	c.Compares, c.Ops = append(c.Compares, compare), append(c.Ops, op)
}

// Answer adds the write by which a repeated request finds the answer.
func (c *Creation) Answer(request record.RequestDigest, op record.Op) {
	c.Request, c.Ops = request, append(c.Ops, op)
}

// SetAllocation sets the allocation of the unit, and takes over the labels.
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

// SetJob sets the job of the unit.
func (u *Unit) SetJob(j *Job) { u.Job = j }

// SetSequence sets the place of the unit in the order.
func (u *Unit) SetSequence(s record.Sequence) {
	u.Record.Sequence = s
	u.Key = queue.Key{Priority: u.Record.Priority, Epoch: s.Epoch, Counter: s.Counter, Path: u.Path}
}

// SetPriority gives the unit another priority, which changes the place in the order.
func (u *Unit) SetPriority(p int32) { u.Record.Priority, u.Key.Priority = p, p }

// enter has the unit take part: n learns of the changes of the unit's part in the queue, and a
// unit without a preemptionPolicy has the default policy.
func (u *Unit) enter(n *QueueNews, policy string) {
	u.QueueNews, u.Policy = n, cmp.Or(u.Policy, policy)
	n.Note(u.Path)
}

// SetCreation sets the further writes of the unit's first Txn.
func (u *Unit) SetCreation(c *Creation) { u.Create = c }

// MemberName is the name of a member among allocations.
func (u *Unit) MemberName(index int) string {
	if u.Job == nil {
		return u.Record.Name
	}
	return MemberOfJob(u.Record.Name, u.Record.FirstMember+index)
}

// MemberOfJob is the name of a job's member among allocations.
func MemberOfJob(job string, index int) string { return fmt.Sprintf("%s-%d", job, index) }

// Phase is the phase of the unit's members for clients.
func (u *Unit) Phase() api.Phase { return api.Phase(u.Record.Phase) }

// Grows reports whether the unit is to grow a gang, and the gang does not run yet.
func (u *Unit) Grows() bool {
	return u.Job != nil && u.Job.Gang && u.Record.N > 0 && u.Job.Units[0].Phase() != api.Running
}

// Waiting reports whether the unit still waits for a place.
func (u *Unit) Waiting() bool { return u.Phase() == api.Pending }

// KeepLost takes over the lost members of the unit, stored at rev.
func (u *Unit) KeepLost(lost []int, rev resource.Revision) { u.Record.Lost, u.Stored = lost, rev }
