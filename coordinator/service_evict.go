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
	return ask[eviction](ctx, c, evictUnit{o, notice})
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

// evictionOf is the eviction, or the end, of an attempt; false while neither is
// durable.
func (l *leader) evictionOf(u *unit, a *attempt) (e eviction, durable bool) {
	if !u.gone && u.attempt == a && u.phase() != api.Terminating {
		return e, false
	}
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
	return e, true
}
