package resttest

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
)

// CreateJob implements rest.Jobs.
func (c *Cluster) CreateJob(ctx context.Context, create rest.Create, j *api.Job) (*api.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, repeated := c.repeat(create, "job")
	if !repeated {
		key = create.Namespace + "/" + j.Metadata.Name
		if c.jobs[key] != nil {
			return nil, api.Errorf(http.StatusConflict, "job %q already exists in namespace %q", j.Metadata.Name, create.Namespace)
		}
		c.remember(create, "job", key)
		if status := c.admitJob(key, clone(j)); status != nil {
			return nil, status
		}
	}
	return c.waitJob(ctx, key, create.Wait)
}

func (c *Cluster) admitJob(key string, j *api.Job) *api.Status {
	request, status := api.MemberRequest(j.Spec.Template.Spec)
	if status != nil {
		return status
	}
	priority, status := api.PriorityOf(j.Spec.Priority, j.Spec.PriorityClass)
	if status != nil {
		return status
	}
	j.Metadata.UID = fmt.Sprintf("job-%04d", len(c.jobs)+1)
	j.Metadata.ResourceVersion = strconv.Itoa(c.revision + 1)
	j.Metadata.CreationTimestamp = c.stamp()
	c.jobs[key] = j
	first, growth, _ := api.JobUnits(j)
	size, member := first, 0
	for n := range 1 + growth {
		u := &unit{
			key: key, request: request, selector: j.Spec.Template.Spec.Scheduling.NodeSelector,
			class: j.Spec.PriorityClass, terminating: j.Spec.ActiveDeadlineSeconds != nil,
			consumer: c.consumerOf(fmt.Sprintf("%s/job/%s/%d", j.Metadata.Namespace, j.Metadata.Name, n),
				j.Metadata.Namespace, size, request, &j.Spec.Template.Spec, priority),
		}
		for range size {
			a := &api.Allocation{Metadata: j.Spec.Template.Metadata, Spec: j.Spec.Template.Spec}
			a.Metadata.Name, a.Metadata.Namespace = fmt.Sprintf("%s-%d", j.Metadata.Name, member), j.Metadata.Namespace
			a.Status.Job, a.Status.Member = j.Metadata.Name, member
			u.members = append(u.members, fmt.Sprintf("%s-%d", key, member))
			c.admit(u.members[len(u.members)-1], clone(a))
			member++
		}
		c.queue = append(c.queue, u)
		size = 1
	}
	c.schedule()
	c.touch()
	return nil
}

// refreshJob computes a job's status from its members.
func (c *Cluster) refreshJob(key string) {
	j := c.jobs[key]
	if j.Status.Phase.Ended() {
		return
	}
	s := api.JobStatus{Phase: api.Queued, StartTime: j.Status.StartTime}
	for i := range j.Members() {
		a := c.allocations[fmt.Sprintf("%s-%d", key, i)]
		if a == nil {
			continue
		}
		s.Allocations = append(s.Allocations, api.JobMember{Name: a.Metadata.Name, Node: a.Status.NodeName, Phase: a.Status.Phase})
		if a.Status.Phase == api.Running {
			s.Active++
			s.Phase = api.Running
			s.StartTime = a.Status.StartTime
		} else if s.Message == "" {
			s.QueuePosition, s.Message = a.Status.QueuePosition, a.Status.Message
		}
	}
	if s.Phase == api.Queued {
		s.Conditions = []api.Condition{{Type: "Queued", Status: "True", Reason: "WaitingForResources", Message: s.Message}}
	}
	j.Status = s
}

func (c *Cluster) waitJob(ctx context.Context, key string, wait time.Duration) (*api.Job, error) {
	c.await(ctx, wait, func() bool {
		j := c.jobs[key]
		return j == nil || j.Status.Phase != api.Queued
	})
	if j := c.jobs[key]; j != nil {
		return clone(j), nil
	}
	return nil, notFound("job", key)
}

// GetJob implements rest.Jobs.
func (c *Cluster) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waitJob(ctx, namespace+"/"+name, wait)
}

// ListJobs implements rest.Jobs.
func (c *Cluster) ListJobs(_ context.Context, namespace string, p rest.Page[api.Job]) (*api.JobList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &api.JobList{Metadata: api.ListMeta{ResourceVersion: strconv.Itoa(c.revision)}}
	list.Items, list.Metadata.Continue = p.Of(inNamespace(c.jobs, namespace), func(key string) *api.Job { return clone(c.jobs[key]) })
	return list, nil
}

// end stops all members of a job and removes them.
func (c *Cluster) end(key string) {
	for i := range c.jobs[key].Members() {
		member := fmt.Sprintf("%s-%d", key, i)
		if a := c.allocations[member]; a != nil {
			c.stop(member, a, api.Cancelled)
			delete(c.allocations, member)
		}
	}
}

// CancelJob implements rest.Jobs.
func (c *Cluster) CancelJob(_ context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	j := c.jobs[key]
	if j == nil {
		return nil, notFound("job", key)
	}
	if !j.Status.Phase.Ended() {
		c.end(key)
		j.Status = api.JobStatus{Phase: api.Cancelled, Message: "cancelled: " + o.Reason}
		c.schedule()
		c.touch()
	}
	return clone(j), nil
}

// DeleteJob implements rest.Jobs.
func (c *Cluster) DeleteJob(_ context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	j := c.jobs[key]
	if j == nil {
		return nil, notFound("job", key)
	}
	c.end(key)
	delete(c.jobs, key)
	j.Metadata.DeletionTimestamp, j.Metadata.DeletionGracePeriodSeconds = c.stamp(), o.GracePeriodSeconds
	j.Status = api.JobStatus{Phase: api.Terminating}
	c.schedule()
	c.touch()
	return clone(j), nil
}

// ExplainJob implements rest.Jobs.
func (c *Cluster) ExplainJob(_ context.Context, namespace, name string) (*api.Explanation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	j := c.jobs[key]
	if j == nil {
		return nil, notFound("job", key)
	}
	for _, u := range c.queue {
		if u.key == key {
			return c.explain(u), nil
		}
	}
	return &api.Explanation{
		Namespace: namespace, Name: name, Phase: j.Status.Phase, Summary: "it is " + string(j.Status.Phase),
		Members: j.Members(), Fit: j.Status.Active,
	}, nil
}

// inNamespace are the keys of a namespace's objects, or with "" all.
func inNamespace[T any](objects map[string]T, namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range objects {
			if (namespace == "" || strings.HasPrefix(key, namespace+"/")) && !yield(key) {
				return
			}
		}
	}
}
