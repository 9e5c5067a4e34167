package coordinator

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// reclaim is one that is carried out.
type reclaim struct {
	term   *term
	object *api.QuotaReclaim
	// chosen are the units to end, in the order of object.Units; of a job its
	// first that was chosen.
	chosen []*unit
}

// ReclaimQuota implements rest.Quotas.
func (c *Coordinator) ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	options := api.ReclaimOptions{GracePeriodSeconds: grace}
	if status := options.Validate(); status != nil {
		return nil, status
	}
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	r, err := askIn(ctx, l, func(l *leader, answer func(*reclaim, *api.Status)) {
		l.inTurn(func(done func()) { // a tree that is being changed is judged by what it becomes
			defer done()
			r, status := l.overdrawn(tree)
			if status != nil || dryRun {
				if r != nil {
					r.object.DryRun, r.chosen = true, nil
				}
				answer(r, status)
				return
			}
			l.endReclaimed(r, grace, func(status *api.Status) { answer(r, status) })
		})
	})
	if err != nil {
		return nil, err
	}
	r.term = l
	if err := r.await(ctx); err != nil {
		return nil, err
	}
	r.object.Summary = r.object.Summarize()
	return r.object, nil
}

// overdrawn chooses who has to end for a tree's sake. Jobs are chosen whole,
// since nobody may end a member alone, and whatever is ending already counts as
// gone.
func (l *leader) overdrawn(tree string) (*reclaim, *api.Status) {
	if _, status := l.quotaTree(tree); status != nil {
		return nil, status
	}
	found, err := l.quotas.trees.Overdrawn(tree, quota.Ties{
		Together: objectOf,
		Leaving:  func(path string) bool { return l.units[path].leaving() },
	})
	must(err)
	r := &reclaim{object: &api.QuotaReclaim{
		Kind: api.KindQuotaReclaim, Tree: tree, Units: []api.QuotaReclaimed{}, Nodes: overdrafts(found.Over), Remaining: overdrafts(found.Remaining),
	}}
	requests := map[string]resource.Vector{}
	for _, e := range found.End {
		u := l.units[e.Consumer]
		object := objectOf(e.Consumer)
		if requests[object] == nil {
			requests[object] = resource.Vector{}
			r.chosen = append(r.chosen, u)
			r.object.Units = append(r.object.Units, api.QuotaReclaimed{
				Kind: u.kind(), Consumer: u.record.Namespace + "/" + u.record.Name, Node: e.Node, Priority: u.record.Priority,
			})
		}
		requests[object].Add(u.charge.Request)
	}
	for i, u := range r.chosen {
		r.object.Units[i].Request = api.Amounts(requests[objectOf(u.path)])
	}
	return r, nil
}

// objectOf is a unit's path without its number: units that share it are one
// allocation's or one job's.
func objectOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// kind is the kind of the object that the unit belongs to.
func (u *unit) kind() string {
	if u.job != nil {
		return api.KindJob
	}
	return api.KindAllocation
}

// leaving reports whether the unit's end has been asked for.
func (u *unit) leaving() bool {
	return u.ending != nil || u.job != nil && u.job.record.Cancelled != nil
}

func overdrafts(found []quota.Overdraft) []api.QuotaOverdraft {
	all := make([]api.QuotaOverdraft, 0, len(found))
	for _, o := range found {
		all = append(all, api.QuotaOverdraft{Node: o.Node, Over: quantities(o.Over)})
	}
	return all
}

// endReclaimed ends what was chosen as its owner would: an allocation is
// deleted and a job cancelled. done is called in the loop, once the
// cancellations are durable or one was not taken.
func (l *leader) endReclaimed(r *reclaim, grace *int64, done func(*api.Status)) {
	var refused *api.Status
	waits := 1
	settled := func(status *api.Status) {
		if status != nil && status.Code != 404 { // a job that is gone has ended
			refused = status
		}
		if waits--; waits == 0 {
			done(refused)
		}
	}
	for i, u := range r.chosen {
		asked := asked(api.DeleteOptions{
			GracePeriodSeconds: grace,
			Reason:             fmt.Sprintf("reclaimed: node %s of quota tree %s is over its quota", r.object.Units[i].Node, r.object.Tree),
		})
		l.out.info("reclaimed", "unit", u.path, "tree", r.object.Tree, "node", r.object.Units[i].Node, "grace_seconds", asked.GraceSeconds)
		if u.job == nil {
			l.end(u, asked)
			continue
		}
		waits++
		l.cancelJob(u.job, asked, false, settled)
	}
	settled(nil)
}

// await waits until every allocation's release is durable.
func (r *reclaim) await(ctx context.Context) error {
	for _, u := range r.chosen {
		if u.job != nil {
			continue // that its cancellation is durable was waited for
		}
		if err := r.term.awaitEnding(ctx, u); err != nil {
			return failure(err)
		}
		var ends bool
		if err := r.term.do(ctx, func() { ends = u.gone || u.ending != nil }); err != nil {
			return failure(err)
		}
		if !ends {
			return api.Errorf(503, "quota tree %s: the store did not take the end of %s; ask again", r.object.Tree, u.path)
		}
	}
	return nil
}
