package quota

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// consumer is a registered specification.
type consumer struct {
	id, owner string
	demands   []demand
}

// demand is a Demand with the seat it has on its tree. Snapshots share the demands
// of a registered consumer, so they are replaced and not changed.
type demand struct {
	treeName, group string
	request         []amount // ascending by name
	priority, kind  int
	pinned          bool
	slot            int32 // of the tree; none until it is first used, and after the tree is deleted
	seat            int32
}

// amount is an entry of a vector; a slice of them is a third of a map's size.
type amount struct {
	name  resource.Name
	value int64
}

func newDemand(d Demand) demand {
	made := demand{treeName: d.Tree, group: d.Group, priority: d.Priority, kind: d.Type, pinned: d.Unpreemptable, slot: none, seat: none}
	made.request = make([]amount, 0, len(d.Request))
	for _, name := range d.Request.Names() {
		made.request = append(made.request, amount{name, d.Request[name]})
	}
	return made
}

// spec is the Demand again.
func (d *demand) spec() Demand {
	request := make(resource.Vector, len(d.request))
	for _, a := range d.request {
		request[a.name] = a.value
	}
	return Demand{Tree: d.treeName, Group: d.group, Request: request, Priority: d.priority, Type: d.kind, Unpreemptable: d.pinned}
}

// AddConsumer registers what a consumer asks for; it is not allocated by that.
// It need not name trees or groups that exist yet. A specification that is
// wrong, or of an ID that is registered, is an error.
func (m *Manager) AddConsumer(s ConsumerSpec) error {
	if err := s.validate(); err != nil {
		return err
	}
	if _, known := m.ids[s.ID]; known {
		return fmt.Errorf("consumer %s: %w", s.ID, ErrExists)
	}
	c := consumer{id: s.ID, owner: s.Owner, demands: make([]demand, len(s.Demands))}
	for i, d := range s.Demands {
		c.demands[i] = newDemand(d)
	}
	at := int32(len(m.consumers))
	if last := len(m.freeConsumers) - 1; last >= 0 {
		at = m.freeConsumers[last]
		m.freeConsumers = m.freeConsumers[:last]
		m.consumers[at] = c
	} else {
		m.consumers = append(m.consumers, c)
	}
	m.ids[s.ID] = at
	for i := range c.demands {
		if t := m.trees[c.demands[i].treeName]; t != nil {
			m.sit(t, at, i)
		}
	}
	return nil
}

// RemoveConsumer forgets a specification. One that is unknown, or allocated
// anywhere, is an error.
func (m *Manager) RemoveConsumer(id string) error {
	at, known := m.ids[id]
	if !known {
		return fmt.Errorf("consumer %s: %w", id, ErrUnknown)
	}
	c := &m.consumers[at]
	for _, d := range c.demands {
		if t := m.treeAt(d.slot); t != nil && t.seats[d.seat].node != none {
			return fmt.Errorf("consumer %s: %w on tree %s", id, ErrAllocated, d.treeName)
		}
	}
	m.beginRebuild()
	for _, d := range c.demands {
		if t := m.treeAt(d.slot); t != nil {
			t.seats[d.seat] = seat{consumer: none, stay: stay{group: none}, node: none, via: none, moved: t.seats[d.seat].moved}
			t.freeSeats = append(t.freeSeats, d.seat)
		}
	}
	*c = consumer{}
	m.freeConsumers = append(m.freeConsumers, at)
	delete(m.ids, id)
	return nil
}

// HasConsumer reports whether a consumer is registered.
func (m *Manager) HasConsumer(id string) bool {
	_, known := m.ids[id]
	return known
}

// ConsumerIDs returns the registered consumers, ascending.
func (m *Manager) ConsumerIDs() []string { return slices.Sorted(maps.Keys(m.ids)) }

// treeAt is the tree of a slot, nil for none.
func (m *Manager) treeAt(slot int32) *tree {
	if slot == none {
		return nil
	}
	return m.slots[slot]
}

// sit gives demand i of a consumer a seat on its tree.
func (m *Manager) sit(t *tree, at int32, i int) int32 {
	c := &m.consumers[at]
	d := &c.demands[i]
	made := seat{
		consumer: at, demand: int32(i), owner: c.owner, priority: d.priority, kind: d.kind, pinned: d.pinned,
		build: t.build - 1, home: none, stay: stay{group: none}, node: none, via: none,
	}
	if last := len(t.freeSeats) - 1; last >= 0 {
		d.seat = t.freeSeats[last]
		t.freeSeats = t.freeSeats[:last]
		made.moved = t.seats[d.seat].moved
		t.seats[d.seat] = made
	} else {
		d.seat = int32(len(t.seats))
		t.seats = append(t.seats, made)
		for range 2 * t.width {
			t.vectors = append(t.vectors, 0)
		}
	}
	d.slot = t.slot
	m.refresh(t, d.seat)
	return d.seat
}

// seatOf finds the consumer's seat on a tree, or makes it, as of the tree's
// last update. none: it asks nothing of the tree.
func (m *Manager) seatOf(t *tree, at int32) int32 {
	demands := m.consumers[at].demands
	for i := range demands {
		d := &demands[i]
		switch {
		case d.slot == t.slot:
			if t.seats[d.seat].build != t.build {
				m.refresh(t, d.seat)
			}
			return d.seat
		case d.slot == none && d.treeName == t.name:
			m.consumers[at].demands = slices.Clone(demands)
			return m.sit(t, at, i)
		}
	}
	return none
}

// refresh resolves the seat's group and request on the tree as it is now. The
// request of an allocated seat is of this build already (rebuild).
func (m *Manager) refresh(t *tree, s int32) {
	c := &t.seats[s]
	d := &m.consumers[c.consumer].demands[c.demand]
	c.build, c.home = t.build, none
	if n, known := t.index[d.group]; known {
		c.home = n
	}
	t.setRequest(s, d.request)
}

// setRequest takes over the amounts of the resources the tree counts. Both are
// in ascending order.
func (t *tree) setRequest(s int32, request []amount) {
	v := t.request(s)
	for i, name := range t.resources {
		for len(request) > 0 && request[0].name < name {
			request = request[1:]
		}
		v[i] = 0
		if len(request) > 0 && request[0].name == name {
			v[i] = request[0].value
		}
	}
}
