package ranked

// Stamps counts entries by a stamp that only grows, such as the generation at
// which an entry was last looked at. Entries with the present stamp are fresh.
// When the present stamp grows, all entries become stale at once, and no entry
// and no sum changes. The zero value counts nothing.
type Stamps struct {
	latest uint64 // the greatest stamp
	fresh  int    // entries that have it
	all    int    // entries that have any
}

// Stamped counts an entry; stamp 0 is none.
func Stamped(stamp uint64) Stamps {
	if stamp == 0 {
		return Stamps{}
	}
	return Stamps{stamp, 1, 1}
}

// Plus adds both counts.
func (s Stamps) Plus(o Stamps) Stamps {
	all := s.all + o.all
	switch {
	case s.latest < o.latest:
		s = o
	case s.latest == o.latest:
		s.fresh += o.fresh
	}
	s.all = all
	return s
}

// Fresh counts the entries with the present stamp. No stamp may exceed it.
func (s Stamps) Fresh(present uint64) int {
	if s.latest != present {
		return 0
	}
	return s.fresh
}

// Stale counts the entries with an earlier stamp than the present one.
func (s Stamps) Stale(present uint64) int { return s.all - s.Fresh(present) }
