package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
)

// mostQuestions bounds the questions that are answered at one time: each has a copy
// of the scheduling state, and takes a processor.
const mostQuestions = 2

// beginQuestion waits until another question may be answered; done ends it.
func (c *Coordinator) beginQuestion(ctx context.Context) (done func(), err error) {
	select {
	case c.questions <- struct{}{}:
		return func() { <-c.questions }, nil
	case <-ctx.Done():
		return nil, failure(ctx.Err())
	}
}

// ExplainAllocation implements service.Allocations.
func (c *Coordinator) ExplainAllocation(ctx context.Context, namespace, name string, o service.ExplainOptions) (*api.Explanation, error) {
	return c.explain(ctx, lead.ExplainAllocation{Namespace: namespace, Name: name, Asked: lead.Asked(o)})
}

// ExplainJob implements service.Jobs. The job's first unit that waits is
// explained.
func (c *Coordinator) ExplainJob(ctx context.Context, namespace, name string, o service.ExplainOptions) (*api.Explanation, error) {
	return c.explain(ctx, lead.ExplainJob{Namespace: namespace, Name: name, Asked: lead.Asked(o)})
}

// explain answers a question outside the leader's loop, a few questions at a time.
func (c *Coordinator) explain(ctx context.Context, r lead.Request) (*api.Explanation, error) {
	done, err := c.beginQuestion(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	x, err := ask[*lead.Explaining](ctx, c, r)
	if err != nil {
		return nil, err
	}
	return x.Answer(), nil
}

// TryAllocation implements service.Allocations.
func (c *Coordinator) TryAllocation(ctx context.Context, create service.Create, a *api.Allocation, o service.ExplainOptions) (*api.Explanation, error) {
	return c.explain(ctx, lead.TryAllocation{Submitted: submittedAs(ctx, create), Document: a, Asked: lead.Asked(o)})
}

// TryJob implements service.Jobs.
func (c *Coordinator) TryJob(ctx context.Context, create service.Create, j *api.Job, o service.ExplainOptions) (*api.Explanation, error) {
	return c.explain(ctx, lead.TryJob{Submitted: submittedAs(ctx, create), Document: j, Asked: lead.Asked(o)})
}
