package quota

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// SetRequest gives a consumer that is not allocated another request, the same on all
// trees that it names; an equal one changes nothing. Rollback does not take it back, so
// the consumer must not have been released since an open checkpoint began. It is an error
// if the consumer is unknown, is allocated on a tree, or an amount is negative.
func (m *Manager) SetRequest(id string, request resource.Vector) error {
	at, err := m.consumerOf(id)
	if err != nil {
		return err
	}
	c := &m.consumers[at]
	if !slices.ContainsFunc(c.demands, func(d demand) bool { return !d.asks(request) }) {
		return nil
	}
	demands := make([]demand, len(c.demands))
	for i := range c.demands {
		d := c.demands[i].spec()
		d.Request = request
		if err := (ConsumerSpec{ID: id, Demands: []Demand{d}}).validate(); err != nil {
			return err
		}
		if t := m.treeAt(c.demands[i].slot); t != nil && t.seats[c.demands[i].seat].node != none {
			return fmt.Errorf("request of %s: %w on tree %s", id, ErrAllocated, t.name)
		}
		demands[i] = newDemand(d)
		demands[i].slot, demands[i].seat = c.demands[i].slot, c.demands[i].seat
	}
	m.begin()
	c.demands = demands
	for i := range demands {
		if t := m.treeAt(demands[i].slot); t != nil {
			t.setRequest(demands[i].seat, demands[i].request)
		}
	}
	return nil
}

// asks reports whether the demand is for these amounts.
func (d *demand) asks(request resource.Vector) bool {
	if len(d.request) != len(request) {
		return false
	}
	for _, a := range d.request {
		if value, named := request[a.name]; !named || value != a.value {
			return false
		}
	}
	return true
}
