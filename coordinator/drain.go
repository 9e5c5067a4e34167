package coordinator

import (
	"cmp"
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// PreemptAllocation implements rest.Evictions.
func (c *Coordinator) PreemptAllocation(ctx context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error) {
	reason := cmp.Or(p.Reason, "evicted by an operator")
	if p.InitiatedBy != "" {
		reason += " (" + p.InitiatedBy + ")"
	}
	e, err := c.evict(ctx, EvictOptions{Namespace: namespace, Name: p.TargetAllocation, GraceSeconds: p.GracePeriodSeconds, Reason: reason})
	if err != nil {
		return nil, err
	}
	return &api.Preemption{
		PreemptionID: string(e.tx), TargetAllocation: p.TargetAllocation, Unit: e.unit, Status: "Initiated",
		GracePeriodEnds: e.until.UTC().Format(time.RFC3339), ResourcesFreed: api.Amounts(e.freed),
	}, nil
}

// occupant is a unit with members on a node that is drained.
type occupant struct {
	unit    *unit
	attempt *attempt
	members int
}

// DrainNode implements rest.Evictions: it cordons the node, gives notice to
// every unit with a member there, and answers once all that is durable. A
// gang's members on other nodes leave with it.
func (c *Coordinator) DrainNode(ctx context.Context, name string, o api.DrainOptions) (*api.Drain, error) {
	if _, err := c.SetUnschedulable(ctx, name, true); err != nil {
		return nil, err
	}
	notice := txn.EvictAsked{GraceSeconds: defaultGrace, Reason: cmp.Or(o.Reason, "node "+name+" is drained")}
	if o.GracePeriodSeconds != nil {
		notice.GraceSeconds = *o.GracePeriodSeconds
	}
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	var left []occupant
	coming := 0 // members that were promised before the agent knew of the cordon
	if err := l.do(ctx, func() {
		for _, tx := range l.attemptsOn(resource.NodeID(name)) {
			a := l.attempts[tx]
			if a.machine.Undecided() { // its commit may be on its way
				coming += len(a.requests[resource.NodeID(name)])
				continue
			}
			vote, _ := a.machine.Vote(resource.NodeID(name))
			left = append(left, occupant{a.unit, a, len(vote.Members)})
			l.evict(a.unit, notice)
		}
	}); err != nil {
		return nil, failure(err)
	}
	d := &api.Drain{Status: "Drained"}
	if coming > 0 {
		d.Status, d.AllocationsToEvict, d.Progress.Pending = "Draining", coming, coming
	}
	var last time.Time
	for _, at := range left {
		e, err := l.awaitNotice(ctx, at.unit, at.attempt)
		if err != nil {
			return nil, err
		}
		if e.ended {
			continue
		}
		d.Status = "Draining"
		d.AllocationsToEvict += at.members
		d.Progress.Evicted += at.members
		if e.until.After(last) {
			last = e.until
		}
	}
	if !last.IsZero() {
		d.EstimatedCompletionTime = last.UTC().Format(time.RFC3339)
	}
	return d, nil
}
