package resttest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/resource"
)

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// written prints the amounts named, zeros included.
func written(v resource.Vector, names []resource.Name) map[resource.Name]string {
	out := make(map[resource.Name]string, len(names))
	for _, name := range names {
		out[name] = resource.FormatAmount(name, v[name])
	}
	return out
}

// showLimit fills in what is used of a quota; nil stays nil.
func (c *Cluster) showLimit(kept *api.ResourceQuota) *api.ResourceQuota {
	if kept == nil {
		return nil
	}
	q := clone(kept)
	q.APIVersion, q.Kind = api.APIVersion, api.KindResourceQuota
	hard, soft := q.Spec.Limits()
	used := c.usedOf(q)
	names := hard.Names()
	q.Status = api.ResourceQuotaStatus{Hard: written(hard, names), Used: written(used, names), Utilization: map[resource.Name]string{}}
	over := func(kind string, limits resource.Vector) {
		for _, name := range limits.Names() {
			if used[name] > limits[name] {
				q.Status.Conditions = append(q.Status.Conditions, api.Condition{Type: kind, Status: "True", Reason: string(name)})
				return
			}
		}
	}
	over("OverLimit", hard)
	over("SoftExceeded", soft)
	for _, name := range names {
		if hard[name] > 0 {
			q.Status.Utilization[name] = fmt.Sprintf("%d%%", int64(100*float64(used[name])/float64(hard[name])))
		}
	}
	return q
}

// showTree fills in how a tree stands; nil stays nil.
func (c *Cluster) showTree(kept *api.QuotaTree) *api.QuotaTree {
	if kept == nil {
		return nil
	}
	t := clone(kept)
	t.APIVersion, t.Kind = api.APIVersion, api.KindQuotaTree
	shape, err := c.quota.manager.Shape(t.Metadata.Name)
	must(err)
	nodes, err := c.quota.manager.Nodes(t.Metadata.Name)
	must(err)
	t.Status = api.QuotaTreeStatus{Root: shape.Root, Dangling: shape.Dangling, OtherRoots: shape.OtherRoots, Orphans: shape.Orphans, Cyclic: shape.Cyclic}
	for _, u := range slices.SortedFunc(slices.Values(c.quota.charged), consumerOrder) {
		v, err := c.quota.manager.Consumer(u.consumer.ID)
		must(err)
		for _, s := range v.Placements {
			if s.Tree == t.Metadata.Name && (!s.Allocated || s.GroupGone) {
				t.Status.Detached = append(t.Status.Detached, v.ID)
			}
		}
	}
	for _, n := range nodes {
		names := n.Quota.Names()
		s := api.QuotaNodeStatus{
			Name: n.Name, Parent: n.Parent, Depth: n.Depth, Hard: n.Hard, Leaf: n.Leaf, Consumers: n.Consumers,
			Quota: written(n.Quota, names), Allocated: written(n.Allocated, names), Own: api.Amounts(n.Own),
			Borrowed: api.Amounts(n.Borrowed), Lent: api.Amounts(n.Lent),
		}
		for _, name := range names {
			if n.Allocated[name] > n.Quota[name] {
				s.OverQuota = append(s.OverQuota, name)
			}
		}
		t.Status.Nodes = append(t.Status.Nodes, s)
	}
	return t
}

// placements shows where a consumer is counted.
func placements(v quota.ConsumerView) []api.QuotaPlacement {
	list := make([]api.QuotaPlacement, 0, len(v.Placements))
	for _, s := range v.Placements {
		placement := api.QuotaPlacement{
			Tree: s.Tree, Group: s.Demand.Group, Request: api.Amounts(s.Request), Priority: int32(s.Priority), Unpreemptable: s.Unpreemptable,
		}
		if s.Allocated {
			placement.Group, placement.Node, placement.BorrowsFrom, placement.ReclaimableBy = s.Group, s.Node, s.BorrowsFrom, s.ReclaimableBy
		}
		list = append(list, placement)
	}
	return list
}

// ExplainQuota implements rest.Quotas.
func (c *Cluster) ExplainQuota(_ context.Context, namespace, name string) (*api.QuotaExplanation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	explanation := &api.QuotaExplanation{Consumer: key, Placements: []api.QuotaPlacement{}}
	switch a, j := c.allocations[key], c.jobs[key]; {
	case j != nil:
		explanation.Phase = j.Status.Phase
	case a != nil:
		explanation.Phase = a.Status.Phase
	default:
		return nil, notFound("consumer", key)
	}
	for _, u := range c.quota.charged {
		if u.key == key {
			v, err := c.quota.manager.Consumer(u.consumer.ID)
			must(err)
			explanation.Placements = append(explanation.Placements, placements(v)...)
			explanation.Summary = "it is charged"
		}
	}
	for _, u := range c.queue {
		if u.key == key {
			explanation.Placements = append(explanation.Placements, placements(unallocated(u.consumer))...)
			explanation.Reasons = c.refused(u)
			explanation.Summary = "it waits for other reasons than quota"
			if len(explanation.Reasons) > 0 {
				explanation.Summary = "it waits: " + explanation.Reasons[0].Detail
			}
			break
		}
	}
	if explanation.Summary == "" {
		explanation.Summary = "it holds nothing"
	}
	return explanation, nil
}

// unallocated is a consumer that is not allocated.
func unallocated(s quota.ConsumerSpec) quota.ConsumerView {
	v := quota.ConsumerView{ID: s.ID, Owner: s.Owner}
	for _, d := range s.Demands {
		v.Placements = append(v.Placements, quota.PlacementView{Demand: d})
	}
	return v
}

// TryQuota implements rest.Quotas.
func (c *Cluster) TryQuota(_ context.Context, consumer []byte) (*api.QuotaDryRun, error) {
	s, _, err := quotajson.Consumer(consumer, quotajson.Natural)
	if err != nil {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.quota.manager.ConsumerIDs(), s.ID) {
		return nil, api.Errorf(http.StatusConflict, "spec.id: %q is charged already", s.ID)
	}
	dryRun := &api.QuotaDryRun{Admitted: true, Summary: "it is charged to no tree"}
	for _, d := range s.Demands {
		if c.quota.trees[d.Tree] == nil {
			return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.trees: there is no tree %q", d.Tree)
		}
	}
	c.quota.try(s, func(r quota.Result, v quota.ConsumerView) {
		dryRun.Admitted = r.OK && len(r.Preempted) == 0
		dryRun.Placements, dryRun.Victims = placements(v), r.Preempted
		for _, m := range c.quota.manager.Moves() {
			if m.Consumer != s.ID && m.To != "" && !slices.Contains(dryRun.Moved, m.Consumer) {
				dryRun.Moved = append(dryRun.Moved, m.Consumer)
			}
		}
		switch {
		case !r.OK:
			dryRun.Reasons = []resource.Reason{r.Refusal.Reason()}
			dryRun.Summary = r.Refusal.String()
		case len(r.Preempted) > 0:
			dryRun.Summary = fmt.Sprintf("it would need %d evictions", len(r.Preempted))
		default:
			dryRun.Summary = "it would be admitted"
		}
	})
	return dryRun, nil
}
