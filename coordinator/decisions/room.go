package decisions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/queue/ranked"
	"github.com/musterd/muster/resource"
)

// room is the classes of the leader's room, as the log gives them. Whether a class
// sleeps follows from Sleeps and Events alone.
//
// Invariant: awake has exactly the classes that have units and do not sleep.
type room struct {
	classes map[int]*class
	awake   map[int]*class
	labels  map[resource.NodeID]*constraint.Labels
	// owed are ends of charges that no Event has reported yet, by namespace.
	owed map[string]owed
}

// class is one class.
type class struct {
	Class
	set   *constraint.Set
	units keys
	sleep *Sleep // nil while it is awake
	slept uint64 // the record that put it to sleep, 0 for none yet
	woken string // the last event that may have helped it, in words
	words *Sleep // the last Sleep that says why in words
}

// keys is a set of units in their order.
type keys = ranked.Tree[queue.Key, nothing, struct{}]

// nothing is the value of an entry that is only a key.
type nothing struct{}

// Sum counts nothing.
func (nothing) Sum(struct{}, struct{}) struct{} { return struct{}{} }

// owed is the end of a charge.
type owed struct {
	seq uint64 // of the End or the Abort
	tx  string
}

func newRoom() room {
	return room{classes: map[int]*class{}, awake: map[int]*class{}, labels: map[resource.NodeID]*constraint.Labels{}, owed: map[string]owed{}}
}

// define takes a class; one that is known stays as it is.
func (r *room) define(c *Class) {
	if r.classes[c.ID] == nil {
		r.classes[c.ID] = &class{Class: *c, set: c.Constraints.compile()}
	}
}

// restore takes over from a State whether a class sleeps, and from the class as it
// was before, if there was one, all that a State does not say.
func (r *room) restore(s *StateClass, old *class, seq uint64) {
	c := r.classes[s.ID]
	if c.units.Len() == 0 { // the State contradicts itself
		return
	}
	if old != nil {
		c.slept, c.woken, c.words = old.slept, old.woken, old.words
	}
	if s.Sleep == nil {
		return
	}
	if c.sleep, c.words = s.Sleep, s.Sleep; old == nil || old.sleep == nil {
		c.slept = seq
	}
	delete(r.awake, s.ID)
}

// differs compares the classes of a State with these. A class that sleeps here may
// be awake there: the leader may try more than it has to.
func (r *room) differs(s *State) string {
	for i := range s.Classes {
		c := r.classes[s.Classes[i].ID]
		switch {
		case c == nil || c.units.Len() == 0:
			return fmt.Sprintf("class %d has units; by the records before it has none", s.Classes[i].ID)
		case s.Classes[i].Sleep != nil && c.sleep == nil:
			return fmt.Sprintf("class %d sleeps; by the records before it is awake%s", c.ID, c.since())
		}
	}
	return ""
}

// since says why a class is awake that has slept.
func (c *class) since() string {
	if c.woken == "" {
		return ""
	}
	return ": " + c.woken
}

// first returns the first unit of a class that has units.
func (c *class) first() queue.Key { return c.units.At(0).Key() }

// add puts a unit into a class. A class without units is as new.
func (r *room) add(c *class, k queue.Key) {
	if c.units.Len() == 0 {
		c.sleep, c.slept, c.woken, c.words = nil, 0, "", nil
		r.awake[c.ID] = c
	}
	c.units.Insert(k, nothing{})
}

// drop takes a unit out of its class, if it is in one.
func (r *room) drop(u *unit) {
	c := r.classes[u.Value().class]
	if c == nil {
		return
	}
	if e := c.units.Find(u.Key()); e != nil {
		c.units.Delete(e)
	}
	if c.units.Len() == 0 {
		c.sleep = nil
		delete(r.awake, c.ID)
	}
}

// owe notes that the charge of a unit to its namespace has ended.
func (r *room) owe(unit, tx string, seq uint64) {
	if namespace, _, found := strings.Cut(unit, "/"); found {
		r.owed[namespace] = owed{seq, tx}
	}
}

// wake wakes the classes that an event may help.
func (r *room) wake(e *Event) {
	switch e.Kind {
	case Freed:
		delete(r.owed, e.Namespace)
	case All:
		clear(r.owed)
	}
	for _, c := range r.classes {
		if c.sleep != nil && c.mayBeHelped(e, r.labels) {
			c.sleep, c.woken = nil, e.String()
			r.awake[c.ID] = c
		}
	}
}

// awakeAhead lists the classes that are awake and have a unit before a key, by
// their first units.
func (r *room) awakeAhead(k queue.Key) []*class {
	var list []*class
	for _, c := range r.awake {
		if before(c.first(), k) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *class) int { return queue.Compare(a.first(), b.first()) })
	return list
}

// unreported finds a class that sleeps over the limit of a namespace since before a
// charge to it ended, which no Event has reported, and that has a unit before a key.
// Ends that are of no interest to any class are forgotten.
func (r *room) unreported(k queue.Key) (*class, owed) {
	for _, namespace := range slices.Sorted(maps.Keys(r.owed)) {
		o, concerned := r.owed[namespace], false
		for _, c := range slices.SortedFunc(maps.Values(r.classes), func(a, b *class) int { return cmp.Compare(a.ID, b.ID) }) {
			if c.sleep == nil || c.sleep.Code != OverLimit || c.Namespace != namespace || c.slept > o.seq {
				continue
			}
			if before(c.first(), k) {
				return c, o
			}
			concerned = true
		}
		if !concerned {
			delete(r.owed, namespace)
		}
	}
	return nil, owed{}
}
