package shim

import (
	"os"
	"strings"
)

// This file measures attached work: by the kernel's sums of the attached cgroups, and by the
// times of all other processes, of which some end between two looks.

// Spent are sums of attached work that never fall.
type Spent struct {
	CPUMillis int64 `json:"cpuMillis,omitempty"`
	OOMKills  int64 `json:"oomKills,omitempty"`
	// PeakBytes is the greatest memory of the cgroups, as the kernel has kept it.
	PeakBytes int64 `json:"peakBytes,omitempty"`
}

// Plus is the sum of both.
func (s Spent) Plus(t Spent) Spent {
	return Spent{s.CPUMillis + t.CPUMillis, s.OOMKills + t.OOMKills, s.PeakBytes + t.PeakBytes}
}

// Minus is the part of s beyond t, which is not negative.
func (s Spent) Minus(t Spent) Spent {
	return Spent{max(s.CPUMillis-t.CPUMillis, 0), max(s.OOMKills-t.OOMKills, 0), max(s.PeakBytes-t.PeakBytes, 0)}
}

// clock is the time of one process and of those of its children that it has waited for.
type clock struct {
	parent int
	ticks  uint64
}

// meter adds up what attached work has spent, look by look. It belongs to a Watch.
type meter struct {
	clocks map[Process]clock // of the processes outside of the counted cgroups
	ended  uint64            // ticks of those that have ended, and that no ancestor has waited for
	groups map[Group]Use     // of the counted cgroups
	gone   Spent             // of those that are there no more
}

// take adds a look at the processes outside of the counted cgroups, and at these. It returns
// all that was spent so far.
func (m *meter) take(processes map[Process]stat, groups map[Group]Use) Spent {
	clocks := make(map[Process]clock, len(processes))
	running := uint64(0)
	for p, s := range processes {
		clocks[p] = clock{s.parent, s.time + s.childTime}
		running += s.time + s.childTime
	}
	before := make(map[int]Process, len(m.clocks)) // the processes of the last look
	for p := range m.clocks {
		before[p.PID] = p
	}
	for p, c := range m.clocks {
		if _, lives := clocks[p]; !lives && !m.isWaitedFor(c.parent, before, clocks) {
			m.ended += c.ticks
		}
	}
	for g, use := range m.groups {
		if _, is := groups[g]; !is {
			m.gone = m.gone.Plus(spentBy(use))
		}
	}
	m.clocks, m.groups = clocks, groups
	sum := m.gone
	for _, use := range groups {
		sum = sum.Plus(spentBy(use))
	}
	sum.CPUMillis += int64(running+m.ended) * 1000 / ticks
	return sum
}

func spentBy(u Use) Spent { return Spent{u.CPUMillis, *u.OOMKills, u.PeakMemoryBytes} }

// isWaitedFor reports whether an ancestor of a process that has ended lives: the kernel has
// added the time of the process to that of the ancestor.
func (m *meter) isWaitedFor(parent int, before map[int]Process, now map[Process]clock) bool {
	for range m.clocks { // no further than there are processes
		p, known := before[parent]
		if !known {
			return false
		}
		if _, lives := now[p]; lives {
			return true
		}
		parent = m.clocks[p].parent
	}
	return false
}

// usesOf reads the use of the attached cgroups that the kernel counts. A cgroup below another
// one counts with that one.
func usesOf(list []Group, bootID string) map[Group]Use {
	uses := map[Group]Use{}
	for i, g := range list {
		if isBelowOther(list, i) || !g.isThere(bootID) {
			continue
		}
		if u, ok := cgroupUse(g.Path); ok {
			uses[g] = u
		}
	}
	return uses
}

// isBelowOther reports whether a cgroup lies below another one of the list.
func isBelowOther(list []Group, at int) bool {
	for _, g := range list {
		if strings.HasPrefix(list[at].Path, strings.TrimSuffix(g.Path, "/")+"/") {
			return true
		}
	}
	return false
}

// measure completes a look with the use. counted are all processes of the work, those
// included that have ended and that nobody has waited for.
func (w *Watch) measure(look *Look, a Attached, counted map[Process]stat) {
	groups := usesOf(a.Cgroups, w.bootID)
	inside := map[int]bool{}
	for g, use := range groups {
		look.MemoryBytes += use.MemoryBytes
		for _, pid := range processesBelow(g.Path) {
			inside[pid] = true
		}
	}
	outside := map[Process]stat{}
	for p, s := range counted {
		if !inside[p.PID] {
			outside[p] = s
			look.MemoryBytes += s.pages * int64(os.Getpagesize())
		}
	}
	look.Spent, look.HasKills, look.HasPeak = w.meter.take(outside, groups), len(groups) > 0, len(groups) == 1 && len(outside) == 0 && w.meter.gone == Spent{}
}
