package lead

import (
	"slices"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// chooseForm is UseForm of a unit without an attempt.
func (l *Leader) chooseForm(u *work.Unit, number int) {
	if u.Number == number {
		return
	}
	l.removeConsumer(u)
	u.UseForm(number)
}

// eachForm calls f for the forms of a unit without an attempt, in order, while the unit
// has them, until f returns false. The unit has its first form afterwards.
func (l *Leader) eachForm(u *work.Unit, f func() bool) {
	for i := range max(1, len(u.Forms)) {
		l.chooseForm(u, i)
		if !f() {
			break
		}
	}
	l.chooseForm(u, 0)
}

// formHeld is the first form whose amounts members have, on the hosts as they are; the
// first of all where none is.
func (l *Leader) formHeld(u *work.Unit, found map[resource.NodeID][]grant.Member) int {
	for i := range u.Forms {
		request, same := u.Forms[i].Demand.Request, true
		for id, members := range found {
			n := l.nodes[id]
			if n == nil || n.view.Host == nil {
				return 0
			}
			same = same && !slices.ContainsFunc(members, func(m grant.Member) bool { return n.view.Host.Satisfies(request, m.Assignment) != nil })
		}
		if same {
			return i
		}
	}
	return 0
}
