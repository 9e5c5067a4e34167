package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
)

// CreateAllocation implements rest.Allocations.
func (c *Coordinator) CreateAllocation(ctx context.Context, create rest.Create, a *api.Allocation) (*api.Allocation, error) {
	made, err := ask[created](ctx, c, createAllocation{submittedAs(create), a, create.Wait})
	made.tell(create)
	return made.allocation, err
}

// tell tells the API whether an earlier request has made the object.
func (m created) tell(create rest.Create) {
	if m.repeated && create.Repeated != nil {
		*create.Repeated = true
	}
}

// GetAllocation implements rest.Allocations.
func (c *Coordinator) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	return seeSettled(ctx, c, wait, func(v *view) (watched[*api.Allocation], *api.Status) {
		u, index, status := v.member(namespace, name)
		if status == nil && u.stored == 0 { // it may yet come to nothing
			status = notFound("allocation", namespace, name)
		}
		if status != nil {
			return watched[*api.Allocation]{}, status
		}
		return watched[*api.Allocation]{v.allocation(u, index), !unitWaiting(u), v.changes(u.path)}, nil
	})
}

// ListAllocations implements rest.Allocations.
func (c *Coordinator) ListAllocations(ctx context.Context, namespace string, p rest.Page[api.Allocation]) (*api.AllocationList, error) {
	return see(ctx, c, func(v *view) (*api.AllocationList, *api.Status) {
		list := &api.AllocationList{Kind: "AllocationList", Metadata: api.ListMeta{ResourceVersion: v.newest()}}
		list.Items, list.Metadata.Continue = p.Of(func(yield func(string) bool) {
			for key, m := range v.members {
				if m.unit.stored != 0 && (namespace == "" || m.unit.record.Namespace == namespace) && !yield(key) {
					return
				}
			}
		}, func(key string) *api.Allocation { return v.allocation(v.members[key].unit, v.members[key].index) })
		return list, nil
	})
}

// DeleteAllocation implements rest.Allocations. It answers once the release is
// durable.
func (c *Coordinator) DeleteAllocation(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Allocation, error) {
	return ask[*api.Allocation](ctx, c, deleteAllocation{namespace, name, o})
}

// terminating shows an allocation whose release is durable, gone or not.
func (l *leader) terminating(u *unit) *api.Allocation {
	a := l.allocation(u, 0)
	grace := u.ending.GraceSeconds
	a.Metadata.DeletionTimestamp, a.Metadata.DeletionGracePeriodSeconds = l.stamp(), &grace
	a.Status.Phase = api.Terminating
	c := api.Condition{Type: "Terminating", Status: "True", Reason: "UserRequested", Message: "Graceful termination in progress"}
	if u.attempt != nil && u.attempt.notice != nil {
		c.Message = fmt.Sprintf("it is being evicted, with %d s of grace (%s), and is gone once that is over", u.attempt.notice.GraceSeconds, u.attempt.notice.Reason)
	}
	a.Status.Conditions = append(a.Status.Conditions, c)
	return a
}
