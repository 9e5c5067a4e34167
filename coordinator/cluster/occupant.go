package cluster

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

// Status says how far a unit that has something on nodes is from giving way.
type Status uint8

const (
	// Evictable: the unit may give way now.
	Evictable Status = iota
	// Contested: the unit runs, and devices of it are nominated to another unit
	// whose plan did not include that.
	Contested
	// Starting: no commit of the unit is durable yet.
	Starting
	// InDoubt: the unit's record is being read; its end may have landed.
	InDoubt
	// Claimed: a preemptor has chosen the unit, which is not leaving yet.
	Claimed
	// Ending: the owner has asked for the end, which is not under way yet.
	Ending
	// Leaving: the unit is on its way out, for nobody in particular: others may
	// count on its room.
	Leaving
	// Displaced: the unit is on its way out, for a preemptor.
	Displaced
	statuses
)

var statusNames = [statuses]string{"evictable", "contested", "starting", "in doubt", "claimed", "ending", "leaving", "displaced"}

// String returns the status in words.
func (s Status) String() string { return statusNames[s] }

// isLeaving reports whether the unit is on its way out.
func (s Status) isLeaving() bool { return s == Leaving || s == Displaced }

// Occupant is a unit that has something on nodes, or is about to. An occupant of a
// State is immutable: a change is another occupant.
type Occupant struct {
	Unit     string // unique
	Tx       resource.TxID
	Priority int32
	Started  int64 // revision of the commit: the greater is newer; 0 before
	Nodes    []resource.NodeID
	Counts   []int32 // the members on each of Nodes; nil: one on each
	Parts    []Part
	Status   Status
	// Subject is the unit as rules about other units see it.
	Subject *constraint.Subject
	// Gang names the gang of several units that the unit belongs to: none of them gives
	// way without the others. "" for none.
	Gang string
	// Pinned: the unit gives way to nobody, whatever its status.
	Pinned bool
	// Claimed: another unit is to take the place of this one.
	Claimed bool
	// Displaces are the units whose place this one is to take.
	Displaces []string
	// Arrived is the unit's arrival in the order.
	Arrived Arrival
}

// Arrival is the arrival of a unit in the order: the smaller came first, the epoch
// before the counter.
type Arrival struct {
	Epoch   resource.Epoch
	Counter uint64
}

// Part is the assignment of one member on a node, as it is taken there; several
// parts may be on one node.
type Part struct {
	Node       resource.NodeID
	Assignment resource.Assignment
}

// IsLeaving reports whether the unit is on its way out.
func (o *Occupant) IsLeaving() bool { return o.Status.isLeaving() }

// mayGiveWay reports whether the unit may be evicted now.
func (o *Occupant) mayGiveWay() bool { return o.Status == Evictable && !o.Pinned }

// occupants are the units that have something on nodes, or are about to.
//
// Invariant: at has the position in list of each occupant; byNode and byStatus have
// each of list, under each of its nodes and under its status; evictable counts by
// priority those that may give way. A fork makes at, and byNode and byStatus, when it
// first needs them: until then unnamed, and ungrouped, are true.
type occupants struct {
	list      []*Occupant // in no order: a snapshot copies it
	at        map[string]int
	byNode    map[resource.NodeID]map[string]*Occupant
	byStatus  [statuses]map[string]*Occupant
	evictable priorities
	news      map[string]bool

	unnamed, ungrouped bool
}

// name makes at, where a fork has not made it yet.
func (c *occupants) name() {
	if !c.unnamed {
		return
	}
	c.unnamed, c.at = false, make(map[string]int, len(c.list))
	for i, o := range c.list {
		c.at[o.Unit] = i
	}
}

// group makes byNode and byStatus, where a fork has not made them yet.
func (c *occupants) group() {
	if !c.ungrouped {
		return
	}
	c.ungrouped = false
	for _, o := range c.list {
		c.enter(o)
	}
}

// SetOccupant takes a unit in, or replaces the unit as it was. The caller does not
// change the occupant afterwards.
func (s *State) SetOccupant(o *Occupant) {
	s.occupants.group()
	before := s.Occupant(o.Unit)
	s.occupants.drop(before)
	s.occupants.add(o)
	s.relate(before, o)
	if o.mayGiveWay() && (before == nil || !before.mayGiveWay()) || before != nil && before.Status.isLeaving() && !o.Status.isLeaving() {
		s.occupants.note(o.Unit)
	}
}

// RemoveOccupant takes a unit out, if it is there.
func (s *State) RemoveOccupant(unit string) {
	if before := s.Occupant(unit); before != nil {
		s.occupants.group()
		s.occupants.drop(before)
		s.relate(before, nil)
		if before.Status.isLeaving() {
			s.occupants.note(unit)
		}
	}
}

// Occupant returns a unit's occupant, nil where there is none.
func (s *State) Occupant(unit string) *Occupant {
	s.occupants.name()
	if at, known := s.occupants.at[unit]; known {
		return s.occupants.list[at]
	}
	return nil
}

// Occupants yields all occupants, in no order.
func (s *State) Occupants() iter.Seq[*Occupant] { return slices.Values(s.occupants.list) }

// OccupantsOf yields the occupants of a node, in no order.
func (s *State) OccupantsOf(node resource.NodeID) iter.Seq[*Occupant] {
	s.occupants.group()
	return maps.Values(s.occupants.byNode[node])
}

// WithStatus yields the occupants with a status, in no order.
func (s *State) WithStatus(status Status) iter.Seq[*Occupant] {
	if !s.occupants.ungrouped {
		return maps.Values(s.occupants.byStatus[status])
	}
	return func(yield func(*Occupant) bool) { // cheaper than groups for the few questions of a fork
		for _, o := range s.occupants.list {
			if o.Status == status && !yield(o) {
				return
			}
		}
	}
}

// HasEvictableBelow reports whether a unit of lower priority may give way.
func (s *State) HasEvictableBelow(priority int32) bool {
	p := s.occupants.evictable
	return len(p) > 0 && p[0].priority < priority
}

// TakeOccupantNews returns, since the last call, the units that began to be
// evictable and those that left the leaving ones, each once, ascending; nil for
// none.
func (s *State) TakeOccupantNews() []string {
	if len(s.occupants.news) == 0 {
		return nil
	}
	units := slices.Sorted(maps.Keys(s.occupants.news))
	clear(s.occupants.news)
	return units
}

func (c *occupants) add(o *Occupant) {
	put(&c.at, o.Unit, len(c.list))
	c.list = append(c.list, o)
	c.enter(o)
	if o.mayGiveWay() {
		c.evictable.change(o.Priority, 1)
	}
}

// enter enters a unit under its status and its nodes.
func (c *occupants) enter(o *Occupant) {
	put(&c.byStatus[o.Status], o.Unit, o)
	for _, id := range o.Nodes {
		here := c.byNode[id]
		put(&here, o.Unit, o)
		put(&c.byNode, id, here)
	}
}

func (c *occupants) drop(o *Occupant) {
	if o == nil {
		return
	}
	at, last := c.at[o.Unit], len(c.list)-1
	c.list[at] = c.list[last]
	c.at[c.list[at].Unit] = at
	c.list[last], c.list = nil, c.list[:last]
	delete(c.at, o.Unit)
	delete(c.byStatus[o.Status], o.Unit)
	for _, id := range o.Nodes {
		if delete(c.byNode[id], o.Unit); len(c.byNode[id]) == 0 {
			delete(c.byNode, id)
		}
	}
	if o.mayGiveWay() {
		c.evictable.change(o.Priority, -1)
	}
}

func (c *occupants) note(unit string) { put(&c.news, unit, true) }

// put stores a value in a map, which it makes where there is none.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// priorities counts units by priority, ascending; each count is positive. There
// are few priorities.
type priorities []level

// level is the number of units of one priority.
type level struct {
	priority int32
	units    int
}

func (p *priorities) change(priority int32, by int) {
	i, found := slices.BinarySearchFunc(*p, priority, func(l level, priority int32) int { return cmp.Compare(l.priority, priority) })
	if !found {
		*p = slices.Insert(*p, i, level{priority: priority})
	}
	if (*p)[i].units += by; (*p)[i].units == 0 {
		*p = slices.Delete(*p, i, i+1)
	}
}
