package lead

// queueNews names the units whose part in their queue may have changed. The zero value
// names nobody.
type queueNews struct{ units map[string]bool }

// note notes that the part of a unit in its queue may have changed.
func (n *queueNews) note(path string) {
	if n == nil { // the unit is known to no leader yet
		return
	}
	if n.units == nil {
		n.units = map[string]bool{}
	}
	n.units[path] = true
}
