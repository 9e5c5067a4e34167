package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/shown"
)

// CreateAllocation implements rest.Allocations.
func (c *Coordinator) CreateAllocation(ctx context.Context, create rest.Create, a *api.Allocation) (*api.Allocation, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	s, err := l.submissionOfAllocation(create, a)
	if err != nil {
		return nil, err
	}
	u, err := l.submit(ctx, s, create.Wait)
	if err != nil {
		return nil, err
	}
	var result *api.Allocation
	err = l.do(ctx, func() { result = l.allocation(u, 0) })
	return result, failure(err)
}

// GetAllocation implements rest.Allocations.
func (c *Coordinator) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	return seeSettled(ctx, c, wait, func(i shown.Index) (watched[*api.Allocation], *api.Status) {
		position := namespace + "/" + name
		m, found := i.Member(position)
		if !found {
			return watched[*api.Allocation]{}, notFound("allocation", namespace, name)
		}
		return watched[*api.Allocation]{m.Show(), m.Settled, i.MemberChanged(position)}, nil
	})
}

// ListAllocations implements rest.Allocations.
func (c *Coordinator) ListAllocations(ctx context.Context, namespace string, p rest.Page[api.Allocation]) (*api.AllocationList, error) {
	return see(ctx, c, func(i shown.Index) (*api.AllocationList, *api.Status) {
		list := &api.AllocationList{Kind: "AllocationList", Metadata: shown.ListMeta(i.Newest())}
		list.Items, list.Metadata.Continue = p.Of(i.Members(namespace), func(position string) *api.Allocation {
			m, _ := i.Member(position)
			return m.Show()
		})
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
		return l.terminating(u, now()), nil
	})
}

// awaitEnding waits until a unit's release is durable, or was not taken.
func (l *leader) awaitEnding(ctx context.Context, u *unit) error {
	for {
		var settled bool
		var changed <-chan struct{}
		err := l.do(ctx, func() {
			settled, changed = u.gone || u.endStored || u.ending == nil, u.changed
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
