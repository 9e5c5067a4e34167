package coordinator

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/rest"
)

// ExplainAllocation implements rest.Allocations.
func (c *Coordinator) ExplainAllocation(ctx context.Context, namespace, name string, o rest.ExplainOptions) (*api.Explanation, error) {
	return explained(ask[*lead.Explaining](ctx, c, lead.ExplainAllocation{Namespace: namespace, Name: name, Asked: lead.Asked(o)}))
}

// ExplainJob implements rest.Jobs. The job's first unit that waits is
// explained.
func (c *Coordinator) ExplainJob(ctx context.Context, namespace, name string, o rest.ExplainOptions) (*api.Explanation, error) {
	return explained(ask[*lead.Explaining](ctx, c, lead.ExplainJob{Namespace: namespace, Name: name, Asked: lead.Asked(o)}))
}

// explained answers outside the leader's loop.
func explained(x *lead.Explaining, err error) (*api.Explanation, error) {
	if err != nil {
		return nil, err
	}
	return x.Answer(), nil
}
