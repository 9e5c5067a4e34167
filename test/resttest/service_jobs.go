package resttest

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
)

// CreateJob implements service.Jobs.
func (c *Cluster) CreateJob(ctx context.Context, create service.Create, doc *api.Job) (*api.Job, error) {
	made, err := ask[lead.Created](ctx, c, lead.CreateJob{Submitted: submittedAs(ctx, create), Document: doc, Wait: create.Wait})
	tellRepeated(made, create)
	warn(ctx, made.Warnings)
	return made.Job, err
}

// GetJob implements service.Jobs. A wait is for the job's first unit.
func (c *Cluster) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	return seeSettled(ctx, c, wait, func(v *objects.View) (watched[*api.Job], *api.Status) {
		position := namespace + "/" + name
		j, found := v.Job(position)
		if !found {
			return watched[*api.Job]{}, lead.NotFound("job", namespace, name)
		}
		return watched[*api.Job]{j.Show(), j.Settled}, nil
	})
}

// ListJobs implements service.Jobs.
func (c *Cluster) ListJobs(ctx context.Context, namespace string, p service.Page[api.Job]) (*api.JobList, error) {
	return see(ctx, c, func(v *objects.View) (*api.JobList, *api.Status) {
		list := &api.JobList{Kind: "JobList", Metadata: shown.ListMeta(v.Newest())}
		list.Items, list.Metadata.Continue = PageOf(p, v.Jobs(namespace), func(position string) *api.Job {
			j, _ := v.Job(position)
			return j.Show()
		})
		return list, nil
	})
}

// CancelJob implements service.Jobs.
func (c *Cluster) CancelJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return ask[*api.Job](ctx, c, lead.EndJob{Namespace: namespace, Name: name, Options: o, Remove: false})
}

// BoostJob implements service.Jobs.
func (c *Cluster) BoostJob(ctx context.Context, namespace, name string, o api.BoostOptions) (*api.Boost, error) {
	return ask[*api.Boost](ctx, c, lead.BoostJob{Namespace: namespace, Name: name, Boost: o})
}

// PatchJob implements service.Jobs.
func (c *Cluster) PatchJob(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Job, error) {
	return ask[*api.Job](ctx, c, lead.PatchJob{Namespace: namespace, Name: name, Patch: p})
}

// DeleteJob implements service.Jobs.
func (c *Cluster) DeleteJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return ask[*api.Job](ctx, c, lead.EndJob{Namespace: namespace, Name: name, Options: o, Remove: true})
}
