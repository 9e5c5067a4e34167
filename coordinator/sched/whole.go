package sched

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/preempt"
)

// This file keeps gangs of several units whole: each of their units gives way with all
// others, or none does.

// holdersOf are occupants as a choice of victims sees them: the units of a gang are one
// holder. A gang of which a unit is not among the occupants, and not on its way out, is
// left out.
func (w *World) holdersOf(list []*cluster.Occupant) []preempt.Holder {
	all := make([]preempt.Holder, 0, len(list))
	var gangs map[string][]*cluster.Occupant
	for _, o := range list {
		if o.Gang == "" {
			all = append(all, holderOf(o))
			continue
		}
		if gangs == nil {
			gangs = map[string][]*cluster.Occupant{}
		}
		gangs[o.Gang] = append(gangs[o.Gang], o)
	}
	if gangs == nil {
		return all
	}
	staying := map[string]int{}
	for o := range w.State.Occupants() {
		if o.Gang != "" && !o.IsLeaving() {
			staying[o.Gang]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gangs)) {
		if units := gangs[name]; len(units) == staying[name] {
			all = append(all, holderOfGang(units))
		}
	}
	return all
}

// holderOfGang is a gang as one holder, which is as new as its newest unit.
func holderOfGang(units []*cluster.Occupant) preempt.Holder {
	slices.SortFunc(units, func(a, b *cluster.Occupant) int { return strings.Compare(a.Unit, b.Unit) })
	h := holderOf(units[0])
	h.Parts = slices.Clone(h.Parts)
	for _, o := range units[1:] {
		h.Mates = append(h.Mates, o.Unit)
		h.Parts = append(h.Parts, o.Parts...)
		h.Priority, h.Started = max(h.Priority, o.Priority), max(h.Started, o.Started)
	}
	return h
}

// withMates adds to units the others of their gangs that are not on their way out, in
// order.
func (w *World) withMates(units []string) []string {
	gangs := map[string]bool{}
	for _, unit := range units {
		if o := w.State.Occupant(unit); o != nil && o.Gang != "" {
			gangs[o.Gang] = true
		}
	}
	if len(gangs) == 0 {
		return units
	}
	var mates []string
	for o := range w.State.Occupants() {
		if gangs[o.Gang] && !o.IsLeaving() && !slices.Contains(units, o.Unit) {
			mates = append(mates, o.Unit)
		}
	}
	slices.Sort(mates)
	return append(slices.Clip(units), mates...)
}
