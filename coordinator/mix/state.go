package mix

import "fmt"

// State is all of a Mix as plain values, so that another Mix can go on from there.
type State struct {
	// Due is the count of members at which the next Table is made.
	Due int64 `json:"due,omitempty"`
	// Shapes are the shapes that are counted, or that the present Table was made of, in
	// their order.
	Shapes []Counted `json:"shapes,omitempty"`
}

// Counted is a shape with its counts of members.
type Counted struct {
	Shape
	// Members is the present count, Tabled the one that the present Table was made of; 0
	// for none.
	Members int64 `json:"members,omitempty"`
	Tabled  int64 `json:"tabled,omitempty"`
}

// State returns the state of the Mix. The state shares nothing with the Mix.
func (m *Mix) State() State {
	all := map[Shape]int64{}
	for s := range m.counts {
		all[s] = 0
	}
	for s := range m.tabled {
		all[s] = 0
	}
	state := State{Due: m.due}
	for _, s := range sortedShapes(all) {
		state.Shapes = append(state.Shapes, Counted{Shape: s, Members: m.counts[s], Tabled: m.tabled[s]})
	}
	return state
}

// Restore returns the Mix with a state. It refuses counts that no Mix has.
func Restore(s State) (Mix, error) {
	var m Mix
	if len(s.Shapes) == 0 {
		return m, nil
	}
	m.counts, m.due = map[Shape]int64{}, s.Due
	tabled := map[Shape]int64{}
	for i, c := range s.Shapes {
		_, twice := m.counts[c.Shape]
		switch {
		case c.Members < 0 || c.Members > 2*horizon || c.Tabled < 0 || c.Tabled > 2*horizon || c.Members+c.Tabled == 0:
			return Mix{}, fmt.Errorf("shapes[%d]: %d members, %d in the table: want 0 to %d, and not both 0", i, c.Members, c.Tabled, 2*horizon)
		case c.gpu() <= 0:
			return Mix{}, fmt.Errorf("shapes[%d]: %d GPUs and %d milli of a GPU: want more than 0", i, c.GPUs, c.Share)
		case twice || i > 0 && compareShapes(s.Shapes[i-1].Shape, c.Shape) >= 0:
			return Mix{}, fmt.Errorf("shapes[%d]: is not after the shape before", i)
		}
		if c.Members > 0 {
			m.counts[c.Shape] = c.Members
			m.total += c.Members
		}
		if c.Tabled > 0 {
			tabled[c.Shape] = c.Tabled
		}
	}
	switch {
	case len(m.counts) > mostShapes || len(tabled) > mostShapes:
		return Mix{}, fmt.Errorf("shapes: %d are counted and %d in the table: want at most %d", len(m.counts), len(tabled), mostShapes)
	case m.total >= 2*horizon || s.Due < 1 || s.Due > 4*horizon:
		return Mix{}, fmt.Errorf("due: %d with %d members: want 1 to %d, and fewer than %d members", s.Due, m.total, 4*horizon, 2*horizon)
	}
	if len(tabled) > 0 {
		m.setTable(tabled)
	}
	return m, nil
}

// setTable makes the table of counts, which the Mix owns from then on.
func (m *Mix) setTable(counts map[Shape]int64) {
	var total int64
	for _, n := range counts {
		total += n
	}
	m.tabled, m.table = counts, newTable(counts, total)
}
