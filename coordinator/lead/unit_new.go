package lead

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// opsOf is how many operations the largest Txn of a submission takes.
func (l *Leader) opsOf(s *submission) int {
	enqueue := 2*len(s.units) + 2
	commit := min(s.units[0].Record.Members, max(1, len(l.state.Nodes()))) + sched.CommitOps
	return max(enqueue, commit)
}

// exceedsTxn refuses a job that one transaction of the store cannot hold.
func (l *Leader) exceedsTxn(s *submission, ops int) *api.Status {
	field, advice := "spec.parallelism", ""
	if s.job != nil && s.job.Doc.Spec.Completions != nil {
		field = "spec.completions"
	}
	if s.job != nil && !s.job.Gang { // each member is a unit
		advice = fmt.Sprintf("ask for %d members at most, ", (l.post.MaxOps()-2)/2)
	}
	return api.Errorf(422, "%s: storing %d members takes %d operations, and the store takes %d in one transaction: %sraise etcd's --max-txn-ops, or submit several jobs",
		field, max(len(s.units), s.units[0].Record.Members), ops, l.post.MaxOps(), advice)
}

// overQuota refuses an allocation that may not wait.
func overQuota(short []resource.Reason) *api.Status {
	status := api.Errorf(403, "%s", short[0].Detail)
	status.Details = short
	return status
}

// Operations that a change takes for the job, for each moved unit and for each added
// one.
const (
	opsOfJob   = 1
	opsOfMoved = 3
	opsOfAdded = 2
)
