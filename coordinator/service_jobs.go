package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// CreateJob implements service.Jobs.
func (c *Coordinator) CreateJob(ctx context.Context, create service.Create, doc *api.Job) (*api.Job, error) {
	made, err := ask[lead.Created](ctx, c, lead.CreateJob{Submitted: submittedAs(ctx, create), Document: doc, Wait: create.Wait})
	tellRepeated(made, create)
	warn(ctx, made.Warnings)
	return made.Job, err
}

// GetJob implements service.Jobs. A wait is for the job's first unit.
func (c *Coordinator) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	n := objects.Name{Kind: objects.Jobs, Namespace: namespace, Name: name}
	return awaitSettled(ctx, c, n, wait, func(v *objects.View) (*api.Job, bool, *api.Status) {
		j, found := v.Job(namespace + "/" + name)
		if !found {
			return nil, false, lead.NotFound("job", namespace, name)
		}
		return j.Show(), j.Settled, nil
	})
}

// ListJobs implements service.Jobs.
func (c *Coordinator) ListJobs(ctx context.Context, namespace string, p service.Page[api.Job]) (*api.JobList, error) {
	l, err := list(ctx, c, objects.Jobs, namespace, p)
	if err != nil {
		return nil, err
	}
	return &api.JobList{Kind: "JobList", Metadata: l.meta, Items: l.items}, nil
}

// CancelJob implements service.Jobs.
func (c *Coordinator) CancelJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return ask[*api.Job](ctx, c, lead.EndJob{Namespace: namespace, Name: name, Options: o, Remove: false})
}

// BoostJob implements service.Jobs.
func (c *Coordinator) BoostJob(ctx context.Context, namespace, name string, o api.BoostOptions) (*api.Boost, error) {
	o.ApprovedBy = service.Vouched(service.CallerOf(ctx).Principal, o.ApprovedBy)
	return ask[*api.Boost](ctx, c, lead.BoostJob{Namespace: namespace, Name: name, Boost: o})
}

// PatchJob implements service.Jobs.
func (c *Coordinator) PatchJob(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Job, error) {
	return ask[*api.Job](ctx, c, lead.PatchJob{Namespace: namespace, Name: name, Patch: p})
}

// DeleteJob implements service.Jobs.
func (c *Coordinator) DeleteJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return ask[*api.Job](ctx, c, lead.EndJob{Namespace: namespace, Name: name, Options: o, Remove: true})
}
