package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/coordinator/why"
)

// This file explains the alternatives of a unit that waits.

// explainOthers gathers the facts about the alternatives of a unit. first are the facts
// about its own request.
func (l *Leader) explainOthers(u *work.Unit, first *why.Facts) []Explaining {
	var others []Explaining
	l.eachForm(u, func() bool {
		if u.Number > 0 {
			x := Explaining{facts: *first, demand: u.DemandNow(), unit: l.asked(u)}
			x.facts.Request, x.facts.Alternative = u.Demand.Request, u.Number
			x.facts.Quota, x.facts.QuotaLevel, x.facts.Borrowers, x.facts.NoVictims, x.facts.TooWide = nil, "", nil, "", ""
			l.addWait(&x.facts, u)
			others = append(others, x)
		}
		return true
	})
	return others
}

// outlook says whether a request can ever run.
func (x *Explaining) outlook(w *whatif.World) *api.Outlook {
	f := &x.facts
	return why.OutlookOf(w.Never(x.unit), f.Fit >= f.Members && len(f.Quota) == 0)
}

// addOthers adds the alternatives. The outlook of the unit is the best that one of its
// requests has.
func (x *Explaining) addOthers(w *whatif.World) {
	better := map[string]int{api.CanNever: 0, api.CanLater: 1, api.CanNow: 2}
	for i := range x.others {
		o := &x.others[i]
		o.closed = x.closed
		o.addNodes(w.State)
		if outlook := o.outlook(w); better[outlook.Can] > better[x.facts.Outlook.Can] {
			x.facts.Outlook = outlook
		}
		x.facts.Others = append(x.facts.Others, &o.facts)
	}
}

// addPlacement adds the place of the first request that would start now, else of the
// first for which others would give way.
func (x *Explaining) addPlacement(w *whatif.World) {
	var chosen *whatif.Outcome
	number := 0
	for i := range 1 + len(x.others) {
		unit := x.unit
		if i > 0 {
			unit = x.others[i-1].unit
		}
		tried := w.Try(unit)
		if tried.Action == sched.Start || chosen == nil && tried.Action == sched.Preempt {
			chosen, number = &tried, i
		}
		if tried.Action == sched.Start {
			break
		}
	}
	if chosen == nil {
		return
	}
	x.facts.Alternative = number
	for _, m := range chosen.Members {
		x.facts.Placement = append(x.facts.Placement, api.MemberNode{Member: m.Index, Node: m.Node})
	}
}
