package objects

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// cachedGangs are the running members of groups of allocations, by the arrival of the
// first member of the group.
type cachedGangs map[record.Sequence]map[*cachedUnit]bool

// countGang notes that a unit comes, or goes where comes is false. The entries of the other
// members are made anew, for their figures; no event follows.
func (c *Cache) countGang(u *cachedUnit, comes bool) {
	if u.record.Gang == nil || u.Phase() != api.Running {
		return
	}
	first := u.record.Gang.First
	running := c.gangs[first]
	if running == nil {
		running = map[*cachedUnit]bool{}
		c.gangs[first] = running
	}
	if comes {
		running[u] = true
	} else if delete(running, u); len(running) == 0 {
		delete(c.gangs, first)
	}
	for other := range running {
		c.stale[Name{Allocations, other.record.Namespace, other.record.Name}] = true
	}
}

// runningWith counts the running members of a unit's group, 0 for a unit of no group.
func (c *Cache) runningWith(u *cachedUnit) int {
	if u.record.Gang == nil {
		return 0
	}
	return len(c.gangs[u.record.Gang.First])
}
