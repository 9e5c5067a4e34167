package invariant

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the loss of members, and the units that replace them (ADR 110).

// checkLoss checks a record that goes from COMMITTED to COMMITTED: it loses all members on
// nodes that are fenced and confirmed dead before the revision, and keeps the others; their
// charge ends, and each has a unit that replaces it.
func (c *Checker) checkLoss(tx resource.TxID, r record.Tx) {
	before, v := c.before[tx], of(I10Lost, tx)
	lost := r.LostMembers[min(len(before.LostMembers), len(r.LostMembers)):]
	if len(lost) == 0 || len(lost)+len(r.Members) != len(before.Members) {
		c.report(v, "%s goes from the members %v to %v, and has lost %d", tx, memberIndices(before), memberIndices(r), len(lost))
		return
	}
	u := c.state.byUID[r.UnitUID]
	for _, m := range lost {
		was, changes := c.stood[m.Node]
		if !changes {
			was = c.state.identities[m.Node]
		}
		if !was.Fenced || !was.ConfirmedDead {
			c.report(of(I10Lost, string(tx), string(m.Node)), "%s has lost member %d on %s, which is registered as %s, fenced %t, dead %t", tx, m.Member, m.Node, was.Incarnation, was.Fenced, was.ConfirmedDead)
		}
		path := u.Path()
		path.N = record.FirstReplacement + u.FirstMember + m.Member
		if by, exists := c.state.units[path]; !exists || !by.Replaces || by.Parent != r.UnitUID || !u.HasLost(m.Member) {
			c.report(v, "%s has lost member %d, and unit %s does not replace it", tx, m.Member, path)
		}
	}
	if slices.ContainsFunc(r.Members, func(m record.Placement) bool {
		return slices.ContainsFunc(lost, func(l record.LostMember) bool { return l.Node == m.Node })
	}) {
		c.report(v, "%s has lost a part of its members on a node", tx)
	}
	var less int64 // members may differ
	for _, m := range lost {
		less += m.Assignment.Vector()[resource.GPU]
	}
	for i, charge := range r.Charges {
		if i >= len(before.Charges) || charge.Request[resource.GPU] != before.Charges[i].Request[resource.GPU]-less {
			c.report(v, "%s has lost %d thousandths of a device with %d of %d members, and charges %v", tx, less, len(lost), len(before.Members), r.Charges)
			return
		}
	}
}

// checkReplacement checks that a unit which replaces a member is committed while its gang
// is COMMITTED without the member.
func (c *Checker) checkReplacement(tx resource.TxID, r record.Tx) {
	u, known := c.state.byUID[r.UnitUID]
	if !known || !u.Replaces {
		return
	}
	gang := c.state.byUID[u.Parent]
	of110 := of(I18Replacement, string(tx), u.Path().String())
	rec := c.state.records[gang.TxID]
	if rec.State != grant.RecordCommitted || rec.UnitUID != u.Parent || !slices.ContainsFunc(rec.LostMembers, func(m record.LostMember) bool { return gang.FirstMember+m.Member == u.FirstMember }) {
		c.report(of110, "%s is COMMITTED in place of member %d of %s, whose record %s is %q and has lost %v", tx, u.FirstMember, u.Parent, gang.TxID, rec.State, rec.LostMembers)
	}
}

// isUnwanted reports whether a unit replaces a member of a gang that does not run, or is
// about to end: nobody else has to ask for its end then.
func (c *Checker) isUnwanted(r record.Tx) bool {
	u := c.state.byUID[r.UnitUID]
	if !u.Replaces {
		return false
	}
	gang := c.state.byUID[u.Parent]
	path := gang.Path()
	return c.state.records[gang.TxID].State != grant.RecordCommitted || c.state.ended[path]
}
