package sched

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file charges GPUs to their models (ADR 91). A request that names a model is charged
// to it like to any resource. Of one that does not, the models are known once it has a
// place: quota is asked a second time then, and where it has no room for a model, the
// place is looked for again without it.

// WithModels are charges that name these devices by model too; nil adds nothing.
func WithModels(charges []record.Charge, models resource.Vector) []record.Charge {
	if len(models) == 0 {
		return charges
	}
	all := slices.Clone(charges)
	for i := range all {
		if i > 0 && maps.Equal(charges[i].Request, charges[i-1].Request) { // as of each unit of the leader
			all[i].Request = all[i-1].Request
		} else {
			all[i].Request = withModels(charges[i].Request, models)
		}
	}
	return all
}

func withModels(request, models resource.Vector) resource.Vector {
	sum := make(resource.Vector, len(request)+len(models))
	maps.Copy(sum, request)
	sum.Add(models) // members that differ may name a model that others get
	return sum
}

// OnModels is the unit charged to these models as well.
func (u *Unit) OnModels(models resource.Vector) *Unit {
	of := *u
	if len(models) > 0 {
		of.Charge.Request = withModels(u.Charge.Request, models)
		of.Charges = WithModels(u.Charges, models)
	}
	return &of
}

// takesAnyModel reports whether the models of a unit are known only with its place.
func (u *Unit) takesAnyModel() bool { return u.Demand.TakesAnyModel() }

// bounding are the bounds with further ones.
func bounding(bounds, further map[resource.Name]int64) map[resource.Name]int64 {
	all := maps.Clone(bounds)
	if all == nil {
		all = map[resource.Name]int64{}
	}
	maps.Copy(all, further)
	return all
}

// seek looks for a place of a unit whose models are known only with the place, until quota
// has room for its models too. find looks for one; admits charges the unit and reports
// what is short, and with that has changed nothing. False: there is no such place; the
// evidence has the shortage of the first place that was found.
func (w *World) seek(u *Unit, d *Decision, find func(of *Unit) bool, admits func(charged *Unit) *Shortage) bool {
	of := u
	var first *Shortage
	for {
		mark := w.State.Checkpoint()
		if !find(of) {
			w.State.Rollback(mark)
			break
		}
		models := u.Demand.Models(d.Plan)
		short := admits(u.OnModels(models))
		if short == nil && d.Action == Preempt && !d.Claims && !w.standingNow(u).mayTakePlacesOf(d.Victims) {
			w.Undo(u.OnModels(models))
			w.State.Rollback(mark)
			d.Action, d.Plan, d.Victims, d.Evidence.Borrows = Wait, nil, nil, true
			return d.noVictims("it would borrow quota of the model that it would get, and units that borrow less keep their places")
		}
		if short == nil {
			w.State.Keep(mark)
			d.Models = models
			return true
		}
		w.State.Rollback(mark)
		if first == nil {
			first = short
		}
		further := w.lacking(models, leastOfAnyModel(u), func(one resource.Vector) bool {
			charged := u.OnModels(one)
			if admits(charged) != nil {
				return true
			}
			if d.Action == Start || !d.Claims {
				w.Undo(charged)
			}
			return false
		})
		without := *u
		without.Demand.Bounds = bounding(of.Demand.Bounds, further)
		of = &without
	}
	if first != nil {
		d.Evidence.ByModel = true
		d.Action, d.Plan, d.Victims, d.Claims = Wait, nil, nil, false
		if d.Evidence.Short == nil {
			d.Evidence.Short = first
		} else {
			d.noVictims("quota of the model that it would get has no room for it")
		}
	}
	return false
}

// lacking are the models of which quota alone is short, with the most device-milli that it
// has room for, in multiples of step; all with none where the sum is short and no model
// alone. step is 0 where no part of a model is of use.
func (w *World) lacking(models resource.Vector, step int64, isShort func(one resource.Vector) bool) map[resource.Name]int64 {
	bounds := map[resource.Name]int64{}
	for _, name := range models.Names() {
		if !isShort(resource.Vector{name: models[name]}) {
			continue
		}
		bounds[name] = 0
		if step == 0 {
			continue
		}
		room := sort.Search(int((models[name]-1)/step), func(i int) bool { return isShort(resource.Vector{name: int64(i+1) * step}) })
		bounds[name] = int64(room) * step
	}
	if len(bounds) == 0 {
		for name := range models {
			bounds[name] = 0
		}
	}
	return bounds
}

// leastOfAnyModel is the least device-milli of a member of any model; 0 for a unit of one
// member.
func leastOfAnyModel(u *Unit) int64 {
	var least int64
	for _, r := range u.Demand.EachSet() {
		if milli := int64(r.GPUMilli()); r.TakesAnyModel() && (least == 0 || milli < least) {
			least = milli
		}
	}
	if u.Demand.Members == 1 {
		return 0
	}
	return least
}

// start places a unit that was admitted, or nominates it. Where it does neither, the unit
// is not charged any more.
func (w *World) start(u *Unit, d *Decision) bool {
	if !u.takesAnyModel() {
		if w.place(u, d) || w.preempts(u, d) {
			return true
		}
		w.Undo(u)
		return false
	}
	w.Undo(u)
	return w.seek(u, d, func(of *Unit) bool { return w.place(of, d) || w.preempts(of, d) }, func(charged *Unit) *Shortage {
		short, _ := w.Admit(charged)
		return short
	})
}

// claim is Claim of a unit of any model: those that give way are enough for the models,
// too.
func (w *World) claim(u *Unit, d *Decision) bool {
	if !u.takesAnyModel() {
		return w.Claim(u, d)
	}
	return w.seek(u, d, func(of *Unit) bool { return w.Claim(of, d) }, func(charged *Unit) *Shortage {
		short, _ := w.Admit(charged)
		switch {
		case short == nil:
			w.Undo(charged)
		case short.Victims != nil && !slices.ContainsFunc(short.Victims, func(path string) bool { return !slices.Contains(d.Victims, path) }):
			return nil
		}
		return short
	})
}

// findGang places units that were admitted, or nominates them.
func (w *World) findGang(units []*Unit, d *GangDecision) bool {
	g := gangOf(units)
	return w.placeGang(g, d) || w.preemptsFor(g, d)
}

// seekGang is seek for units that start together, of which some take any model. The trees
// charge no unit before.
func (w *World) seekGang(units []*Unit, d *GangDecision) bool {
	var bounds map[resource.Name]int64
	var first *Shortage
	for {
		mark := w.State.Checkpoint()
		if !w.findGang(bounded(units, bounds), d) {
			w.State.Rollback(mark)
			break
		}
		each, sum := modelsOfEach(units, d.Plans)
		short, _ := w.admitOn(units, each)
		if short == nil && d.Action == Preempt && !w.standingOfAll(units).mayTakePlacesOf(d.Victims) {
			w.State.Rollback(mark)
			d.Action, d.Plans, d.Victims, d.Evidence.Borrows = Wait, nil, nil, true
			return d.noVictims("they would borrow quota of the models that they would get, and units that borrow less keep their places")
		}
		if short == nil {
			w.State.Keep(mark)
			d.Models = each
			return true
		}
		w.State.Rollback(mark)
		if first == nil {
			first = short
		}
		bounds = bounding(bounds, w.lacking(sum, 0, func(one resource.Vector) bool { return w.isShortOf(units, each, one) }))
	}
	if first != nil {
		d.Evidence.ByModel, d.Evidence.Short = true, first
		d.Action, d.Plans, d.Victims = Wait, nil, nil
	}
	return false
}

// bounded are units that must get no more of some models, where they take any model.
func bounded(units []*Unit, bounds map[resource.Name]int64) []*Unit {
	if bounds == nil {
		return units
	}
	all := make([]*Unit, len(units))
	for i, u := range units {
		of := *u
		if u.takesAnyModel() {
			of.Demand.Bounds = bounds
		}
		all[i] = &of
	}
	return all
}

// modelsOfEach are the models of each unit that takes any, and their sum.
func modelsOfEach(units []*Unit, plans [][]place.Choice) (each []resource.Vector, sum resource.Vector) {
	each, sum = make([]resource.Vector, len(units)), resource.Vector{}
	for i, u := range units {
		if u.takesAnyModel() {
			each[i] = u.Demand.Models(plans[i])
			sum.Add(each[i])
		}
	}
	return each, sum
}

// admitOn charges units to their models as well, all or none.
func (w *World) admitOn(units []*Unit, each []resource.Vector) (*Shortage, time.Time) {
	charged := make([]*Unit, len(units))
	for i, u := range units {
		charged[i] = u.OnModels(each[i])
	}
	mark := w.Trees.Checkpoint()
	short, until := w.admitAll(charged)
	if short != nil {
		must(w.Trees.Rollback(mark))
		return short, until
	}
	must(w.Trees.Keep(mark))
	return nil, until
}

// isShortOf reports whether quota has no room for the units with these of their models.
func (w *World) isShortOf(units []*Unit, each []resource.Vector, one resource.Vector) bool {
	some := make([]resource.Vector, len(each))
	for i, models := range each {
		some[i] = resource.Vector{}
		for name := range one {
			if amount, has := models[name]; has {
				some[i][name] = amount
			}
		}
	}
	mark := w.Trees.Checkpoint()
	defer func() { must(w.Trees.Rollback(mark)) }()
	short, _ := w.admitOn(units, some)
	return short != nil
}
