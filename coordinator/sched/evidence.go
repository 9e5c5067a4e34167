package sched

import (
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Code is why a class sleeps.
type Code uint8

// The codes.
const (
	NoPlace   Code = iota + 1 // no node, or no set of nodes, has room; no unit may give way
	NoVictims                 // the same, and no set of units that may give way makes room
	Leaving                   // it has room once units have left that are leaving
	OverLimit                 // a limit of its namespace is reached
	OverTree                  // a quota tree refuses it
	Claim                     // a quota tree admits it once others have given way, and they do not now
	OverQueue                 // as many members of its queue hold something as may
	codes
)

// Evidence is the result of a trial that failed. It is put into words only when
// a caller asks.
type Evidence struct {
	Code Code
	// Short is the quota that is short, of OverLimit, OverTree and Claim.
	Short *Shortage
	// ByModel: a place was found whose GPUs are of a model of which quota has no room; Short
	// says so where Code is not about quota.
	ByModel bool
	// Borrows: of NoVictims and Claim: the unit would borrow quota, so some units of lower
	// priority keep their places.
	Borrows bool
	// On are the nodes of the place that there is once units have left, of Leaving.
	On []resource.NodeID
	// Trees are the quota trees that the unit is charged to.
	Trees []string
	// Wide is why the place that there is cannot be committed, "" for no reason.
	Wide string
	// NoVictims is the reason why no unit gives way, "" where that was not asked.
	NoVictims string
	// Else is the evidence of the alternatives of the unit, in order; the rest is of its
	// own request.
	Else []*Evidence
}

// Of is the evidence of an alternative, by its number; of the unit's own request where
// there is none. nil has none.
func (e *Evidence) Of(alternative int) *Evidence {
	if e == nil || alternative < 1 || alternative > len(e.Else) {
		return e
	}
	return e.Else[alternative-1]
}

// leaves notes that there is a place once units have left.
func (e *Evidence) leaves(places ...[]place.Choice) {
	e.Code, e.Borrows = Leaving, false
	for _, members := range places {
		for _, m := range members {
			if !slices.Contains(e.On, m.Node.ID) {
				e.On = append(e.On, m.Node.ID)
			}
		}
	}
}

// any reports whether something holds of the evidence of a request that would do.
func (e *Evidence) any(holds func(e *Evidence) bool) bool {
	return holds(e) || slices.ContainsFunc(e.Else, holds)
}

// Shortage is why quota holds a unit back. Exactly one field is set.
type Shortage struct {
	Limits  []quota.Shortage
	Absent  *record.Charge // to a tree that is not there
	Refusal quota.Refusal
	// Victims have to give way: there is room for the unit by the rules once they
	// are gone.
	Victims []string
}

// OverQuota reports whether quota refuses all requests of the class, and would if others
// gave way.
func (e *Evidence) OverQuota() bool {
	return !e.any(func(e *Evidence) bool { return e.Code != OverLimit && e.Code != OverTree })
}

// awaitsOthers reports whether a request can be met once others give way or leave.
func (e *Evidence) awaitsOthers() bool {
	return e.Code == NoVictims || e.Code == Leaving || e.Code == Claim
}

// asleep reports whether no event has woken the class: it sleeps, or is awake for
// the backstop.
func (c *Class) asleep() bool { return c.evidence != nil || c.backstop }

// awaitsOthers reports whether the class can go on once others give way or leave.
func (c *Class) awaitsOthers() bool {
	return c.asleep() && c.last.any((*Evidence).awaitsOthers)
}

// awaitsNeighbours reports whether units that come to nodes or leave them may help the
// class by rules about other units.
func (c *Class) awaitsNeighbours() bool {
	return c.Relation != "" && c.asleep() && c.last.any((*Evidence).awaitsPlace)
}

// awaitsPlace reports whether a place is missing, now or once others have given way.
func (e *Evidence) awaitsPlace() bool {
	return e.Code == NoPlace || e.Code == NoVictims || e.Code == Leaving || e.Code == Claim
}

// setEvidence lets a class sleep, or ends its sleep with nil, for the backstop or
// for an event.
func (r *Room) setEvidence(c *Class, e *Evidence, backstop bool) {
	if c.awaitsOthers() {
		r.awaiting--
	}
	if c.awaitsNeighbours() {
		r.neighbours--
	}
	if c.evidence != nil {
		r.countCodes(c.evidence, -1)
	}
	if e != nil {
		r.countCodes(e, 1)
	}
	if c.evidence, c.backstop = e, backstop; e != nil {
		c.last = e
	}
	if c.awaitsOthers() {
		r.awaiting++
	}
	if c.awaitsNeighbours() {
		r.neighbours++
	}
}

// countCodes counts the codes of a class that sleeps.
func (r *Room) countCodes(e *Evidence, by int) {
	r.asleep[e.Code] += by
	for _, other := range e.Else {
		r.asleep[other.Code] += by
	}
}
