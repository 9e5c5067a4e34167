package lead

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
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
func (l *Leader) evictee(o EvictOptions) (*work.Unit, *api.Status) {
	var u *work.Unit
	if o.Tx != "" {
		a := l.work.Attempts[o.Tx]
		if a == nil {
			return nil, api.Errorf(404, "transaction %s is not live", o.Tx)
		}
		u = a.Unit
	} else {
		var status *api.Status
		if u, _, status = l.member(o.Namespace, o.Name); status != nil {
			return nil, status
		}
	}
	switch {
	case u.Stored == 0: // it may yet come to nothing, and reads do not show it
		return nil, NotFound("allocation", u.Record.Namespace, u.Record.Name)
	case u.Attempt == nil || u.Attempt.Machine.Undecided():
		return nil, api.Errorf(409, "%s is %s: nothing of it runs that could be evicted", u.Path, u.Phase()).Because(api.FailedPrecondition)
	case o.Node != "" && !slices.Contains(u.Attempt.Machine.Nodes(), o.Node):
		return nil, api.Errorf(404, "%s has no member on node %s", u.Path, o.Node)
	}
	return u, nil
}

// evictionOf is the eviction, or the end, of an attempt; false while neither is
// durable.
func (l *Leader) evictionOf(u *work.Unit, a *work.Attempt) (e Eviction, durable bool) {
	if !u.Life.Gone() && u.Attempt == a && u.Phase() != api.Terminating {
		return e, false
	}
	e = Eviction{
		Tx: a.Machine.ID(), Revision: a.Machine.Revision(), Unit: u.Path, Freed: u.Charge.Request.Clone(), Until: l.post.Now(),
	}
	if u.Allocation != nil {
		e.Requested = u.Allocation.Spec.Resources.Requests
	}
	switch { // a record of an older version has no instant
	case a.Notice != nil:
		e.Until = cmp.Or(a.Noticed, l.post.Now()).Add(time.Duration(a.Notice.GraceSeconds) * time.Second)
	case u.Life.EndAsked():
		e.Until = cmp.Or(post.InstantOf(u.Life.Asked()), l.post.Now()).Add(time.Duration(u.Life.Ending().GraceSeconds) * time.Second)
	}
	return e, true
}
