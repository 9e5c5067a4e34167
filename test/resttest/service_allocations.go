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

// CreateAllocation implements service.Allocations.
func (c *Cluster) CreateAllocation(ctx context.Context, create service.Create, a *api.Allocation) (*api.Allocation, error) {
	made, err := ask[lead.Created](ctx, c, lead.CreateAllocation{Submitted: submittedAs(ctx, create), Document: a, Wait: create.Wait})
	tellRepeated(made, create)
	warn(ctx, made.Warnings)
	return made.Allocation, err
}

// tellRepeated tells the API whether an earlier request has made the object.
func tellRepeated(m lead.Created, create service.Create) {
	if m.Repeated && create.Repeated != nil {
		*create.Repeated = true
	}
}

// GetAllocation implements service.Allocations.
func (c *Cluster) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	return seeSettled(ctx, c, wait, func(v *objects.View) (watched[*api.Allocation], *api.Status) {
		position := namespace + "/" + name
		m, found := v.Member(position)
		if !found {
			return watched[*api.Allocation]{}, lead.NotFound("allocation", namespace, name)
		}
		return watched[*api.Allocation]{m.Show(), m.Settled}, nil
	})
}

// ListAllocations implements service.Allocations.
func (c *Cluster) ListAllocations(ctx context.Context, namespace string, p service.Page[api.Allocation]) (*api.AllocationList, error) {
	return see(ctx, c, func(v *objects.View) (*api.AllocationList, *api.Status) {
		list := &api.AllocationList{Kind: "AllocationList", Metadata: shown.ListMeta(v.Newest())}
		list.Items, list.Metadata.Continue = PageOf(p, v.Members(namespace), func(position string) *api.Allocation {
			m, _ := v.Member(position)
			return m.Show()
		})
		return list, nil
	})
}

// PatchAllocation implements service.Allocations.
func (c *Cluster) PatchAllocation(ctx context.Context, namespace, name string, p api.WorkPatch) (*api.Allocation, error) {
	return ask[*api.Allocation](ctx, c, lead.PatchAllocation{Namespace: namespace, Name: name, Patch: p})
}

// DeleteAllocation implements service.Allocations. It answers once the release is
// durable.
func (c *Cluster) DeleteAllocation(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Allocation, error) {
	return ask[*api.Allocation](ctx, c, lead.DeleteAllocation{Namespace: namespace, Name: name, Options: o})
}

func submittedAs(ctx context.Context, c service.Create) lead.Submitted {
	return lead.Submitted{Namespace: c.Namespace, Document: c.Document, Hash: c.Digest(), RequestID: c.RequestID, User: service.CallerOf(ctx).Name}
}
