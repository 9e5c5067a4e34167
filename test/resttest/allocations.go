package resttest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
)

// admit adds a pending allocation.
func (c *Cluster) admit(key string, a *api.Allocation) {
	a.APIVersion, a.Kind = api.APIVersion, api.KindAllocation
	a.Metadata.UID = fmt.Sprintf("alloc-%04d", c.revision+len(c.allocations)+1)
	a.Metadata.ResourceVersion = strconv.Itoa(c.revision + 1)
	a.Metadata.CreationTimestamp = c.stamp()
	a.Status.Phase = api.Pending
	a.Status.Conditions = []api.Condition{{Type: "Scheduled", Status: "False", Reason: "Unscheduled", Message: "waiting for resources"}}
	c.allocations[key] = a
}

// CreateAllocation implements rest.Allocations.
func (c *Cluster) CreateAllocation(ctx context.Context, create rest.Create, a *api.Allocation) (*api.Allocation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, repeated := c.repeat(create, "allocation")
	if !repeated {
		key = create.Namespace + "/" + a.Metadata.Name
		if c.allocations[key] != nil {
			return nil, api.Errorf(http.StatusConflict, "allocation %q already exists in namespace %q", a.Metadata.Name, create.Namespace)
		}
		request, status := api.MemberRequest(a.Spec)
		if status != nil {
			return nil, status
		}
		priority, status := api.PriorityOf(a.Spec.Priority, a.Spec.PriorityClass)
		if status != nil {
			return nil, status
		}
		u := &unit{
			key: key, members: []string{key}, request: request, selector: a.Spec.Scheduling.NodeSelector, class: a.Spec.PriorityClass,
			consumer: c.consumerOf(create.Namespace+"/alloc/"+a.Metadata.Name+"/0", create.Namespace, 1, request, &a.Spec, priority),
		}
		if reasons := c.refused(u); len(reasons) > 0 && !c.queues(create.Namespace) {
			status := api.Errorf(http.StatusForbidden, "%s", reasons[0].Detail)
			status.Details = reasons
			return nil, status
		}
		c.remember(create, "allocation", key)
		c.admit(key, clone(a))
		c.queue = append(c.queue, u)
		c.schedule()
		c.touch()
	}
	return c.waitAllocation(ctx, key, create.Wait)
}

func (c *Cluster) waitAllocation(ctx context.Context, key string, wait time.Duration) (*api.Allocation, error) {
	c.await(ctx, wait, func() bool {
		a := c.allocations[key]
		return a == nil || a.Status.Phase != api.Pending
	})
	if a := c.allocations[key]; a != nil {
		return clone(a), nil
	}
	return nil, notFound("allocation", key)
}

// GetAllocation implements rest.Allocations.
func (c *Cluster) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waitAllocation(ctx, namespace+"/"+name, wait)
}

// ListAllocations implements rest.Allocations.
func (c *Cluster) ListAllocations(_ context.Context, namespace string, p rest.Page[api.Allocation]) (*api.AllocationList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &api.AllocationList{Metadata: api.ListMeta{ResourceVersion: strconv.Itoa(c.revision)}}
	list.Items, list.Metadata.Continue = p.Of(inNamespace(c.allocations, namespace), func(key string) *api.Allocation { return clone(c.allocations[key]) })
	return list, nil
}

// DeleteAllocation implements rest.Allocations.
func (c *Cluster) DeleteAllocation(_ context.Context, namespace, name string, o api.DeleteOptions) (*api.Allocation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	a := c.allocations[key]
	switch {
	case a == nil:
		return nil, notFound("allocation", key)
	case a.Status.Job != "":
		return nil, api.Errorf(http.StatusConflict, "allocation %q is a member of job %q: delete the job", name, a.Status.Job)
	}
	c.stop(key, a, api.Terminating)
	a.Metadata.DeletionTimestamp, a.Metadata.DeletionGracePeriodSeconds = c.stamp(), o.GracePeriodSeconds
	delete(c.allocations, key)
	c.schedule()
	c.touch()
	return clone(a), nil
}

// ExplainAllocation implements rest.Allocations.
func (c *Cluster) ExplainAllocation(_ context.Context, namespace, name string) (*api.Explanation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	a := c.allocations[key]
	if a == nil {
		return nil, notFound("allocation", key)
	}
	for _, u := range c.queue {
		if slices.Contains(u.members, key) {
			e := c.explain(u)
			e.Phase = api.Pending
			return e, nil
		}
	}
	return &api.Explanation{Namespace: namespace, Name: name, Phase: a.Status.Phase, Summary: "it is " + string(a.Status.Phase)}, nil
}
