package sched

// Turn is the position of Backstop as plain values.
type Turn struct {
	// Heads are the classes that are yet to be woken, in order, each by the path of its
	// first unit; "" for a class that has no unit any more.
	Heads []string `json:"heads,omitempty"`
	// CallsLeft and AtOnce are the calls until the next turn may begin, and the classes
	// that a call wakes.
	CallsLeft int `json:"callsLeft,omitempty"`
	AtOnce    int `json:"atOnce,omitempty"`
}

// Turn is the position of Backstop. It shares nothing with the room.
func (r *Room) Turn() Turn {
	t := Turn{CallsLeft: r.callsLeft, AtOnce: r.atOnce}
	for _, c := range r.turn {
		head := ""
		if r.classes[c.Traits] == c {
			head = c.head.Path
		}
		t.Heads = append(t.Heads, head)
	}
	return t
}

// ResumeTurn has Backstop go on from a position. A unit that the room does not have stands
// for no class.
func (r *Room) ResumeTurn(t Turn) {
	r.turn, r.callsLeft, r.atOnce = nil, max(0, t.CallsLeft), max(0, t.AtOnce)
	for _, head := range t.Heads {
		c := r.class[head]
		if c == nil {
			c = &Class{}
		}
		r.turn = append(r.turn, c)
	}
}
