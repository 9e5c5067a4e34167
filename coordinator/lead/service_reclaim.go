package lead

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// reclaim is one that is carried out.
type reclaim struct {
	object *api.QuotaReclaim
	// chosen are the units to end, in the order of object.Units; of a job its
	// first that was chosen.
	chosen []*work.Unit
}

// ReclaimQuota ends what a tree has too much of. Its result is an
// api.QuotaReclaim, once that is durable.
type ReclaimQuota struct {
	Tree   string
	DryRun bool
	Grace  *int64
}

func (r ReclaimQuota) serve(l *Leader, c *desk.Call) {
	l.changeInTurn(func(done func()) { // a tree that is being changed is judged by what it becomes
		defer done()
		found, status := l.chooseReclaimed(r.Tree)
		switch {
		case status != nil:
			c.Answer(nil, status)
		case r.DryRun:
			found.object.DryRun = true
			found.object.Summary = found.object.Summarize()
			c.Answer(found.object, nil)
		default:
			l.endReclaimed(found, r.Grace, func(status *api.Status) {
				if status != nil {
					c.Answer(nil, status)
					return
				}
				c.Begin()
				l.awaitReclaimed(c, found, found.chosen)
			})
		}
	})
}

// chooseReclaimed chooses who has to end for a tree's sake. Jobs are chosen whole,
// since nobody may end a member alone, and whatever is ending already counts as
// gone.
func (l *Leader) chooseReclaimed(tree string) (*reclaim, *api.Status) {
	if _, status := l.quotaTree(tree); status != nil {
		return nil, status
	}
	found, err := l.quotas.Trees().Overdrawn(tree, quota.Ties{
		Together: objectOf,
		Leaving:  func(path string) bool { return l.work.Units[path].Leaving() },
	})
	must(err)
	r := &reclaim{object: &api.QuotaReclaim{
		Kind: api.KindQuotaReclaim, Tree: tree, Units: []api.QuotaReclaimed{}, Nodes: overdrafts(found.Over), Remaining: overdrafts(found.Remaining),
	}}
	requests := map[string]resource.Vector{}
	for _, e := range found.End {
		u := l.work.Units[e.Consumer]
		object := objectOf(e.Consumer)
		if requests[object] == nil {
			requests[object] = resource.Vector{}
			r.chosen = append(r.chosen, u)
			r.object.Units = append(r.object.Units, api.QuotaReclaimed{
				Kind: u.Kind(), Consumer: u.Record.Namespace + "/" + u.Record.Name, Node: e.Node, Priority: u.Record.Priority,
			})
		}
		requests[object].Add(u.Charge.Request)
	}
	for i, u := range r.chosen {
		r.object.Units[i].Request = api.Amounts(requests[objectOf(u.Path)])
	}
	return r, nil
}

// objectOf is a unit's path without its number: units that share it are one
// allocation's or one job's.
func objectOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }

func overdrafts(found []quota.Overdraft) []api.QuotaOverdraft {
	all := make([]api.QuotaOverdraft, 0, len(found))
	for _, o := range found {
		all = append(all, api.QuotaOverdraft{Node: o.Node, Over: shown.Quantities(o.Over)})
	}
	return all
}

// endReclaimed ends what was chosen as its owner would: an allocation is
// deleted and a job cancelled. done is called in the loop, once the
// cancellations are durable or one was not taken.
func (l *Leader) endReclaimed(r *reclaim, grace *int64, done func(*api.Status)) {
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
		asked := releaseFor(api.DeleteOptions{
			GracePeriodSeconds: grace,
			Reason:             fmt.Sprintf("reclaimed: node %s of quota tree %s is over its quota", r.object.Units[i].Node, r.object.Tree),
		})
		l.post.Info("reclaimed", "unit", u.Path, "tree", r.object.Tree, "node", r.object.Units[i].Node, "grace_seconds", asked.GraceSeconds)
		if u.Job == nil {
			l.end(u, asked)
			continue
		}
		waits++
		l.cancelJob(u.Job, cancellationOf(asked), settled)
	}
	settled(nil)
}

// awaitReclaimed waits for the units that are left, until every allocation's
// release is durable.
func (l *Leader) awaitReclaimed(c *desk.Call, r *reclaim, left []*work.Unit) {
	if len(left) == 0 {
		r.object.Summary = r.object.Summarize()
		c.Answer(r.object, nil)
		return
	}
	u := left[0]
	if u.Job != nil { // that its cancellation is durable was waited for
		l.awaitReclaimed(c, r, left[1:])
		return
	}
	c.Wait(changesOf(u), func() bool {
		switch {
		case !u.Life.Gone() && !u.Life.EndAsked():
			c.Answer(nil, api.Errorf(503, "quota tree %s: the store did not take the end of %s; ask again", r.object.Tree, u.Path))
		case !u.Life.Gone() && !u.Life.EndDurable():
			return false
		default:
			l.awaitReclaimed(c, r, left[1:])
		}
		return true
	})
}
