package sched

import (
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
)

// Right says which units a unit may have evicted.
type Right uint8

// The rights.
const (
	Nobody   Right = iota // also of a unit that is not stored yet
	OwnQuota              // those who use quota that is the unit's own
	Lower                 // these, and units of lower priority
)

// Traits are the common properties of the units of a class. Units with equal traits
// are admitted, placed and refused together. Comparable.
type Traits struct {
	Demand    string // equal for demands that fit or fail together
	Gang      string // the units start together, whatever their demands; "" for none
	Relation  string // equal for units that rules about other units treat alike; "" where there are none
	Charge    string // equal for units that quota treats alike, but for their namespace
	Namespace string
	Queue     string // whose members that hold something are bounded; "" for none
	Priority  int32
	Right     Right
	Refusable bool // over quota the unit is refused and does not wait
}

// Class is a set of units with equal traits that may be tried.
//
// Invariant: a class of the room has units. It is awake, and then in the room's
// heap, or asleep with the evidence of its last trial. head is the first of units.
type Class struct {
	Traits
	demand   *place.Unit   // of each unit; of a gang that of the first
	further  []*place.Unit // of a gang: those of the others that have been offered
	others   []*place.Unit // of the alternatives of each unit, in order
	units    queue.Keys    // in order
	head     queue.Key     // read at each step of the heap, where the tree is too slow
	fresh    []string      // paths of units that have not shared the evidence yet
	evidence *Evidence     // of a class that sleeps
	last     *Evidence     // of the last trial
	awake    int           // position in the heap + 1; 0 asleep
	backstop bool          // nothing but Backstop woke it
}

// Len counts the units of the class.
func (c *Class) Len() int { return c.units.Len() }

// Evidence is why the class sleeps, nil while it is awake.
func (c *Class) Evidence() *Evidence { return c.evidence }

// join adds the demand of a unit that joins a gang.
func (c *Class) join(demand *place.Unit) {
	if c.Gang != "" && c.demand != demand && !slices.Contains(c.further, demand) {
		c.further = append(c.further, demand)
	}
}

// anyDemand reports whether something holds of the demand of a unit.
func (c *Class) anyDemand(holds func(*place.Unit) bool) bool {
	return holds(c.demand) || slices.ContainsFunc(c.further, holds) || slices.ContainsFunc(c.others, holds)
}

// anyWay reports whether something holds of a request of the class and of its evidence.
func (c *Class) anyWay(holds func(d *place.Unit, e *Evidence) bool) bool {
	if holds(c.demand, c.last) || slices.ContainsFunc(c.further, func(d *place.Unit) bool { return holds(d, c.last) }) {
		return true
	}
	for i, d := range c.others {
		if holds(d, c.last.Of(1+i)) {
			return true
		}
	}
	return false
}
