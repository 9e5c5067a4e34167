package invariant

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is I7: who may be evicted, and for whom.

// Nominated says on which nodes a preemption is to wait for its victims.
func (c *Checker) Nominated(tx resource.TxID, nodes []resource.NodeID) {
	c.nominated[tx] = slices.Clone(nodes)
}

// EvictionAsked says that somebody has asked for the end of a transaction, for
// no other unit.
func (c *Checker) EvictionAsked(tx resource.TxID) { c.wished[tx] = true }

// SuspensionAsked says that the client of an object wants all its units to stop and to
// wait, at any time from now on.
func (c *Checker) SuspensionAsked(namespace, name string) {
	c.suspended[record.UnitPath{Namespace: namespace, Name: name}] = true
}

// isWished reports whether somebody has asked for an eviction for nobody.
func (c *Checker) isWished(tx resource.TxID, unit record.UnitPath) bool {
	return c.wished[tx] || c.suspended[record.UnitPath{Namespace: unit.Namespace, Name: unit.Name}]
}

// checkVictim checks a record that becomes EVICTING: for an undecided preemptor
// of higher priority, for which every member's agent waits; or because somebody
// has asked for it. Where there are trees, quota may have named the victim, and
// priorities do not count.
func (c *Checker) checkVictim(tx resource.TxID, r record.Tx) {
	if r.By == "" {
		if !c.isWished(tx, r.Unit) {
			c.report(of(I7Asked, tx), "%s is EVICTING for nobody, and nobody has asked for it", tx)
		}
		return
	}
	v := of(I7Victims, tx, r.By)
	if state := c.state.decided[r.By]; state != grant.RecordAbsent {
		c.report(v, "%s is EVICTING for %s, which is %s", tx, r.By, state)
	}
	uid, _, _, err := r.By.Attempt()
	if err != nil {
		c.report(v, "%s is EVICTING for %q: %v", tx, r.By, err)
		return
	}
	victim, preemptor := c.state.byUID[r.UnitUID], c.state.byUID[uid]
	if victim.Priority >= preemptor.Priority && !c.mayClaim() {
		v.Have, v.Bound = int64(victim.Priority), int64(preemptor.Priority)
		c.report(v, "%s of priority %d is EVICTING for %s of priority %d", tx, victim.Priority, r.By, preemptor.Priority)
	}
	c.checkWaiting(tx, r.By)
}

// checkUndecided checks a record that was EVICTING for a preemptor without a
// record: the preemptor may still take the victim's place.
func (c *Checker) checkUndecided(tx resource.TxID, r record.Tx) {
	was := c.before[tx]
	if was.State != grant.RecordEvicting || was.By == "" || r.State == grant.RecordEvicting && r.By == was.By {
		return
	}
	if _, decided := c.state.records[was.By]; !decided && c.state.decided[was.By] == grant.RecordAbsent {
		c.report(of(I7Undecided, tx, was.By), "%s was EVICTING for %s, which is undecided, and is %q by %q", tx, was.By, r.State, r.By)
	}
}

// checkNamed checks a record that is deleted: where it was ABORTED, and a victim
// names it, the next leader takes the preemptor for undecided.
func (c *Checker) checkNamed(tx resource.TxID) {
	for victim, r := range c.live() {
		if r.By == tx {
			c.report(of(I11Named, tx, victim), "the record of %s is deleted, and %s is %s for it", tx, victim, r.State)
		}
	}
}

// mayClaim reports whether quota may name victims.
func (c *Checker) mayClaim() bool { return len(c.trees) > 0 && !c.noClaims }

// NoClaims says that no quota of the cluster is ever claimed back, though there
// are trees.
func (c *Checker) NoClaims() { c.noClaims = true }

// checkWaiting checks that a preemption waits wherever it is nominated. An agent
// that is down, or whose incarnation the store does not know yet, has lost what
// it promised.
func (c *Checker) checkWaiting(tx, by resource.TxID) {
	for _, node := range c.nominated[by] {
		a, registered := c.hosts[node].Agent, c.state.identities[node].Incarnation
		if a == nil || a.Incarnation != registered || c.omitted[node] {
			continue
		}
		if g, _ := a.lookup(by); g.State != grant.Waiting && g.State != grant.Reserved || g.Incarnation != registered {
			c.report(of(I7Waiting, string(tx), string(by), string(node)), "%s is EVICTING for %s, which is %s on %s since %s, and that is %s now",
				tx, by, g.State, node, g.Incarnation, registered)
		}
	}
}

// checkNominated checks that a commit uses nothing that an agent keeps for
// another transaction.
func (c *Checker) checkNominated(tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		a := c.hosts[m.Node].Agent
		if a == nil || !a.Registered || c.omitted[m.Node] {
			continue
		}
		uses := devices(m.Assignment)
		for _, g := range a.Grants {
			if g.State != grant.Waiting || g.Tx == tx || slices.Contains(g.Victims, tx) || c.state.decided[g.Tx] != grant.RecordAbsent {
				continue
			}
			for _, member := range g.Members {
				for _, uuid := range slices.Sorted(maps.Keys(devices(member.Assignment))) {
					if uses[uuid] > 0 {
						c.report(of(I7Nominated, string(tx), uuid, string(g.Tx)), "%s is COMMITTED with %s, which is kept for %s", tx, uuid, g.Tx)
					}
				}
			}
		}
	}
}
