package whatif

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// mostEnds bounds the units of which one hint may wait for the ends.
const mostEnds = 32

// ends looks for units whose ends make room: first in the quota that is short, then
// on nodes. None of them is superfluous.
func (h *helper) ends() {
	defer h.register(h.unit)()
	ended := h.endsForQuota()
	if ended == nil {
		return
	}
	undo := h.end(ended)
	ended = append(ended, h.endsForPlace()...)
	undo()
	if len(ended) == 0 || len(ended) > mostEnds || !h.worksWithout(ended) {
		return
	}
	for i := 0; i < len(ended) && len(ended) > 1; {
		if rest := slices.Delete(slices.Clone(ended), i, i+1); h.worksWithout(rest) {
			ended = rest
			continue
		}
		i++
	}
	h.add(Hint{Code: WaitFor, Ends: h.victims(ended)})
}

// end has units end, and returns what takes that back.
func (h *helper) end(paths []string) (undo func()) {
	nodes, charges := h.State.Checkpoint(), h.Trees.Checkpoint()
	discharged := map[resource.TxID]quota.Charge{}
	for _, path := range paths {
		o := h.State.Occupant(path)
		for i := range o.Parts {
			if n := h.State.Node(o.Parts[i].Node); n != nil && n.Host != nil && n.Free != nil {
				_ = h.State.Give(n, o.Parts[i].Assignment) // refused as a whole: nothing is freed
			}
		}
		h.Trees.DeallocateForest(h.Forest, path)
		if c, charged := h.Limits.Charged(o.Tx); charged {
			discharged[o.Tx] = c
			h.Limits.Discharge(o.Tx)
		}
	}
	return func() {
		for tx, c := range discharged {
			h.Limits.Charge(tx, c)
		}
		must(h.Trees.Rollback(charges))
		h.State.Rollback(nodes)
	}
}

// worksWithout reports whether the unit starts once these units have ended.
func (h *helper) worksWithout(paths []string) bool {
	if !h.mayTry() {
		return false
	}
	undo := h.end(paths)
	defer undo()
	return h.isAdmitted() && h.fits()
}

// isAdmitted reports whether quota has room for the unit, and nobody has to give way.
// The consumer of the unit is registered.
func (h *helper) isAdmitted() bool {
	short, _ := h.Admit(&h.unit.Unit)
	if short == nil {
		h.Undo(&h.unit.Unit)
	}
	return short == nil
}

// fits reports whether the unit has a place that can be committed.
func (h *helper) fits() bool {
	mark := h.State.Checkpoint()
	defer h.State.Rollback(mark)
	plan, ok := place.Place(h.State, h.unit.Demand)
	return ok && h.TooWide(plan) == ""
}

// endsForQuota returns units whose ends leave the unit enough quota: none where it
// has enough, nil where none help.
func (h *helper) endsForQuota() []string {
	short, _ := h.Admit(&h.unit.Unit)
	switch {
	case short == nil:
		h.Undo(&h.unit.Unit)
		return []string{}
	case short.Victims != nil:
		return short.Victims
	case short.Absent != nil:
		return nil
	}
	var charged []*cluster.Occupant
	for o := range h.State.Occupants() {
		if h.shares(o, short) {
			charged = append(charged, o)
		}
	}
	slices.SortFunc(charged, func(a, b *cluster.Occupant) int {
		return cmp.Or(cmp.Compare(gpusOf(b), gpusOf(a)), cmp.Compare(a.Started, b.Started), cmp.Compare(a.Unit, b.Unit))
	})
	var ended []string
	for _, o := range charged {
		if len(ended) == mostEnds || !h.mayTry() {
			return nil
		}
		ended = append(ended, o.Unit)
		undo := h.end(ended)
		enough := h.isAdmitted()
		if undo(); enough {
			return ended
		}
	}
	return nil
}

// shares reports whether a unit that runs uses the quota that is short.
func (h *helper) shares(o *cluster.Occupant, short *sched.Shortage) bool {
	if short.Limits != nil {
		c, charged := h.Limits.Charged(o.Tx)
		return charged && c.Group == h.unit.Charge.Group
	}
	return h.Trees.HasConsumer(o.Unit) && h.Trees.IsAllocated(short.Refusal.Tree, o.Unit)
}

// endsForPlace returns the fewest and least valuable units without which the unit
// has a place, none where it has one.
func (h *helper) endsForPlace() []string {
	if h.fits() {
		return nil
	}
	var holders []preempt.Holder
	for o := range h.State.Occupants() {
		holders = append(holders, preempt.Holder{Unit: o.Unit, Priority: o.Priority, Started: o.Started, Parts: o.Parts})
	}
	plan, _ := preempt.Find(h.State, h.unit.Demand, math.MaxInt32, holders)
	return plan.Victims
}
