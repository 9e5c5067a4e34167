package resttest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// consumerOf is what a unit is charged with: its members' requests, to the
// groups that its namespace is bound to or its own specification names.
func (c *Cluster) consumerOf(id, namespace string, members int, request resource.Request, spec *api.AllocationSpec, priority int32) quota.ConsumerSpec {
	groups := map[string]string{}
	if b := c.quota.bindings[namespace]; b != nil {
		maps.Copy(groups, b.Spec.Groups)
	}
	demand := api.QuotaDemand{}
	if spec.Quota != nil {
		demand = *spec.Quota
	}
	maps.Copy(groups, demand.Groups)
	s := quota.ConsumerSpec{ID: id, Owner: namespace}
	for tree, group := range groups {
		s.Demands = append(s.Demands, quota.Demand{
			Tree: tree, Group: group, Request: request.Vector().Scaled(int64(members)),
			Priority: int(priority), Type: demand.Type, Unpreemptable: demand.Unpreemptable,
		})
	}
	slices.SortFunc(s.Demands, func(a, b quota.Demand) int {
		return cmp.Compare(a.Tree, b.Tree)
	})
	return s
}

// refused says which quotas have no room for a unit.
func (c *Cluster) refused(u *unit) []resource.Reason {
	namespace, _ := split(u.key)
	want := u.counted()
	for _, key := range sortedKeys(c.quota.limits) {
		q := c.quota.limits[key]
		if q.Metadata.Namespace != namespace || !q.Spec.Matches(u.class, u.terminating) {
			continue
		}
		if reasons := overLimit(q, c.usedOf(q), want); len(reasons) > 0 {
			return reasons
		}
	}
	trial := c.quota.try(u.consumer, func(quota.Result, quota.ConsumerView) {})
	switch {
	case trial == nil || trial.OK && len(trial.Preempted) == 0:
		return nil
	case !trial.OK:
		return []resource.Reason{trial.Refusal.Reason()}
	}
	return []resource.Reason{{Code: resource.ReasonQuota, Detail: fmt.Sprintf("would need the eviction of %v", trial.Preempted)}}
}

// queues reports whether the namespace's allocations wait where they are over
// quota.
func (c *Cluster) queues(namespace string) bool {
	b := c.quota.bindings[namespace]
	return b != nil && b.Spec.Admission == "queue"
}

// try allocates a consumer, lets seen look at it and takes everything back. A
// consumer that asks nothing of any tree is nil.
func (q *quotas) try(s quota.ConsumerSpec, seen func(quota.Result, quota.ConsumerView)) *quota.Result {
	must(q.manager.AddConsumer(s))
	defer func() { must(q.manager.RemoveConsumer(s.ID)) }()
	r, err := q.manager.TryAllocateForest(everything, s.ID)
	if err != nil {
		return nil
	}
	r.Preempted, r.Placed = slices.Clone(r.Preempted), slices.Clone(r.Placed)
	v, err := q.manager.Consumer(s.ID)
	must(err)
	seen(r, v)
	must(q.manager.UndoAllocateForest(everything, s.ID))
	return &r
}

// charge counts a unit that starts and that refused has let pass.
func (c *Cluster) charge(u *unit) {
	c.quota.charged = append(c.quota.charged, u)
	must(c.quota.manager.AddConsumer(u.consumer))
	if _, err := c.quota.manager.AllocateForest(everything, u.consumer.ID); err != nil && !errors.Is(err, quota.ErrUnknown) {
		panic(err)
	}
}

// discharge stops counting the unit of a member that ends; members of a unit
// end together.
func (c *Cluster) discharge(member string) {
	i := slices.IndexFunc(c.quota.charged, func(u *unit) bool { return slices.Contains(u.members, member) })
	if i < 0 {
		return
	}
	id := c.quota.charged[i].consumer.ID
	c.quota.charged = slices.Delete(c.quota.charged, i, i+1)
	c.quota.manager.DeallocateForest(everything, id)
	must(c.quota.manager.RemoveConsumer(id))
}

// usedOf is what the units under a quota hold.
func (c *Cluster) usedOf(q *api.ResourceQuota) resource.Vector {
	used := resource.Vector{}
	for _, u := range c.quota.charged {
		if namespace, _ := split(u.key); namespace == q.Metadata.Namespace && q.Spec.Matches(u.class, u.terminating) {
			used.Add(u.counted())
		}
	}
	return used
}

// counted is what a unit takes of resource quotas.
func (u *unit) counted() resource.Vector {
	v := u.request.Vector().Scaled(int64(len(u.members)))
	v[api.Pods] = int64(len(u.members))
	return v
}

func overLimit(q *api.ResourceQuota, used, want resource.Vector) []resource.Reason {
	var reasons []resource.Reason
	hard, _ := q.Spec.Limits()
	for _, name := range hard.Names() {
		if want[name] > 0 && resource.SaturatingAdd(used[name], want[name]) > hard[name] {
			reasons = append(reasons, resource.Reason{
				Code: resource.ReasonQuota, Resource: name, Want: resource.SaturatingAdd(used[name], want[name]), Have: hard[name],
				Detail: quota.Sentence(name, hard[name], want[name], used[name]),
			})
		}
	}
	return reasons
}
