package service

import (
	"context"
	"encoding/json"
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
	units := question + members(ctx, s.Service, namespace, name)
	return charged(ctx, s.charger, units, 0, func() (*api.Explanation, error) { return s.Service.ExplainJob(ctx, namespace, name, o) })
}

// TryAllocation implements Allocations.
func (s sighted) TryAllocation(ctx context.Context, c Create, a *api.Allocation, o ExplainOptions) (*api.Explanation, error) {
	return charged(ctx, s.charger, question, 0, func() (*api.Explanation, error) { return s.Service.TryAllocation(ctx, c, a, o) })
}

// ExplainAllocation implements Allocations.
func (s sighted) ExplainAllocation(ctx context.Context, namespace, name string, o ExplainOptions) (*api.Explanation, error) {
	return charged(ctx, s.charger, question, 0, func() (*api.Explanation, error) { return s.Service.ExplainAllocation(ctx, namespace, name, o) })
}

// PatchJob implements Jobs. Another number of members costs the difference, and another
// change of the specification all members.
func (s sighted) PatchJob(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Job, error) {
	units := 0
	if p.Spec != nil && s.charger != nil {
		units = changed(ctx, s.Service, namespace, name, p.Spec)
	}
	return charged(ctx, s.charger, units, 0, func() (*api.Job, error) { return s.Service.PatchJob(ctx, namespace, name, p) })
}

// changed is the cost of a patch of a job's specification; 0 for a refused patch.
func changed(ctx context.Context, from Service, namespace, name string, patch []byte) int {
	j, err := from.GetJob(ctx, namespace, name, 0)
	if err != nil {
		return 0
	}
	next := api.Job{Metadata: j.Metadata} // others hold the specification of j
	text, err := json.Marshal(j.Spec)
	if err != nil || json.Unmarshal(text, &next.Spec) != nil || json.Unmarshal(patch, &next.Spec) != nil || next.Validate() != nil {
		return 0
	}
	units := next.Members() - j.Members()
	if units == 0 {
		units = j.Members()
	}
	return max(units, -units)
}

// members is the number of members of a job, 0 where the job cannot be read.
func members(ctx context.Context, from Service, namespace, name string) int {
	j, err := from.GetJob(ctx, namespace, name, 0)
	if err != nil {
		return 0
	}
	return j.Members()
}
