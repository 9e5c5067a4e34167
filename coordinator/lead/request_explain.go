package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// This file serves questions whose answers need decisions. They change nothing.

type (
	// ExplainAllocation and ExplainJob ask why something waits; the result is an
	// *Explaining. Of a job its first unit that waits is explained.
	ExplainAllocation struct {
		Namespace, Name string
		Asked
	}
	ExplainJob struct {
		Namespace, Name string
		Asked
	}
	// TryAllocation and TryJob ask what would become of a submission; the result
	// is an *Explaining. Nothing is stored.
	TryAllocation struct {
		Submitted
		Document *api.Allocation
		Asked
	}
	TryJob struct {
		Submitted
		Document *api.Job
		Asked
	}
	// Asked says who asks for an explanation, and for how much.
	Asked struct {
		Operator  bool // sees the names of all work
		EveryNode bool // wants the answer of each node
	}
	// ExplainQuota asks where an allocation or a job is charged; the result is an
	// api.QuotaExplanation.
	ExplainQuota struct{ Namespace, Name string }
	// TryQuota asks what would become of a consumer; the result is an
	// api.QuotaDryRun. Operators see the names of all work, everybody else those of
	// the work of Tenant.
	TryQuota struct {
		Consumer quota.ConsumerSpec
		Operator bool
		Tenant   resource.TenantID
	}
)

func (r ExplainAllocation) serve(l *Leader, c *desk.Call) {
	u, _, status := l.member(r.Namespace, r.Name)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	c.Answer(l.explain(u, r.Asked), nil)
}

func (r ExplainJob) serve(l *Leader, c *desk.Call) {
	j, status := l.findJob(r.Namespace, r.Name)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	c.Answer(l.explain(j.FirstWaiting(), r.Asked), nil)
}

func (r TryAllocation) serve(l *Leader, c *desk.Call) {
	s, status := l.submissionOfAllocation(r.Submitted, r.Document)
	c.Answer(l.trySubmission(s, status, r.Asked))
}

func (r TryJob) serve(l *Leader, c *desk.Call) {
	s, status := l.submissionOfJob(r.Submitted, r.Document)
	c.Answer(l.trySubmission(s, status, r.Asked))
}

// trySubmission begins the answer what would become of a submission, which is
// forgotten.
func (l *Leader) trySubmission(s *submission, status *api.Status, asked Asked) (any, *api.Status) {
	if status == nil {
		status = l.refusal(s)
	}
	if status != nil {
		return nil, status
	}
	u := s.units[0]
	if status := l.unsatisfiable(u); status != nil {
		return nil, status
	}
	delete(l.fates.marked, u) // it is forgotten
	u.Life.Restore(api.Pending)
	u.SetSequence(l.post.Behind()) // behind all others
	x := l.explain(u, asked)
	l.removeConsumer(u) // which the snapshot has, if any
	x.dry = true
	return x, nil
}

func (r ExplainQuota) serve(l *Leader, c *desk.Call) {
	if j := l.work.Jobs[r.Namespace+"/"+r.Name]; j != nil {
		c.Answer(l.quotaExplanation(j.FirstWaiting()), nil)
		return
	}
	u, _, status := l.member(r.Namespace, r.Name)
	if status != nil {
		c.Answer(nil, api.Errorf(404, "no allocation and no job %s found in namespace %s", r.Name, r.Namespace))
		return
	}
	c.Answer(l.quotaExplanation(u), nil)
}

func (r TryQuota) serve(l *Leader, c *desk.Call) {
	trial, status := l.tryQuota(r.Consumer, l.reader(r.Operator, r.Tenant))
	c.Answer(trial, status)
}
