package decisions

import (
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

// This file has the rules of which sleeping classes an event may help, over the
// data of the log. They are written apart from those of coordinator/sched, which
// they check.

// mayBeHelped reports whether an event may help a class that sleeps.
func (c *class) mayBeHelped(e *Event, labels map[resource.NodeID]*constraint.Labels) bool {
	mayUse := func(n Free) bool { return c.mayUse(&n, labels) }
	switch e.Kind {
	case All:
		return true
	case Freed:
		return c.sleep.waitsFor(e.Namespace, c.Namespace, e.Trees) || c.sleep.Borrows && c.sleep.isChargedTo(e.Trees)
	case Charged:
		return c.sleep.Code == ClaimFails && c.sleep.waitsFor("", c.Namespace, e.Trees)
	case Moved:
		return c.sleep.waitsFor("", c.Namespace, e.Trees) || c.sleep.Borrows // from other trees, too: the moved units may give way
	case Due:
		return c.sleep.Code == OverTree || c.sleep.Code == ClaimFails
	case Unleft:
		return c.sleep.Code == Leaving || c.sleep.Code == ClaimFails
	case Evictable:
		awaits := c.sleep.Code == NoVictims || c.sleep.Code == Leaving
		return c.sleep.Code == ClaimFails || awaits && c.Priority > e.Priority && (c.Subject != nil || slices.ContainsFunc(e.Nodes, mayUse))
	case Neighbour:
		return c.awaitsNeighbours() && e.Namespace == c.Namespace && c.isNeighbourOf(e.Neighbour.compile(e.Namespace))
	case Regrouped:
		return c.awaitsNeighbours()
	case Emptied:
		return c.sleep.Code == OverQueue && c.Queue == e.Queue
	case Grew:
		return slices.ContainsFunc(e.Nodes, mayUse)
	}
	return false
}

// awaitsNeighbours reports whether a place is missing under rules about other units.
func (c *class) awaitsNeighbours() bool {
	return c.Subject != nil && c.sleep.Code != OverLimit && c.sleep.Code != OverTree && c.sleep.Code != OverQueue
}

// isNeighbourOf reports whether rules of the class or of a unit are about each other, or
// the class joins the gang of the unit.
func (c *class) isNeighbourOf(u *constraint.Subject) bool {
	own := c.Subject.compile(c.Namespace)
	return c.Joins && own.Group == u.Group || own.Relations.Concerns(own, u) || u.Relations.KeepsApart(u, own)
}

// waitsFor reports whether a class of a namespace waits for quota of another
// namespace or of a tree.
func (s *Sleep) waitsFor(namespace, own string, trees []string) bool {
	switch {
	case s.Code == OverLimit, s.Quota && namespace == own:
		return namespace == own
	case s.Code == OverTree, s.Code == ClaimFails, s.Quota:
		return s.isChargedTo(trees)
	}
	return false
}

func (s *Sleep) isChargedTo(trees []string) bool {
	return slices.ContainsFunc(trees, func(t string) bool { return slices.Contains(s.Trees, t) })
}

// mayUse reports whether a member of the class may fit on a node, as it is or once
// others have given way there.
func (c *class) mayUse(n *Free, labels map[resource.NodeID]*constraint.Labels) bool {
	if n.Closed || !c.set.Allows(labels[n.Node]) {
		return false
	}
	switch c.sleep.Code {
	case NoPlace:
		return n.mayHold(&c.Request)
	case NoVictims, Leaving:
		return n.mayHold(&c.Request) || n.mayClear(&c.Request, func(h Held) bool { return !h.Any && h.Below == c.Priority })
	case ClaimFails:
		return n.mayHold(&c.Request) || n.mayClear(&c.Request, func(h Held) bool { return h.Any })
	case OverLimit, OverTree, OverQueue:
	}
	return false
}

// mayHold reports whether no amount that is free is too small for a member. An
// amount that the event does not have is not too small.
func (n *Free) mayHold(r *resource.Request) bool {
	if n.Full || n.GPUs < r.GPUs || n.CPU < r.CPU || n.Memory < r.Memory || n.Share < r.GPUShare || n.Cores < r.Cores {
		return false
	}
	for _, p := range n.Hugepages {
		if r.Hugepages > 0 && p.Size == r.HugepageSize && p.Free < r.Hugepages {
			return false
		}
	}
	for _, m := range n.MIG {
		if r.MIG > 0 && m.Profile == r.MIGProfile && m.Free < r.MIG {
			return false
		}
	}
	return n.hasCounts(r)
}

// hasCounts is mayHold for counted resources.
func (n *Free) hasCounts(r *resource.Request) bool {
	if !n.Counted {
		return true
	}
	free := resource.Vector{}
	for _, c := range n.Counts {
		free[c.Name] = c.Amount
	}
	for name, amount := range r.Counts.All() {
		if free[name] < amount {
			return false
		}
	}
	return true
}

// mayClear is mayHold once what others hold is free. An event that does not have
// the sum of what they hold leaves it open.
func (n *Free) mayClear(r *resource.Request, is func(Held) bool) bool {
	i := slices.IndexFunc(n.Held, is)
	if i < 0 {
		return true
	}
	h := n.Held[i]
	cores := resource.Millicores(r.Cores) * resource.WholeCPU
	return n.CPU+h.CPU >= r.CPU+cores && n.Memory+h.Memory >= r.Memory && n.GPU+h.GPU >= r.GPUMilli()
}
