package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// consumerOf describes a unit to the trees that its charges name.
func consumerOf(path string, tenant resource.TenantID, priority int32, wish api.QuotaDemand, charges []record.Charge) quota.ConsumerSpec {
	c := quota.ConsumerSpec{ID: path, Owner: string(tenant)}
	for _, charge := range charges {
		if charge.Tree != quota.Tree {
			c.Demands = append(c.Demands, quota.Demand{
				Tree: charge.Tree, Group: charge.Group, Request: charge.Request,
				Priority: int(priority), Type: wish.Type, Unpreemptable: wish.Unpreemptable,
			})
		}
	}
	return c
}

// chargedLive is the result of chargeLive. mischarged: the unit is not charged to a
// tree as its record says, because the tree does not exist, or lacks the group.
type chargedLive struct {
	mischarged bool
	departures []departure
}

// departure is a charge that a tree does not take as it is: the tree is absent, or the
// charge is forced onto a node over quota, or refused.
type departure struct {
	tree    string
	absent  bool
	forced  string // the node
	refusal quota.Refusal
}

// chargeLive charges a unit that holds devices to its trees, and evicts nobody. The unit
// takes its place as an arrival does, so that sharers are pushed up for owners; where
// that would take room from somebody for good, the unit is charged where there is room,
// or over quota: in the mode Maintenance to its own group. A unit whose group the tree
// lacks is charged to the root. A tree that does not exist is left out.
func (q *quotas) chargeLive(c quota.ConsumerSpec) (charged chargedLive, err error) {
	for i := range c.Demands {
		d := &c.Demands[i]
		t := q.treeObjects[d.Tree]
		if t == nil {
			charged.mischarged = true
			continue
		}
		d.Group = t.group(d.Group)
		leaf, known := t.nodes[d.Group]
		if delete(t.detached, c.ID); !leaf {
			t.detached[c.ID] = true
		}
		if !known {
			charged.mischarged = true
			d.Group = t.shape.Root
		}
	}
	if err := q.trees.AddConsumer(c); err != nil {
		return charged, err
	}
	if !charged.mischarged && q.chargeAsArrival(c.ID) {
		return charged, nil
	}
	for _, d := range c.Demands {
		t := q.treeObjects[d.Tree]
		if t == nil {
			charged.departures = append(charged.departures, departure{tree: d.Tree, absent: true})
			continue
		}
		r, err := q.chargeAgain(d.Tree, c.ID)
		must(err)
		switch {
		case !r.OK:
			charged.mischarged = true
			t.detached[c.ID] = true
			charged.departures = append(charged.departures, departure{tree: d.Tree, refusal: r.Refusal})
		case r.Forced:
			charged.departures = append(charged.departures, departure{tree: d.Tree, forced: r.Placed[0].Node})
		}
	}
	return charged, nil
}

// chargeAsArrival charges a unit as if it arrived now, unless that evicts somebody.
// Its rules are those of the mode Normal in each mode: units that were charged before
// the mode became Maintenance stand as they stood, borrowers included.
func (q *quotas) chargeAsArrival(path string) bool {
	must(q.trees.SetMode(quota.Normal))
	defer func() { must(q.applyMode()) }()
	r, err := q.trees.TryAllocateForest(everyTree, path)
	must(err)
	if r.OK && len(r.Preempted) == 0 {
		return true
	}
	must(q.trees.UndoAllocateForest(everyTree, path))
	return false
}
