package lead

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// This file tells the room of the waiting which of its events have happened
// (coordinator/sched). What grows on nodes is noted by cluster.State itself.

// noteChange counts that something was freed or added.
func (l *Leader) noteChange() { l.generation++ }

// takeNews wakes those that the nodes may help which have grown (E1), and those
// that wait for others to give way or to leave, as the occupants have changed (E3,
// E4).
func (l *Leader) takeNews() {
	if l.room.AwaitsOthers() {
		l.takeOccupantNews(l.occupied().TakeOccupantNews())
		for _, n := range l.state.TakeShrunk() {
			if l.room.CountsOn(n.ID) {
				l.unleftFor(l.nodes[n.ID])
			}
		}
	} else {
		l.state.TakeOccupantNews() // of interest to nobody
		l.state.ForgetShrunk()
	}
	l.takeNeighbourNews()
	if !l.state.HasGrown() {
		return
	}
	l.noteChange()
	for _, n := range l.state.TakeGrown() {
		l.room.Grew(n, l.heldBelow)
	}
}

// takeNeighbourNews wakes those that wait for a place under rules about other units
// which have come to nodes, are leaving them or have left (E7).
func (l *Leader) takeNeighbourNews() {
	if l.room.AwaitsNeighbours() {
		l.occupied()
	}
	news, regrouped := l.state.TakeNeighbourNews(), l.state.TakeRegrouped()
	if !l.room.AwaitsNeighbours() {
		return
	}
	for _, u := range news {
		l.noteChange()
		l.room.Neighbour(u)
	}
	if regrouped {
		l.noteChange()
		l.room.Regrouped()
	}
}

// takeOccupantNews wakes those that wait for any of these units.
func (l *Leader) takeOccupantNews(units []string) {
	for _, unit := range units {
		l.noteChange()
		o := l.state.Occupant(unit)
		if o == nil || o.Status != cluster.Evictable {
			l.room.Unleft()
			continue
		}
		nodes := make([]*cluster.Node, 0, len(o.Nodes))
		for _, id := range o.Nodes {
			if n := l.state.Node(id); n != nil {
				nodes = append(nodes, n)
			}
		}
		l.room.Evictable(o.Priority, nodes, l.heldBelow)
	}
}

// noteFreed wakes those over quota that an attempt was charged to (E2).
func (l *Leader) noteFreed(a *work.Attempt) {
	l.noteChange()
	l.room.Freed(a.Unit.Record.Namespace, sched.TreesOf(a.Charges))
}

// noteCharged wakes those that claim quota of the trees that an attempt is charged
// to from now on, and all over that quota where the charge has moved other units
// (E2). The charge is the trees' last call.
func (l *Leader) noteCharged(a *work.Attempt) {
	switch trees := sched.TreesOf(a.Charges); {
	case len(trees) == 0:
	case l.quotas.Trees().HasMovedOthers(a.Unit.Path):
		l.room.Moved(trees)
	default:
		l.room.Charged(trees)
	}
}

// noteChargedTogether wakes all over the quota of the trees that attempts which start
// together are charged to from now on (E2): each of the charges may have moved others.
func (l *Leader) noteChargedTogether(c *work.Company) {
	var trees []string
	for _, a := range c.Attempts {
		trees = append(trees, sched.TreesOf(a.Charges)...)
	}
	if slices.Sort(trees); len(trees) > 0 {
		l.room.Moved(slices.Compact(trees))
	}
}

// wakeAll lets everything that waits be tried again, after a rare change.
func (l *Leader) wakeAll() {
	l.noteChange()
	l.room.All()
}

// wakeAt lets those over the quota of trees be tried again at a time, unless that
// happens earlier (E5); a zero time is never.
func (l *Leader) wakeAt(at time.Time) {
	if at.IsZero() || l.alarm != nil && !at.Before(l.alarm.At()) {
		return
	}
	l.post.Cancel(l.alarm)
	l.alarm = l.post.After(at.Sub(l.post.Now()), func() {
		l.alarm = nil
		l.noteChange()
		l.room.Due()
	})
}

// isAlarmDue reports whether the alarm of wakeAt is about to go off.
func (l *Leader) isAlarmDue() bool { return l.alarm != nil && !l.alarm.At().After(l.post.Now()) }

// heldBelow sums the parts of occupants below a priority on a node (sched.Held).
func (l *Leader) heldBelow(n *cluster.Node, below int64) (sum cluster.Amounts) {
	for o := range l.occupied().OccupantsOf(n.ID) {
		if int64(o.Priority) >= below {
			continue
		}
		for i := range o.Parts {
			if o.Parts[i].Node == n.ID {
				add(&sum, &o.Parts[i].Assignment)
			}
		}
	}
	return sum
}

func add(sum *cluster.Amounts, a *resource.Assignment) {
	for _, g := range a.CPUs {
		sum.CPU += g.Milli
	}
	for _, g := range a.Memory {
		sum.Memory += g.Bytes
	}
	for _, g := range a.GPUs {
		sum.GPU += g.Milli
	}
}

// wakeFor has those tried again that a node's message may help, now or, if the
// node has sent many such messages, within a second.
func (l *Leader) wakeFor(n *node) {
	if n.setWakes(!n.woken.Take(l.post.Now(), wakeRate)); n.wakes {
		l.state.HoldBack(&n.view)
	}
}

// setReady recomputes whether a node takes new work. Where that changes, units
// with members elsewhere too may give way, or may not (E1, E4).
func (l *Leader) setReady(n *node) {
	before := n.view.Ready
	n.setReady()
	switch {
	case !before && n.view.Ready:
		for _, tx := range l.attemptsOn(n.view.ID) {
			for _, id := range l.work.Attempts[tx].Machine.Nodes() {
				l.state.MarkGrown(&l.nodes[id].view)
			}
		}
	case before && !n.view.Ready && l.hasLeavingUnit(n):
		l.unleftFor(n)
	}
}

// unleftFor wakes those that counted on units leaving a node, which is out of
// reach now, or on its room, which is less now: at once or, if that is so often, within a
// second.
func (l *Leader) unleftFor(n *node) {
	if n.setWakes(!n.woken.Take(l.post.Now(), wakeRate)); !n.wakes {
		l.noteChange()
		l.room.Unleft()
	}
}
