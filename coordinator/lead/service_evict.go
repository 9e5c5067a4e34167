package lead

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
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

// Eviction is one that is durable.
type Eviction struct {
	Tx       resource.TxID
	Revision resource.Revision
	Unit     string
	Freed    resource.Vector // the amounts that its members hold
	// Requested are an allocation's amounts as they were submitted; nil of a job.
	Requested map[resource.Name]string
	Until     time.Time // when its grace ends, as far as the leader knows
}

// evictee finds whom to evict, or says why nobody is.
func (l *Leader) evictee(o EvictOptions) (*unit, *api.Status) {
	var u *unit
	if o.Tx != "" {
		a := l.work.attempts[o.Tx]
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
		return nil, NotFound("allocation", u.record.Namespace, u.record.Name)
	case u.attempt == nil || u.attempt.machine.Undecided():
		return nil, api.Errorf(409, "%s is %s: nothing of it runs that could be evicted", u.path, u.phase()).Because(api.FailedPrecondition)
	case o.Node != "" && !slices.Contains(u.attempt.machine.Nodes(), o.Node):
		return nil, api.Errorf(404, "%s has no member on node %s", u.path, o.Node)
	}
	return u, nil
}

// evictionOf is the eviction, or the end, of an attempt; false while neither is
// durable.
func (l *Leader) evictionOf(u *unit, a *attempt) (e Eviction, durable bool) {
	if !u.life.Gone() && u.attempt == a && u.phase() != api.Terminating {
		return e, false
	}
	e = Eviction{
		Tx: a.machine.ID(), Revision: a.machine.Revision(), Unit: u.path, Freed: u.Charge.Request.Clone(), Until: l.post.Now(),
	}
	if u.allocation != nil {
		e.Requested = u.allocation.Spec.Resources.Requests
	}
	switch { // a record of an older version has no instant
	case a.notice != nil:
		e.Until = cmp.Or(a.noticed, l.post.Now()).Add(time.Duration(a.notice.GraceSeconds) * time.Second)
	case u.life.EndAsked():
		e.Until = cmp.Or(post.InstantOf(u.life.Asked()), l.post.Now()).Add(time.Duration(u.life.Ending().GraceSeconds) * time.Second)
	}
	return e, true
}
