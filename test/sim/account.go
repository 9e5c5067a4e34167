package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/account.go: the account that each term keeps of what
// it decides, read by the checker of that coordinator's log as it is written.

// keepAccount begins the term's account.
func (t *term) keepAccount() {
	log := t.sim.logs[t.coordinator]
	if log == nil {
		log = decisions.NewChecker()
		t.sim.logs[t.coordinator] = log
	}
	t.account = decisions.NewTracker(t.epoch, t.generation, t.queue.Head(t.queue.Len()), func(r decisions.Record) bool {
		known := len(log.Report().Violations)
		log.Record(r)
		for _, v := range log.Report().Violations[known:] {
			if v.Rule == decisions.RuleNominated && (t.renumbered || t.sim.isVoid(v) || t.sim.ofLiar(v)) {
				continue
			}
			t.sim.fail("I7", "%s: the decision log: %s", t.name, v)
		}
		if r.Place != nil {
			t.sim.stats["placements verified"]++
		}
		return false
	})
	t.queue.Observe(t.account)
}

// passOver accounts for a unit that is not placed in this pass.
func (t *term) passOver(u *unit) {
	e := decisions.Evidence{Why: decisions.Infeasible, Like: fmt.Sprint(u.client.demand)}
	switch {
	case u.writing || u.attempt != nil:
		e = decisions.Evidence{Why: decisions.BeingWritten}
	case u.adopting != nil:
		e = decisions.Evidence{Why: decisions.AwaitsVictims, Subject: string(u.adopting.tx)}
	case u.resting:
		e = decisions.Evidence{Why: decisions.InBackoff, Until: 1}
	case u.short:
		e = decisions.Evidence{Why: decisions.OverQuota, Subject: u.client.namespace + " " + u.client.group}
	}
	t.account.Skipped(u.key, e, nil)
}

// accountFor notes that an attempt begins. It comes before the unit leaves the
// queue.
func (t *term) accountFor(a *attempt, tx resource.TxID, planned []decisions.Devices, adopted bool) {
	p := decisions.Placement{Key: a.unit.key, Tx: tx, Kind: decisions.Plain, Devices: planned, Adopted: adopted}
	for _, v := range a.victims {
		p.Victims = append(p.Victims, decisions.Victim{Unit: v.unit.client.name, Priority: v.unit.client.priority})
	}
	if len(a.victims) > 0 {
		p.Kind = decisions.Preemption
	}
	t.account.Placed(p)
}

// plannedDevices are the GPUs of a plan, by node. They are numbered the same
// whichever cards the host has at the moment; in the leader's log a card that is
// added renumbers those behind it.
func plannedDevices(plan []place.Choice) []decisions.Devices {
	at := map[resource.NodeID]int{}
	var list []decisions.Devices
	for _, m := range plan {
		i, found := at[m.Node.ID]
		if !found {
			i = len(list)
			at[m.Node.ID] = i
			list = append(list, decisions.Devices{Node: m.Node.ID})
		}
		for _, g := range m.Assignment.GPUs {
			list[i].GPUs = append(list[i].GPUs, slotOf(m.Node.ID, g.UUID))
		}
	}
	for i := range list {
		slices.Sort(list[i].GPUs)
	}
	return list
}

// slotOf is the number of a GPU among all that a node may have.
func slotOf(node resource.NodeID, uuid string) int {
	kinds := hardware()[int(node[1]-'1')]
	return slices.IndexFunc(kinds[len(kinds)-1].Inventory().Devices, func(d devices.Device) bool { return d.UUID == uuid })
}

// isVoid reports whether a device was nominated to a transaction that is ABORTED
// by then: its agents have given it up, and its leader has not heard of that.
func (s *Sim) isVoid(v decisions.Violation) bool {
	tx := v.Detail[strings.LastIndexByte(v.Detail, ' ')+1:]
	return s.decided[resource.TxID(tx)] == grant.RecordAborted
}
