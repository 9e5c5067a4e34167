package sim

import (
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is processes that nobody accounts for: they outlive their workload,
// or the store and the disk have both forgotten it. An agent looks now and then
// at what runs, and the ledger makes orphans of it (agent/orphans.go).

// straggler is a process on a device.
type straggler struct {
	uuid string
	tx   resource.TxID // that it was of
	// explained: a record of a restored store names its device.
	explained bool
}

// oddities are drawn too, once in a while, in a run with stragglers.
var oddities = []func(*Sim) bool{(*Sim).actLook, (*Sim).actStraggler}

// actLook lets an agent see what runs.
func (s *Sim) actLook() bool {
	h := pick(s, s.hosts)
	if h.agent == nil {
		return false
	}
	h.agent.look()
	return true
}

// actStraggler lets a process end.
func (s *Sim) actStraggler() bool {
	h := pick(s, s.hosts)
	if len(h.stragglers) == 0 || s.rng.IntN(4) > 0 {
		return false
	}
	g := takeOut(s, &h.stragglers)
	s.logf("%s: what %s left on %s has ended", h.node, short(g.tx), g.uuid)
	return true
}

// busy are the devices that something runs on, in truth.
func (h *host) busy() map[string]bool {
	busy := map[string]bool{}
	for _, w := range h.running {
		for _, a := range w.assignment {
			for _, g := range a.GPUs {
				busy[g.UUID] = true
			}
		}
	}
	for _, g := range h.stragglers {
		busy[g.uuid] = true
	}
	return busy
}

// busy are the devices that something ran on when the agent looked last.
func (a *agent) busy() []string {
	if s := a.h.sim; !s.stragglers || s.bug == VictimsUnseen {
		return nil
	}
	return slices.Sorted(maps.Keys(a.seen))
}

// look takes a new sighting, and tells the ledger.
func (a *agent) look() {
	a.seen = a.h.busy()
	a.explain()
}

// explain has the ledger make orphans of what is free and was seen to be busy.
// Nothing is answered before.
func (a *agent) explain() {
	if !a.h.sim.stragglers || a.h.sim.bug == OrphansUnseen || a.dead || a.l.Registration() == 0 {
		return
	}
	var c ledger.Observed
	for _, d := range a.h.hardware().Inventory().Devices {
		if a.seen[d.UUID] {
			c.Busy = append(c.Busy, d.UUID)
		} else {
			c.Idle = append(c.Idle, d.UUID)
		}
	}
	before := a.l.Hash()
	if _, ok := a.do(c, nil); ok && a.l.Hash() != before {
		a.h.sim.logf("%s: its orphans have changed", a.h.node)
		a.h.sim.stats["orphans"]++
		a.tell(a.occupancy())
	}
}

// vacates reports whether an event may leave something free that is busy.
func vacates(e ledger.Event) bool {
	switch e.(type) {
	case ledger.Enrolled, ledger.Buried, ledger.Dropped:
		return true
	}
	return false
}

// straggle lets a process of a workload that ends go on, on one device. The
// agent has seen it: what begins and is left behind between two looks nobody can
// know of.
func (h *host) straggle(tx resource.TxID, w *workload) {
	if s := h.sim; !s.stragglers || h.agent == nil || !s.mishap(6) {
		return
	}
	for _, a := range w.assignment {
		for _, g := range a.GPUs {
			if h.agent.seen[g.UUID] {
				h.leaveBehind(tx, g.UUID)
				return
			}
		}
	}
}

func (h *host) leaveBehind(tx resource.TxID, uuid string) {
	h.sim.logf("%s: a process of %s stays on %s", h.node, short(tx), uuid)
	h.sim.stats["stragglers"]++
	h.stragglers = append(h.stragglers, straggler{uuid: uuid, tx: tx})
}

// orphan makes stragglers of the workloads that the store has lost and that a
// ledger does not hold: nobody knows of them. Once the faults are over they end
// as all stragglers have.
func (h *host) orphan(l *ledger.Ledger) {
	for _, tx := range slices.Sorted(maps.Keys(h.running)) {
		g, _ := l.Lookup(tx)
		if !h.sim.gone[tx] || h.sim.decided[tx].Charged() || g.State == grant.Held || g.State == grant.Evicting || g.State == grant.Stopping {
			continue
		}
		if h.sim.stragglers && h.sim.faults {
			for _, a := range h.running[tx].assignment {
				for _, g := range a.GPUs {
					h.leaveBehind(tx, g.UUID)
				}
			}
		}
		delete(h.running, tx)
	}
}

// excuse notes that a record of a restored store names what something runs on:
// by its word it is that one's.
func (h *host) excuse(tx resource.TxID, w *workload) {
	if !h.sim.back[tx] {
		return
	}
	for _, a := range w.assignment {
		for _, g := range a.GPUs {
			for i := range h.stragglers {
				h.stragglers[i].explained = h.stragglers[i].explained || h.stragglers[i].uuid == g.UUID
			}
		}
	}
}

// ownStragglers is checkI1 for what outlives its workload.
func (s *Sim) ownStragglers(h *host, owners map[string]resource.TxID) {
	for _, g := range h.stragglers {
		if other, taken := owners[g.uuid]; taken && other != g.tx && !g.explained {
			s.fail("I1", "%s runs %s for %s while something of %s runs there", h.node, g.uuid, short(other), short(g.tx))
		}
	}
}

// has reports whether the host has the device of an orphan.
func (h *host) has(orphan ledger.Grant) bool {
	uuid, _ := ledger.OrphanUUID(orphan.Tx)
	return slices.ContainsFunc(h.hardware().Inventory().Devices, func(d devices.Device) bool { return d.UUID == uuid })
}
