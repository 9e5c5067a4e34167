package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// DrainNode cordons a node and gives notice to every unit with a member there. The
// result is an *api.Drain, once all that is durable. A repeated drain gives notice
// to the units that have come since, and counts on.
type DrainNode struct {
	Node   resource.NodeID
	Notice txn.EvictAsked
}

// drainPatience is how long after its grace an allocation may be on the node before
// its eviction counts as failed.
const drainPatience = time.Minute

// occupant is a unit with members on a node that is drained.
type occupant struct {
	unit    *work.Unit
	attempt *work.Attempt
	members int
}

func (r DrainNode) serve(l *Leader, c *desk.Call) {
	var left []occupant
	l.changeNodeThen(c, r.Node, change{cordons: true, of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		drain := record.Drain{Began: l.post.Stamp()}
		if spec.Drain != nil {
			drain = *spec.Drain
		}
		left, _ = l.occupants(r.Node)
		for _, at := range left {
			if spec.Drain == nil || at.isNew(r.Node) {
				drain.Allocations += at.members
			}
		}
		spec.Unschedulable, spec.Drain = true, &drain
		return spec, nil
	}}, func(*node) {
		c.Begin()
		if person := c.Person(); person != "" {
			r.Notice.Reason = record.DrainedFor(r.Notice.Reason, person)
		}
		for _, at := range left {
			at.attempt.SetDrained(r.Node)
			if at.unit.Attempt == at.attempt {
				l.evict(at.unit, r.Notice)
			}
		}
		l.awaitNotices(c, r.Node, left)
	})
}

// isNew reports whether the drain of a node has not counted the members yet: they
// have come since it began. What a leader before this one counted has notice.
func (o occupant) isNew(node resource.NodeID) bool {
	return !o.attempt.Drained[node] && o.attempt.Notice == nil && o.unit.Phase() != api.Terminating
}

// occupants are the units with members on a node; coming is the number of the
// members that were promised before the agent knew of the cordon, and whose
// commit may be on its way.
func (l *Leader) occupants(node resource.NodeID) (on []occupant, coming int) {
	for _, tx := range l.attemptsOn(node) {
		a := l.work.Attempts[tx]
		if a.Machine.Undecided() {
			coming += len(a.Requests[node])
			continue
		}
		vote, _ := a.Machine.Vote(node)
		on = append(on, occupant{a.Unit, a, len(vote.Members)})
	}
	return on, coming
}

// awaitNotices waits for the notices of the units that are left, one after the
// other, and answers.
func (l *Leader) awaitNotices(c *desk.Call, node resource.NodeID, left []occupant) {
	if len(left) == 0 {
		c.Answer(l.drainOf(node), nil)
		return
	}
	at := left[0]
	c.Wait(changesOf(at.unit), func() bool {
		if _, durable := l.evictionOf(at.unit, at.attempt); !durable {
			return false
		}
		l.awaitNotices(c, node, left[1:])
		return true
	})
}

// drainOf is the progress of a node's drain.
func (l *Leader) drainOf(id resource.NodeID) *api.Drain {
	on, coming := l.occupants(id)
	d := &api.Drain{Status: "Draining"}
	p := &d.Progress
	here, last := 0, time.Time{}
	for _, at := range on {
		here += at.members
		e, noticed := l.evictionOf(at.unit, at.attempt)
		if noticed && e.Until.After(last) {
			last = e.Until
		}
		if noticed && l.post.Now().After(e.Until.Add(drainPatience)) {
			p.Failed += at.members
		}
	}
	if n := l.nodes[id]; n != nil && n.spec.Drain != nil { // it may be uncordoned in the meantime
		p.Evicted = max(0, n.spec.Drain.Allocations-here)
	}
	p.Pending = here - p.Failed + coming
	d.AllocationsToEvict = p.Evicted + p.Pending + p.Failed
	if here+coming == 0 {
		d.Status = "Drained"
	}
	if !last.IsZero() {
		if last.Before(l.post.Now()) {
			last = l.post.Now()
		}
		d.EstimatedCompletionTime = post.Stamp(last)
	}
	return d
}
