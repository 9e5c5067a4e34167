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
		for _, s := range v.Seats {
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

// seats shows where a consumer is counted.
func seats(v quota.ConsumerView) []api.QuotaSeat {
	list := make([]api.QuotaSeat, 0, len(v.Seats))
	for _, s := range v.Seats {
		seat := api.QuotaSeat{
			Tree: s.Tree, Group: s.Demand.Group, Request: api.Amounts(s.Request), Priority: int32(s.Priority), Unpreemptable: s.Unpreemptable,
		}
		if s.Allocated {
			seat.Group, seat.Node, seat.BorrowsFrom, seat.Claimants = s.Group, s.Node, s.BorrowsFrom, s.Claimants
		}
		list = append(list, seat)
	}
	return list
}

// ExplainQuota implements rest.Quotas.
func (c *Cluster) ExplainQuota(_ context.Context, namespace, name string) (*api.QuotaStanding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	standing := &api.QuotaStanding{Consumer: key, Seats: []api.QuotaSeat{}}
	switch a, j := c.allocations[key], c.jobs[key]; {
	case j != nil:
		standing.Phase = j.Status.Phase
	case a != nil:
		standing.Phase = a.Status.Phase
	default:
		return nil, notFound("consumer", key)
	}
	for _, u := range c.quota.charged {
		if u.key == key {
			v, err := c.quota.manager.Consumer(u.consumer.ID)
			must(err)
			standing.Seats = append(standing.Seats, seats(v)...)
			standing.Summary = "it is charged"
		}
	}
	for _, u := range c.queue {
		if u.key == key {
			standing.Seats = append(standing.Seats, seats(unseated(u.consumer))...)
			standing.Reasons = c.refused(u)
			standing.Summary = "it waits for other reasons than quota"
			if len(standing.Reasons) > 0 {
				standing.Summary = "it waits: " + standing.Reasons[0].Detail
			}
			break
		}
	}
	if standing.Summary == "" {
		standing.Summary = "it holds nothing"
	}
	return standing, nil
}

// unseated is a consumer that is not allocated.
func unseated(s quota.ConsumerSpec) quota.ConsumerView {
	v := quota.ConsumerView{ID: s.ID, Owner: s.Owner}
	for _, d := range s.Demands {
		v.Seats = append(v.Seats, quota.SeatView{Demand: d})
	}
	return v
}

// TryQuota implements rest.Quotas.
func (c *Cluster) TryQuota(_ context.Context, consumer []byte) (*api.QuotaTrial, error) {
	s, _, err := quotajson.Consumer(consumer, quotajson.Natural)
	if err != nil {
		return nil, api.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.quota.manager.ConsumerIDs(), s.ID) {
		return nil, api.Errorf(http.StatusConflict, "spec.id: %q is charged already", s.ID)
	}
	trial := &api.QuotaTrial{Admitted: true, Summary: "it is charged to no tree"}
	for _, d := range s.Demands {
		if c.quota.trees[d.Tree] == nil {
			return nil, api.Errorf(http.StatusUnprocessableEntity, "spec.trees: there is no tree %q", d.Tree)
		}
	}
	c.quota.try(s, func(r quota.Result, v quota.ConsumerView) {
		trial.Admitted = r.OK && len(r.Preempted) == 0
		trial.Seats, trial.Victims = seats(v), r.Preempted
		for _, m := range c.quota.manager.Moves() {
			if m.Consumer != s.ID && m.To != "" && !slices.Contains(trial.Moved, m.Consumer) {
				trial.Moved = append(trial.Moved, m.Consumer)
			}
		}
		switch {
		case !r.OK:
			trial.Reasons = []resource.Reason{r.Refusal.Reason()}
			trial.Summary = r.Refusal.String()
		case len(r.Preempted) > 0:
			trial.Summary = fmt.Sprintf("it would need %d evictions", len(r.Preempted))
		default:
			trial.Summary = "it would be admitted"
		}
	})
	return trial, nil
}
