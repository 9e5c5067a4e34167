package invariant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is I13: at rest everything agrees.

// Load takes a content of the store as it is, whatever has led to it.
func (c *Checker) Load(b Batch) {
	c.state.revision = b.Revision
	for _, change := range b.Changes {
		change.apply(c)
	}
	clear(c.before)
	clear(c.touched)
	clear(c.stood)
	for tx, r := range c.state.records {
		c.state.decided[tx] = r.State
	}
}

// Renumbers says that cards come and go, so that a device may have another index
// on its agent than in its record.
func (c *Checker) Renumbers() { c.renumbers = true }

// Quiet checks what must agree once faults have ended, two TTLs and one resync
// have passed and nothing is under way. All hosts have been observed.
func (c *Checker) Quiet() []Violation {
	for tx, r := range c.live() {
		if r.State != grant.RecordCommitted {
			c.report(of(I13Records, string(tx), r.Unit.String()), "%s (%s) is still %s", tx, r.Unit, r.State)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(c.hosts)) {
		if !c.omitted[node] {
			c.checkGrants(c.hosts[node])
		}
	}
	txs := maps.Clone(c.state.index)
	for tx := range c.state.records {
		txs[tx] = nil
	}
	for _, tx := range slices.Sorted(maps.Keys(txs)) {
		c.checkIndex(tx)
	}
	c.checkOrder()
	for _, path := range slices.SortedFunc(maps.Keys(c.state.units), comparePaths) {
		c.checkUnit(path, c.state.units[path])
	}
	for tx, r := range c.live() {
		if u := c.state.units[r.Unit]; u.TxID != tx {
			c.report(of(I13Units, string(tx), r.Unit.String()), "%s is %s, its unit %s names %q", tx, r.State, r.Unit, u.TxID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.state.jobs)) {
		if j := c.state.jobs[name]; j.Cancelled != nil && !api.Phase(j.Phase).Ended() {
			c.report(of(I13Units, name), "job %s is cancelled and %s", name, j.Phase)
		}
	}
	return c.taken()
}

// holding is one member of a transaction.
type holding struct {
	tx     resource.TxID
	member int
}

func compareHoldings(a, b holding) int {
	return cmp.Or(cmp.Compare(a.tx, b.tx), cmp.Compare(a.member, b.member))
}

// checkGrants compares what an agent holds with the records, both ways.
func (c *Checker) checkGrants(h Host) {
	if h.Agent == nil {
		c.report(of(I13Grants, h.Node), "agent %s is down", h.Node)
		return
	}
	if h.Agent.Quarantined {
		c.report(of(I13Grants, h.Node), "%s is still in quarantine", h.Node)
	}
	want := map[holding]resource.Assignment{}
	for tx, r := range c.live() {
		for _, m := range r.Members {
			if m.Node == h.Node && r.State == grant.RecordCommitted {
				want[holding{tx, m.Member}] = m.Assignment
			}
		}
	}
	for _, g := range h.Agent.Grants {
		v := of(I13Grants, string(h.Node), string(g.Tx))
		switch {
		case g.Origin == ledger.OriginOrphan && !h.has(g): // of a card that is gone nobody says anything
		case g.Origin == ledger.OriginOrphan:
			c.report(v, "%s is still an orphan on %s", g.Tx, h.Node)
		case g.State == grant.Tombstone || g.Origin == ledger.OriginKubelet: // the store has no records of the kubelet's pool
		case g.State != grant.Held:
			c.report(v, "%s has %s in %s, the store %q", h.Node, g.Tx, g.State, c.state.records[g.Tx].State)
		default:
			c.checkHeld(h.Node, g, want)
		}
	}
	for _, m := range slices.SortedFunc(maps.Keys(want), compareHoldings) {
		c.report(of(I13Grants, string(h.Node), string(m.tx)), "member %d of %s is COMMITTED and not held on %s", m.member, m.tx, h.Node)
	}
}

// has reports whether the host has the device of an orphan.
func (h Host) has(orphan ledger.Grant) bool {
	uuid, _ := ledger.OrphanUUID(orphan.Tx)
	return slices.Contains(h.Devices, uuid)
}

// checkHeld compares one grant with the members that are wanted, and takes those
// out of them. A host that has lost records may hold again what had ended there;
// an operator releases it.
func (c *Checker) checkHeld(node resource.NodeID, g ledger.Grant, want map[holding]resource.Assignment) {
	for _, m := range g.Members {
		at := holding{g.Tx, m.Index}
		recorded, wanted := want[at]
		v := of(I13Grants, string(node), string(g.Tx))
		_, known := c.state.records[g.Tx]
		switch delete(want, at); {
		case !wanted && c.lost[node] == LostRecords && !known:
		case !wanted:
			c.report(v, "%s holds %s for member %d of %s, which is %q", node, names(m.Assignment), m.Index, g.Tx, c.state.records[g.Tx].State)
		case names(m.Assignment) != names(recorded):
			c.report(v, "%s holds %s for member %d of %s, its record has %s", node, names(m.Assignment), m.Index, g.Tx, names(recorded))
		case !c.same(m.Assignment, recorded):
			v.Rule = I13Devices
			c.report(v, "%s holds %+v for member %d of %s, its record has %+v", node, m.Assignment, m.Index, g.Tx, recorded)
		}
	}
}

// names are the devices of an assignment, for people.
func names(a resource.Assignment) string { return fmt.Sprint(slices.Sorted(maps.Keys(devices(a)))) }

// same compares whole assignments.
func (c *Checker) same(a, b resource.Assignment) bool {
	return sameThings(a, b) && (c.renumbers || slices.Equal(a.GPUs, b.GPUs) && slices.Equal(a.MIG, b.MIG))
}

// checkOrder checks that the order names units that are there, each once.
func (c *Checker) checkOrder() {
	at := map[record.UnitPath]string{}
	for _, key := range slices.Sorted(maps.Keys(c.state.order)) {
		o := c.state.order[key]
		v := of(I13Units, o.Path.String())
		if _, twice := at[o.Path]; twice {
			c.report(v, "unit %s is twice in the order", o.Path)
		}
		at[o.Path] = key
		switch u, exists := c.state.units[o.Path]; {
		case !exists:
			c.report(v, "the order names %s, which does not exist", o.Path)
		case u.UID != o.UID:
			c.report(v, "the order names %s as %s, the unit is %s", o.Path, o.UID, u.UID)
		}
	}
}

// isOrdered reports whether a unit is in the order.
func (c *Checker) isOrdered(path record.UnitPath) bool {
	for _, o := range c.state.order {
		if o.Path == path {
			return true
		}
	}
	return false
}

// checkUnit compares a unit with its record and with the order.
func (c *Checker) checkUnit(path record.UnitPath, u record.Unit) {
	v := of(I13Units, path.String(), string(u.TxID))
	phase, state, ordered := api.Phase(u.Phase), c.state.records[u.TxID].State, c.isOrdered(path)
	waits := phase == api.Pending || phase == api.Queued
	if runs, live := phase == api.Running, state == grant.RecordCommitted; runs != live {
		c.report(v, "unit %s is %s with transaction %q, which is %q", path, u.Phase, u.TxID, state)
	}
	if waits != ordered {
		c.report(v, "unit %s is %s; in the order: %t", path, u.Phase, ordered)
	}
	if waits && u.TxID != "" {
		c.report(v, "unit %s is %s and names transaction %q", path, u.Phase, u.TxID)
	}
	if phase == api.Terminating {
		c.report(v, "unit %s is still Terminating", path)
	}
}
