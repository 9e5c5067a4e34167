package resttest

import (
	"context"
	"net/http"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// ReclaimQuota implements rest.Quotas.
func (c *Cluster) ReclaimQuota(_ context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	options := api.ReclaimOptions{GracePeriodSeconds: grace}
	if status := options.Validate(); status != nil {
		return nil, status
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quota.trees[tree] == nil {
		return nil, api.Errorf(http.StatusNotFound, "%q not found", tree)
	}
	found, err := c.quota.manager.Overdrawn(tree, quota.Ties{Together: objectOf})
	must(err)
	r := &api.QuotaReclaim{Tree: tree, DryRun: dryRun, Units: c.reclaimed(found.End), Nodes: overdrafts(found.Over), Remaining: overdrafts(found.Remaining)}
	r.Summary = r.Summarize()
	if dryRun {
		return r, nil
	}
	for _, u := range r.Units {
		if u.Kind == api.KindJob {
			c.end(u.Consumer)
			c.jobs[u.Consumer].Status = api.JobStatus{Phase: api.Cancelled, Message: "reclaimed: node " + u.Node + " of quota tree " + tree + " is over its quota"}
			continue
		}
		c.stop(u.Consumer, c.allocations[u.Consumer], api.Terminating)
		delete(c.allocations, u.Consumer)
	}
	c.schedule()
	c.touch()
	return r, nil
}

// objectOf is a consumer's ID without its number: jobs end whole.
func objectOf(id string) string { return id[:strings.LastIndexByte(id, '/')] }

// reclaimed shows consumers as the objects that they are of.
func (c *Cluster) reclaimed(end []quota.Reclaimed) []api.QuotaReclaimed {
	units := []api.QuotaReclaimed{}
	requests := map[string]resource.Vector{}
	var objects []string
	for _, e := range end {
		v, err := c.quota.manager.Consumer(e.Consumer)
		must(err)
		object := objectOf(e.Consumer)
		if requests[object] == nil {
			requests[object] = resource.Vector{}
			objects = append(objects, object)
			part := strings.Split(object, "/") // namespace, alloc or job, name
			kind := api.KindAllocation
			if part[1] == "job" {
				kind = api.KindJob
			}
			units = append(units, api.QuotaReclaimed{Kind: kind, Consumer: part[0] + "/" + part[2], Node: e.Node, Priority: int32(v.Placements[0].Priority)})
		}
		requests[object].Add(v.Placements[0].Request)
	}
	for i, object := range objects {
		units[i].Request = api.Amounts(requests[object])
	}
	return units
}

func overdrafts(found []quota.Overdraft) []api.QuotaOverdraft {
	all := make([]api.QuotaOverdraft, 0, len(found))
	for _, o := range found {
		all = append(all, api.QuotaOverdraft{Node: o.Node, Over: written(o.Over, o.Over.Names())})
	}
	return all
}
