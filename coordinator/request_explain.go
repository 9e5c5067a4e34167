package coordinator

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
)

// This file serves questions whose answers need decisions. They change nothing.

type (
	// explainAllocation and explainJob ask why something waits; the result is an
	// api.Explanation. Of a job its first unit that waits is explained.
	explainAllocation struct{ namespace, name string }
	explainJob        struct{ namespace, name string }
	// explainQuota asks where an allocation or a job is charged; the result is an
	// api.QuotaExplanation.
	explainQuota struct{ namespace, name string }
	// tryQuota asks what would become of a consumer; the result is an
	// api.QuotaDryRun.
	tryQuota struct{ consumer quota.ConsumerSpec }
	// getQuotaTree and listQuotaTrees show trees with what is charged to them.
	getQuotaTree   struct{ name string }
	listQuotaTrees struct{}
)

func (r explainAllocation) serve(l *leader, c *call) {
	u, _, status := l.member(r.namespace, r.name)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.answer(l.explainUnit(u), nil)
}

func (r explainJob) serve(l *leader, c *call) {
	j, status := l.findJob(r.namespace, r.name)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.answer(l.explainUnit(j.firstWaiting()), nil)
}

// firstWaiting is the first unit that waits, else the first.
func (j *job) firstWaiting() *unit {
	return j.units[max(0, slices.IndexFunc(j.units, (*unit).waiting))]
}

func (r explainQuota) serve(l *leader, c *call) {
	if j := l.jobs[r.namespace+"/"+r.name]; j != nil {
		c.answer(l.standing(j.firstWaiting()), nil)
		return
	}
	u, _, status := l.member(r.namespace, r.name)
	if status != nil {
		c.answer(nil, api.Errorf(404, "no allocation and no job %s found in namespace %s", r.name, r.namespace))
		return
	}
	c.answer(l.standing(u), nil)
}

func (r tryQuota) serve(l *leader, c *call) {
	trial, status := l.tryQuota(r.consumer)
	c.answer(trial, status)
}

func (r getQuotaTree) serve(l *leader, c *call) {
	t, status := l.quotaTree(r.name)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.answer(l.quotaTreeObject(t), nil)
}

func (r listQuotaTrees) serve(l *leader, c *call) {
	list := &api.QuotaTreeList{Kind: "QuotaTreeList", Items: []api.QuotaTree{}}
	newest := l.floor
	for _, name := range slices.Sorted(maps.Keys(l.quotas.planted)) {
		list.Items = append(list.Items, *l.quotaTreeObject(l.quotas.planted[name]))
		newest = max(newest, l.quotas.planted[name].rev)
	}
	list.Metadata.ResourceVersion = at(api.ObjectMeta{}, newest).ResourceVersion
	c.answer(list, nil)
}
