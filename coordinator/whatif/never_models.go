package whatif

import (
	"slices"
	"sort"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// This file says of work that names no model of GPUs whether quota of the models that it
// can get is too small for ever (ADR 91).

// NeverByModels returns the bounds of quota by model that together hold fewer members than
// the unit has, whichever models these get; none where the models of some nodes are not
// known. unused is as for NeverByTrees; nil where no tree counts the unit. It is asked of
// units without another bound. Of members that differ each set is asked about by itself.
func (w *World) NeverByModels(u *Unit, unused *quota.Manager) []Bound {
	for i, part := range u.Demand.Parts() {
		if !part.Request.TakesAnyModel() {
			continue
		}
		of := *u
		of.Demand = part
		bounds := w.neverByModels(&of, unused)
		if len(bounds) == 0 {
			continue
		}
		if u.Demand.Sets != nil {
			for k := range bounds {
				bounds[k].Set = u.Demand.Sets[i].Name
			}
		}
		return bounds
	}
	return nil
}

func (w *World) neverByModels(u *Unit, unused *quota.Manager) []Bound {
	models, known := w.modelsFor(u)
	if !known {
		return nil
	}
	milli, left := int64(u.Demand.Request.GPUMilli()), u.Demand.Members
	var all []Bound
	for _, model := range models {
		// The least number of members that quota never has room for.
		tooMany := 1 + sort.Search(left, func(i int) bool { return len(w.neverOn(u, model, int64(i+1)*milli, unused)) > 0 })
		if tooMany > left {
			return nil
		}
		all = append(all, w.neverOn(u, model, int64(tooMany)*milli, unused)...)
		left -= tooMany - 1
	}
	return all
}

// modelsFor are the models of the GPUs of all nodes of which an empty one holds a member,
// ascending. Labels and taints do not matter: the bound is from above.
func (w *World) modelsFor(u *Unit) (models []resource.Name, known bool) {
	nodes := 0
	for _, k := range w.State.Kinds() {
		if nodes += k.Nodes(); k.AtMost(&u.Demand.Request) == 0 {
			continue
		}
		for _, model := range k.Models() {
			if !slices.Contains(models, model) {
				models = append(models, model)
			}
		}
	}
	slices.Sort(models)
	return models, nodes == len(w.State.Nodes())
}

// neverOn are the bounds of quota that refuse the unit with so many device-milli of a model
// even where nothing else is charged.
func (w *World) neverOn(u *Unit, model resource.Name, milli int64, unused *quota.Manager) []Bound {
	of := *u
	of.Unit = *u.OnModels(resource.Vector{model: milli})
	bounds := w.NeverByLimits(&of)
	if unused != nil {
		bounds = append(bounds, w.NeverByTrees(&of, unused)...)
	}
	return bounds
}
