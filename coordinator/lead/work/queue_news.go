package work

import (
	"maps"
	"slices"
)

// QueueNews names the units whose part in their queue may have changed. The zero value names no
// unit.
type QueueNews struct{ units map[string]bool }

// Any reports whether there is news.
func (n *QueueNews) Any() bool { return len(n.units) > 0 }

// Take returns the units, ascending by path, and forgets them.
func (n *QueueNews) Take() []string {
	paths := slices.Sorted(maps.Keys(n.units))
	clear(n.units)
	return paths
}

// Note notes a possible change of the part of a unit in the unit's queue.
func (n *QueueNews) Note(path string) {
	if n == nil { // the unit is known to no leader yet
		return
	}
	if n.units == nil {
		n.units = map[string]bool{}
	}
	n.units[path] = true
}
