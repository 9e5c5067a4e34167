package ledger

import (
	"slices"
	"strings"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is devices that something runs on although nobody was promised
// them: a launcher has outlived its grant, or the journal is gone. Such a device
// is an orphan until nothing runs on it: a Held grant of OriginOrphan has all of
// it, of which no leader knows more than that it is there.

// orphanPrefix begins the identifiers of orphans. No attempt of a leader has a
// colon in its own.
const orphanPrefix = "orphan:"

// OrphanTx is the identifier of the orphan that a GPU or MIG instance becomes.
func OrphanTx(uuid string) resource.TxID { return resource.TxID(orphanPrefix + uuid) }

// OrphanUUID is the device of an orphan's identifier; ok is false where it is
// none.
func OrphanUUID(tx resource.TxID) (uuid string, ok bool) {
	return strings.CutPrefix(string(tx), orphanPrefix)
}

// observe makes orphans of devices that are wholly free and busy, and frees
// orphans that are idle. Processes on a device that a grant has a part of
// belong to the grant.
func (d *decision) observe(c Observed) {
	if d.l.registered == 0 {
		return
	}
	for _, uuid := range sortedOnce(c.Idle) {
		if g := d.l.grants[OrphanTx(uuid)]; g != nil && !slices.Contains(c.Busy, uuid) {
			d.end(g, Dropped{g.Tx, 0})
		}
	}
	for _, uuid := range sortedOnce(c.Busy) { // model: mutant ORPHAN_HANDED_OUT
		tx := OrphanTx(uuid)
		all, free := d.l.whole(uuid)
		if !free || d.l.grants[tx] != nil || len(tx) > MaxText {
			continue
		}
		d.emit(Granted{Grant{
			Tx: tx, Epoch: d.l.epoch, Origin: OriginOrphan, State: grant.Held, Since: d.now, Members: []Holding{{Assignment: all}},
		}})
	}
}

func sortedOnce(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// whole returns all of a GPU, or of a MIG instance, if all of it is free.
func (l *Ledger) whole(uuid string) (resource.Assignment, bool) {
	if at, ok := l.places.gpus[uuid]; ok && l.own.free.GPU[at] == resource.WholeDevice {
		return resource.Assignment{GPUs: []resource.GPUGrant{{Index: at, UUID: uuid, Milli: resource.WholeDevice}}}, true
	}
	at, ok := l.places.instances[uuid]
	if !ok || l.own.free.MIG[at.gpu]&(1<<at.instance) == 0 {
		return resource.Assignment{}, false
	}
	m := l.places.host.Inventory().Devices[at.gpu].MIG.Instances[at.instance]
	return resource.Assignment{MIG: []resource.MIGGrant{{GPU: at.gpu, Instance: at.instance, UUID: uuid, Profile: m.Profile}}}, true
}

// wakesOnBusy reports whether the end of a victim, the last that its preemptor
// waits for, would give that one a busy device: the device never is free in
// between, and so never an orphan. Processes on a device that another grant may
// use too are attributed to that grant.
func (l *Ledger) wakesOnBusy(victim *entry, busy []string) bool {
	waiting := l.grants[victim.claimed]
	if waiting == nil || len(waiting.Victims) > 1 {
		return false
	}
	return slices.ContainsFunc(busy, func(uuid string) bool {
		if !hasDevice(waiting.Members, uuid) {
			return false
		}
		for _, g := range l.grants {
			if g != victim && (g.State == grant.Held || g.State == grant.Evicting || g.State == grant.Stopping) && hasDevice(g.Members, uuid) {
				return false
			}
		}
		return true
	})
}

// HasDevice reports whether a member has a GPU or MIG instance, or a part of it.
func (g Grant) HasDevice(uuid string) bool { return hasDevice(g.Members, uuid) }

// hasDevice reports whether one of the members has a GPU or MIG instance, or a part of it.
func hasDevice(members []Holding, uuid string) bool {
	return slices.ContainsFunc(members, func(m Holding) bool {
		return slices.ContainsFunc(m.Assignment.GPUs, func(g resource.GPUGrant) bool { return g.UUID == uuid }) ||
			slices.ContainsFunc(m.Assignment.MIG, func(g resource.MIGGrant) bool { return g.UUID == uuid })
	})
}

// makeWay ends the orphans on devices that the store's records name: the
// processes there belong to the records' grants.
func (d *decision) makeWay(listed map[resource.TxID]*Record) {
	for _, tx := range d.l.sorted(func(g *entry) bool { return g.Origin == OriginOrphan }) {
		g := d.l.grants[tx]
		for _, r := range listed {
			if slices.ContainsFunc(d.l.places.reindex(r.Members), func(m Holding) bool { return overlaps(g.Members, &m.Assignment) }) {
				d.leave(g, Dropped{tx, 0})
				break
			}
		}
	}
}
