package invariant

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// checkGroup checks that the first commit of a group commits enough members: all that
// have a record COMMITTED by this batch, where no member had started before. A member that is
// adopted runs already.
func (c *Checker) checkGroup(tx resource.TxID, r record.Tx) {
	u, known := c.state.byUID[r.UnitUID]
	if !known || c.adopted[tx] || u.Gang == nil || c.before[tx].State != grant.RecordAbsent {
		return
	}
	now := 0
	for _, mate := range c.state.units {
		if mate.Namespace != u.Namespace || mate.Gang == nil || mate.Gang.First != u.Gang.First {
			continue
		}
		before, written := c.before[mate.TxID]
		switch {
		case written && before.State == grant.RecordAbsent && c.state.records[mate.TxID].State == grant.RecordCommitted:
			now++
		case mate.Started != "":
			return // the group had started
		}
	}
	if now < u.Gang.MinMembers {
		c.report(of(I17Group, string(tx), u.Path().String()), "%s commits %d members of the group of %s, which needs %d at once", tx, now, u.Path(), u.Gang.MinMembers)
	}
}
