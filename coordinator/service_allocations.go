package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// CreateAllocation implements service.Allocations.
func (c *Coordinator) CreateAllocation(ctx context.Context, create service.Create, a *api.Allocation) (*api.Allocation, error) {
	made, err := ask[lead.Created](ctx, c, lead.CreateAllocation{Submitted: submittedAs(ctx, create), Document: a, Wait: create.Wait})
	tellRepeated(made, create)
	warn(ctx, made.Warnings)
	return made.Allocation, err
}

// tellRepeated reports to the API whether an earlier request has made the
// object.
func tellRepeated(m lead.Created, create service.Create) {
	if m.Repeated && create.Repeated != nil {
		*create.Repeated = true
	}
}

// GetAllocation implements service.Allocations.
func (c *Coordinator) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	n := objects.Name{Kind: objects.Allocations, Namespace: namespace, Name: name}
	return awaitSettled(ctx, c, n, wait, func(v *objects.View) (*api.Allocation, bool, *api.Status) {
		m, found := v.Member(namespace + "/" + name)
		if !found {
			return nil, false, lead.NotFound("allocation", namespace, name)
		}
		return m.Show(), m.Settled, nil
	})
}

// ListAllocations implements service.Allocations.
func (c *Coordinator) ListAllocations(ctx context.Context, namespace string, p service.Page[api.Allocation]) (*api.AllocationList, error) {
	l, err := list(ctx, c, objects.Allocations, namespace, p)
	if err != nil {
		return nil, err
	}
	return &api.AllocationList{Kind: "AllocationList", Metadata: l.meta, Items: l.items}, nil
}

// PatchAllocation implements service.Allocations.
func (c *Coordinator) PatchAllocation(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Allocation, error) {
	return ask[*api.Allocation](ctx, c, lead.PatchAllocation{Namespace: namespace, Name: name, Patch: p})
}

// DeleteAllocation implements service.Allocations. It answers once the release is
// durable.
func (c *Coordinator) DeleteAllocation(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Allocation, error) {
	return ask[*api.Allocation](ctx, c, lead.DeleteAllocation{Namespace: namespace, Name: name, Options: o})
}

func submittedAs(ctx context.Context, c service.Create) lead.Submitted {
	return lead.Submitted{Namespace: c.Namespace, Document: c.Document, Hash: c.Digest(), RequestID: c.RequestID, User: service.CallerOf(ctx).Name}
}
