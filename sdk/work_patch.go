package sdk

import (
	"context"
	"encoding/json"

	"github.com/musterd/muster/api"
)

// Patch applies a merge patch (RFC 7386) to an allocation: labels, annotations,
// spec.suspend, and spec.queue while the allocation waits. A metadata.resourceVersion
// in the patch is a precondition.
func (a Allocations) Patch(ctx context.Context, name string, patch []byte) (*api.Allocation, error) {
	return call[api.Allocation](ctx, a.client, a.patch(name, patch))
}

// Suspend keeps an allocation from running until Resume: it is given notice if it
// runs, and waits at its place.
func (a Allocations) Suspend(ctx context.Context, name string) (*api.Allocation, error) {
	return a.Patch(ctx, name, suspension(true))
}

// Resume lets a suspended allocation run again.
func (a Allocations) Resume(ctx context.Context, name string) (*api.Allocation, error) {
	return a.Patch(ctx, name, suspension(false))
}

// Patch applies a merge patch (RFC 7386) to a job: labels, annotations, spec.suspend,
// spec.parallelism, and spec.queue while the job waits. A metadata.resourceVersion in
// the patch is a precondition.
func (j Jobs) Patch(ctx context.Context, name string, patch []byte) (*api.Job, error) {
	return call[api.Job](ctx, j.client, j.patch(name, patch))
}

// Suspend keeps a job from running until Resume, as Allocations.Suspend does.
func (j Jobs) Suspend(ctx context.Context, name string) (*api.Job, error) {
	return j.Patch(ctx, name, suspension(true))
}

// Resume lets a suspended job run again.
func (j Jobs) Resume(ctx context.Context, name string) (*api.Job, error) {
	return j.Patch(ctx, name, suspension(false))
}

// Scale sets the number of a job's members.
func (j Jobs) Scale(ctx context.Context, name string, parallelism int32) (*api.Job, error) {
	raw, err := json.Marshal(specOf(map[string]any{"parallelism": parallelism}))
	if err != nil {
		return nil, err
	}
	return j.Patch(ctx, name, raw)
}

// specOf is a patch of the specification alone.
func specOf(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

// suspension is the patch that sets spec.suspend.
func suspension(suspend bool) []byte {
	raw, _ := json.Marshal(specOf(map[string]any{"suspend": suspend})) // a boolean always encodes
	return raw
}
