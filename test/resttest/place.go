package resttest

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// placement is one member's place within an attempt.
type placement struct {
	host  *host
	grant resource.Assignment
}

// schedule starts every waiting unit that fits and has quota, oldest first; a
// unit that does not holds nothing.
func (c *Cluster) schedule() {
	waiting := c.queue[:0]
	for _, u := range c.queue {
		if len(c.refused(u)) > 0 {
			waiting = append(waiting, u)
			continue
		}
		placed := c.attempt(u, len(u.members))
		if len(placed) < len(u.members) {
			undo(placed)
			waiting = append(waiting, u)
			continue
		}
		c.charge(u)
		for i, key := range u.members {
			c.grants[key] = placed[i]
			c.start(c.allocations[key], placed[i])
		}
	}
	c.queue = waiting
	for i, u := range c.queue {
		for _, key := range u.members {
			a := c.allocations[key]
			a.Status.QueuePosition = i + 1
			a.Status.Message = c.explain(u).Summary
		}
	}
	for key := range c.jobs {
		c.refreshJob(key)
	}
}

// attempt places up to n members of a unit, first fit.
func (c *Cluster) attempt(u *unit, n int) []placement {
	var placed []placement
	for range n {
		for _, h := range c.nodes {
			if len(h.fits(u.request, u.selector)) == 0 {
				placed = append(placed, placement{host: h, grant: h.take(u.request)})
				break
			}
		}
	}
	return placed
}

func undo(placed []placement) {
	for _, p := range placed {
		p.host.give(p.grant)
	}
}

func (c *Cluster) start(a *api.Allocation, p placement) {
	now := c.stamp()
	a.Status.Phase = api.Running
	a.Status.NodeID, a.Status.NodeName = p.host.Name, string(p.host.Name)
	a.Status.StartTime = now
	a.Status.QueuePosition, a.Status.Message = 0, ""
	a.Status.AllocatedResources = api.Amounts(p.grant.Vector())
	a.Status.Assignment = p.host.status(p.grant)
	a.Status.Conditions = []api.Condition{
		{Type: "Scheduled", Status: "True", LastTransitionTime: now},
		{Type: "Ready", Status: "True", LastTransitionTime: now},
	}
}

// stop ends an allocation and frees what it holds; what waits may then start.
func (c *Cluster) stop(key string, a *api.Allocation, phase api.Phase) {
	for i, u := range c.queue {
		for j, m := range u.members {
			if m == key {
				u.members = append(u.members[:j:j], u.members[j+1:]...)
				if len(u.members) == 0 {
					c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
				}
				a.Status.Phase = phase
				a.Status.QueuePosition, a.Status.Message = 0, ""
				return
			}
		}
	}
	if p, held := c.grants[key]; held {
		p.host.give(p.grant)
		delete(c.grants, key)
		c.discharge(key)
	}
	a.Status.Phase = phase
}

// explain says what a waiting unit lacks now.
func (c *Cluster) explain(u *unit) *api.Explanation {
	namespace, name := split(u.key)
	e := &api.Explanation{Namespace: namespace, Name: name, Phase: api.Queued, Members: len(u.members), Attempts: 1}
	for i, q := range c.queue {
		if q == u {
			e.QueuePosition = i + 1
		}
	}
	placed := c.attempt(u, len(u.members))
	e.Fit = len(placed)
	perNode := map[*host]int{}
	for _, p := range placed {
		perNode[p.host]++
	}
	undo(placed)
	total := resource.Vector{}
	for _, h := range c.nodes {
		n := api.NodeExplanation{Node: h.Name, Fit: perNode[h]}
		if n.Fit == 0 {
			n.Reasons = h.fits(u.request, u.selector)
		}
		e.Nodes = append(e.Nodes, n)
		for _, free := range h.cpu {
			total[resource.CPU] += int64(free)
		}
		total[resource.Memory] += int64(h.memory)
		for _, free := range h.gpu {
			total[resource.GPU] += int64(free)
		}
	}
	want := u.request.Vector().Scaled(int64(len(u.members)))
	for _, r := range want.Names() {
		if want[r] > total[r] {
			e.Shortages = append(e.Shortages, resource.Reason{Code: resource.ReasonInsufficient, Resource: r, Want: want[r], Have: total[r]})
		}
	}
	if e.Quota = c.refused(u); len(e.Quota) > 0 {
		e.Summary = e.Quota[0].Detail
		return e
	}
	e.Summary = fmt.Sprintf("%d of %d members fit", e.Fit, e.Members)
	if len(e.Shortages) > 0 {
		s := e.Shortages[0]
		e.Summary += fmt.Sprintf(": short of %s %s", resource.FormatAmount(s.Resource, s.Short()), s.Resource)
	}
	return e
}
