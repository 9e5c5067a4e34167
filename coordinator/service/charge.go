package service

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
)

// Charger charges requests by work, before the service decides.
type Charger interface {
	// Begin charges the request of a context, and waits for a place. units are about the
	// members of the request's jobs. wait is how long the request waits for an object. The
	// caller calls end once, where status is nil.
	Begin(ctx context.Context, units int64, wait time.Duration) (end func(), status *api.Status)
}

// question is the work of a dry run or an explanation, without members, in units.
const question = 20

// charged serves a request of a work.
func charged[T any](ctx context.Context, by Charger, units int, wait time.Duration, serve func() (T, error)) (T, error) {
	if by == nil {
		return serve()
	}
	end, status := by.Begin(ctx, int64(units), wait)
	if status != nil {
		var none T
		return none, status
	}
	defer end()
	return serve()
}

// CreateJob implements Jobs.
func (s sighted) CreateJob(ctx context.Context, c Create, j *api.Job) (*api.Job, error) {
	return charged(ctx, s.charger, j.Members(), c.Wait, func() (*api.Job, error) { return s.Service.CreateJob(ctx, c, j) })
}

// TryJob implements Jobs.
func (s sighted) TryJob(ctx context.Context, c Create, j *api.Job, o ExplainOptions) (*api.Explanation, error) {
	return charged(ctx, s.charger, question+j.Members(), 0, func() (*api.Explanation, error) { return s.Service.TryJob(ctx, c, j, o) })
}

// ExplainJob implements Jobs.
func (s sighted) ExplainJob(ctx context.Context, namespace, name string, o ExplainOptions) (*api.Explanation, error) {
	return charged(ctx, s.charger, question, 0, func() (*api.Explanation, error) { return s.Service.ExplainJob(ctx, namespace, name, o) })
}

// TryAllocation implements Allocations.
func (s sighted) TryAllocation(ctx context.Context, c Create, a *api.Allocation, o ExplainOptions) (*api.Explanation, error) {
	return charged(ctx, s.charger, question, 0, func() (*api.Explanation, error) { return s.Service.TryAllocation(ctx, c, a, o) })
}

// ExplainAllocation implements Allocations.
func (s sighted) ExplainAllocation(ctx context.Context, namespace, name string, o ExplainOptions) (*api.Explanation, error) {
	return charged(ctx, s.charger, question, 0, func() (*api.Explanation, error) { return s.Service.ExplainAllocation(ctx, namespace, name, o) })
}
