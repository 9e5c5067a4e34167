package coordinator

import (
	"context"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// EvictOptions say whom to evict, and how.
type EvictOptions struct {
	// Namespace and Name are an allocation's, as clients see it; or Tx is the
	// transaction that holds it.
	Namespace, Name string
	Tx              resource.TxID
	// Node, where it is set, is one on which it must have a member.
	Node resource.NodeID
	// GraceSeconds is between notice and forced stop; nil is the default.
	GraceSeconds *int64
	Reason       string // "" is the default
}

// Evict ends an allocation under notice: all members of its unit. It returns
// once EVICTING is durable, with the transaction and the store's revision; for
// what is on its way out already, at once. An evicted allocation is Preempted,
// a job's unit goes back to its place in the queue.
//
// Errors are *api.Status: 404 for what is not there, or not on Node; 409 for
// what does not run.
func (c *Coordinator) Evict(ctx context.Context, o EvictOptions) (resource.TxID, resource.Revision, error) {
	e, err := c.evict(ctx, o)
	if err != nil {
		return "", 0, err
	}
	return e.tx, e.revision, nil
}

// eviction is one that is durable.
type eviction struct {
	tx       resource.TxID
	revision resource.Revision
	unit     string
	freed    resource.Vector // what leaves with it
	until    time.Time       // when its grace ends, as far as the leader knows
	ended    bool            // it holds nothing any more
}

func (c *Coordinator) evict(ctx context.Context, o EvictOptions) (eviction, error) {
	notice := txn.EvictAsked{GraceSeconds: defaultGrace, Reason: "evicted by an operator"}
	if o.GraceSeconds != nil {
		notice.GraceSeconds = *o.GraceSeconds
	}
	if o.Reason != "" {
		notice.Reason = o.Reason
	}
	var a *attempt
	leaving := false
	l, err := c.leading()
	if err != nil {
		return eviction{}, err
	}
	u, err := lookIn(ctx, l, func(l *leader) (*unit, *api.Status) {
		u, status := l.evictee(o)
		if status == nil {
			a, leaving = u.attempt, u.phase() == api.Terminating
			l.evict(u, notice)
		}
		return u, status
	})
	if err != nil {
		return eviction{}, err
	}
	if leaving {
		if err := l.stillThere(ctx, u); err != nil {
			return eviction{}, err
		}
	}
	return l.awaitNotice(ctx, u, a)
}

// stillThere is 404 for what was found on its way out and has ended: that may
// have landed, and been shown by others, before this leader has heard of it.
func (l *term) stillThere(ctx context.Context, u *unit) error {
	l.settled(ctx)
	gone := false
	if err := l.do(ctx, func() { gone = u.gone }); err != nil {
		return failure(err)
	}
	if gone {
		return notFound("allocation", u.record.Namespace, u.record.Name)
	}
	return nil
}

// EvictFor serves muster.v1.Coordinator/Evict.
func (c *Coordinator) EvictFor(ctx context.Context, e rpc.Eviction) (resource.TxID, resource.Revision, error) {
	if e.Reason == "" {
		e.Reason = "evicted at node " + string(e.Node)
	}
	return c.Evict(ctx, EvictOptions{
		Namespace: e.Namespace, Name: e.Name, Tx: e.Tx, Node: e.Node, GraceSeconds: e.GraceSeconds, Reason: e.Reason,
	})
}

// evictee finds whom to evict, or says why nobody is.
func (l *leader) evictee(o EvictOptions) (*unit, *api.Status) {
	var u *unit
	if o.Tx != "" {
		a := l.attempts[o.Tx]
		if a == nil {
			return nil, api.Errorf(404, "transaction %s is not live", o.Tx)
		}
		u = a.unit
	} else {
		var status *api.Status
		if u, _, status = l.member(o.Namespace, o.Name); status != nil {
			return nil, status
		}
	}
	switch {
	case u.stored == 0: // it may yet come to nothing, and reads do not show it
		return nil, notFound("allocation", u.record.Namespace, u.record.Name)
	case u.attempt == nil || u.attempt.machine.Undecided():
		return nil, api.Errorf(409, "%s is %s: nothing of it runs that could be evicted", u.path, u.phase())
	case o.Node != "" && !slices.Contains(u.attempt.machine.Nodes(), o.Node):
		return nil, api.Errorf(404, "%s has no member on node %s", u.path, o.Node)
	}
	return u, nil
}

// awaitNotice waits until an attempt's eviction, or its end, is durable.
func (l *term) awaitNotice(ctx context.Context, u *unit, a *attempt) (eviction, error) {
	for {
		var e eviction
		var changed <-chan struct{}
		settled := false
		if err := l.do(ctx, func() {
			changed = l.changes(u.path)
			settled = u.gone || u.attempt != a || u.phase() == api.Terminating
			e = eviction{
				tx: a.machine.ID(), revision: a.machine.Revision(), unit: u.path, freed: u.charge.Request.Clone(), ended: u.attempt != a, until: l.now,
			}
			switch { // a new leader does not know when notice was given
			case a.notice != nil && !a.noticed.IsZero():
				e.until = a.noticed.Add(time.Duration(a.notice.GraceSeconds) * time.Second)
			case a.notice != nil:
				e.until = e.until.Add(time.Duration(a.notice.GraceSeconds) * time.Second)
			case u.ending != nil:
				e.until = e.until.Add(time.Duration(u.ending.GraceSeconds) * time.Second)
			}
		}); err != nil {
			return eviction{}, failure(err)
		}
		if settled {
			return e, nil
		}
		select {
		case <-changed:
		case <-l.ended:
			return eviction{}, failure(errDeposed)
		case <-ctx.Done():
			return eviction{}, failure(ctx.Err())
		}
	}
}
