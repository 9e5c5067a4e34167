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
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	s, err := l.submissionOfAllocation(create, a, time.Now())
	if err != nil {
		return nil, err
	}
	u, err := l.submitAndWait(ctx, s, create.Wait)
	if err != nil {
		return nil, err
	}
	var result *api.Allocation
	err = l.do(ctx, func() { result = l.allocation(u, 0) })
	return result, failure(err)
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
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	leaving := false // for another who asked
	u, err := look(ctx, c, func(l *leader) (*unit, *api.Status) {
		u, _, status := l.member(namespace, name)
		if status != nil {
			return nil, status
		}
		if u.job != nil {
			return nil, api.Errorf(409, "allocation %s is a member of job %s; cancel or delete the job", name, u.record.Name)
		}
		leaving = u.ending != nil
		l.end(u, asked(o))
		return u, nil
	})
	if err != nil {
		return nil, err
	}
	if leaving {
		if err := l.stillThere(ctx, u); err != nil {
			return nil, err
		}
	}
	if err := l.awaitEnding(ctx, u); err != nil {
		return nil, failure(err)
	}
	return look(ctx, c, func(l *leader) (*api.Allocation, *api.Status) {
		switch {
		case u.ending == nil:
			return nil, api.Errorf(503, "allocation %s: the store did not take the deletion; ask again", name)
		case u.stored == 0: // it came to nothing, and the next leader would not know that it was to be deleted
			return nil, notFound("allocation", namespace, name)
		}
		return l.terminating(u), nil
	})
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

// awaitEnding waits until a unit's release is durable, or was not taken.
func (l *term) awaitEnding(ctx context.Context, u *unit) error {
	for {
		var settled bool
		var changed <-chan struct{}
		err := l.do(ctx, func() {
			settled, changed = u.gone || u.wish != endAsked, l.changes(u.path)
		})
		if err != nil || settled {
			return err
		}
		select {
		case <-changed:
		case <-l.ended:
			return errDeposed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
