package invariant

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is I4 for what clients are told at the moment when they are told.

// Told says that the client of a unit is told that the unit exists.
func (c *Checker) Told(unit record.UnitPath, uid resource.UnitUID) []Violation {
	if before := c.state.told[unit]; before != "" && before != uid {
		c.report(of(I4Told, unit.String(), string(before), string(uid)), "the client of %s was told of %s and of %s", unit, before, uid)
	}
	c.state.told[unit] = uid
	c.checkTold()
	return c.taken()
}

// EndAsked says that the client of a unit has asked for its end.
func (c *Checker) EndAsked(unit record.UnitPath) { c.state.ended[unit] = true }

// CommitTold says that a commit is acknowledged.
func (c *Checker) CommitTold(tx resource.TxID) []Violation {
	if state := c.state.decided[tx]; !state.Charged() && state != grant.RecordReleased {
		c.report(of(I4Committed, tx), "the commit of %s is acknowledged, its record is %q", tx, state)
	}
	return c.taken()
}

// checkTold checks that what clients were told they have is there.
func (c *Checker) checkTold() {
	var paths []record.UnitPath
	for path := range c.state.told {
		if !c.state.ended[path] {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, comparePaths)
	for _, path := range paths {
		c.checkUnitTold(path, c.state.told[path])
	}
}

func comparePaths(a, b record.UnitPath) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.N, b.N))
}

func (c *Checker) checkUnitTold(path record.UnitPath, uid resource.UnitUID) {
	v := of(I4Told, path.String(), string(uid))
	u, exists := c.state.units[path]
	r := c.state.records[u.TxID]
	switch phase := api.Phase(u.Phase); {
	case !exists || u.UID != uid:
		c.report(v, "the client of %s was told that it has %s, the store has %q", path, uid, u.UID)
	case phase == api.Running && r.State != grant.RecordCommitted:
		c.report(v, "the client of %s has %s, whose record %s is %q", path, uid, u.TxID, r.State)
	case phase == api.Terminating && !r.Evicted:
		c.report(v, "the client of %s has %s, which is %s, and its record %s is %q and not evicted", path, uid, u.Phase, u.TxID, r.State)
	case phase != api.Running && phase != api.Terminating && phase != api.Pending:
		c.report(v, "the client of %s has %s, which is %s", path, uid, u.Phase)
	}
}
