package lead

import (
	"cmp"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/lead/breaker"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// unit is the smallest all-or-nothing set of members, as the leader knows it. Its
// phase changes in unit_phase.go; the reasons of the wait and the charges, in unit_wait.go.
//
// Invariant: see check in unit_phase.go.
type unit struct {
	path   string // "namespace/alloc|job/name/n"
	record record.Unit
	stored resource.Revision // mod revision of the unit's key
	// queued: the order key is in the store.
	queued bool
	key    queue.Key

	// forms are the requests that would do, in the order in which they are tried, nil where
	// there is one alone. number is the number among them of the form that the unit has.
	// See form.go.
	forms  []form.Form
	number int
	form.Form
	// groups are the groups of the specification. charges are the unit's charges
	// when it is placed, by the bindings of that generation: its namespace first,
	// then trees in ascending order.
	groups  api.QuotaDemand
	policy  string // preemptionPolicy, as it was written
	charges []record.Charge
	bound   uint64
	// enrolled: the trees know the unit by its path.
	enrolled bool
	// exactly one of these is set: the object that the unit belongs to.
	allocation *api.Allocation
	job        *job

	// group is the group of an allocation that waits for others, nil for none.
	group *group

	// queueNews notes changes of the unit's part in its queue; nil before a leader
	// knows the unit.
	queueNews *queueNews

	// life is the unit's phase in the leader, the request to end the unit and the Txn under
	// way; phase is the phase that clients see.
	life work.Life

	// create holds the further writes of the Txn that first stores the unit; nil
	// once the unit is stored.
	create *creation
	// attempt is that of the phases trying, live and closing.
	attempt *attempt
	// adopting is the preemption that an earlier leader began for the unit, in the phase
	// adopting alone: the leader goes on with the preemption or gives it up.
	adopting resource.TxID

	// hold is why the unit is not tried, beside its owner's wish.
	hold hold
	// told is why the unit waits as the store has it.
	told told
	// fate is the reason why the unit can never run, as far as that is known.
	fate fate
	// evidence is why the unit waited when its class last said; the class has newer
	// evidence where the unit may be tried.
	evidence *sched.Evidence
	// refusals in a row, for the backoff between attempts; rested is when the
	// backoff ends.
	refusals int
	rested   time.Time
	// avoid counts, by node, the attempts since the last commit that failed there.
	avoid       map[resource.NodeID]int
	failed      failure // the last one since the last commit
	attempts    int
	lastAttempt time.Time

	// counted is the unit's part in the use of its namespace, as the census has it.
	counted count.Use

	// err is why the unit came to nothing before it was stored.
	err *api.Status
}

// failure is how an attempt failed on a node.
type failure struct {
	node  resource.NodeID
	fault breaker.Fault
	said  string // the agent's reasons, where the agent refused
}

// String says how an attempt failed on the node.
func (f failure) String() string {
	if f.said != "" {
		return f.fault.Sentence() + ": " + f.said
	}
	return f.fault.Sentence()
}

// creation holds the further writes of a unit's first Txn.
type creation struct {
	ops      []record.Op
	compares []record.Compare
	request  record.RequestDigest // in leader.requests, or zero
	started  time.Time
}

// add adds a write, and what has to hold for the write.
func (c *creation) add(compare record.Compare, op record.Op) {
	c.compares, c.ops = append(c.compares, compare), append(c.ops, op)
}

// answer adds the write by which a repetition of the request finds its answer.
func (c *creation) answer(request record.RequestDigest, op record.Op) {
	c.request, c.ops = request, append(c.ops, op)
}

// setAllocation sets the allocation that the unit belongs to.
func (u *unit) setAllocation(doc *api.Allocation) {
	u.allocation = doc
	u.setLabels(doc.Metadata.Labels)
}

// setLabels takes over the labels by which rules of other units select the unit.
func (u *unit) setLabels(labels map[string]string) {
	subject := *u.Demand.Subject
	if subject.Labels = constraint.LabelsOf(labels); subject.Labels.Text() != u.Demand.Subject.Labels.Text() {
		u.Demand.Subject = &subject
		for i := range u.forms {
			u.forms[i].Demand.Subject = &subject
		}
	}
}

// setJob sets the job that the unit belongs to.
func (u *unit) setJob(j *job) { u.job = j }

// setSequence gives the unit its place in the order.
func (u *unit) setSequence(s record.Sequence) {
	u.record.Sequence = s
	u.key = queue.Key{Priority: u.record.Priority, Epoch: s.Epoch, Counter: s.Counter, Path: u.path}
}

// setPriority gives the unit another priority, which changes its place in the order.
func (u *unit) setPriority(p int32) { u.record.Priority, u.key.Priority = p, p }

// enter has the unit take part: queueNews learns of the changes of the unit's part, and a unit
// without a preemptionPolicy has the default.
func (u *unit) enter(n *queueNews, policy string) {
	u.queueNews, u.policy = n, cmp.Or(u.policy, policy)
	n.note(u.path)
}

// setCreation sets the further writes of the Txn that first stores the unit.
func (u *unit) setCreation(c *creation) { u.create = c }

// memberName is how a member appears among allocations.
func (u *unit) memberName(index int) string {
	if u.job == nil {
		return u.record.Name
	}
	return memberOfJob(u.record.Name, u.record.FirstMember+index)
}

// memberOfJob is how a member of a job appears among allocations.
func memberOfJob(job string, index int) string { return fmt.Sprintf("%s-%d", job, index) }

// phase is the phase of the unit's members that clients see.
func (u *unit) phase() api.Phase { return api.Phase(u.record.Phase) }

// grows reports whether the unit is to grow a gang that does not run yet.
func (u *unit) grows() bool {
	return u.job != nil && u.job.gang && u.record.N > 0 && u.job.units[0].phase() != api.Running
}

// waiting reports whether the unit still waits for its place.
func (u *unit) waiting() bool { return u.phase() == api.Pending }

// keepLost takes over that the store has the unit without some members at rev.
func (u *unit) keepLost(lost []int, rev resource.Revision) { u.record.Lost, u.stored = lost, rev }
