package decisions

// AsleepAhead lists the codes of the classes that sleep and have a unit ahead of
// one that waits, as a checker sees it.
func (c *Checker) AsleepAhead(path string) (codes []Code) {
	for _, a := range c.room.classes {
		if a.sleep != nil && before(a.first(), c.keys[path]) {
			codes = append(codes, a.sleep.Code)
		}
	}
	return codes
}
