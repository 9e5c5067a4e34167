package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the requests of a unit: that of its specification, then each alternative
// (ADR 67). A unit has one of them at a time, and changes it only while it has no attempt.

// chooseForm is useForm of a unit without an attempt.
func (l *Leader) chooseForm(u *unit, number int) {
	if u.number == number {
		return
	}
	l.removeConsumer(u)
	u.useForm(number)
}

// restoreForm is useForm for a record: the unit has the form that was chosen for it.
func (u *unit) restoreForm(number int) error {
	switch {
	case number == u.number:
		return nil
	case number < 0 || number >= len(u.forms):
		return fmt.Errorf("alternative: %d, and its unit has %d", number, max(0, len(u.forms)-1))
	}
	u.useForm(number)
	return nil
}

// eachForm calls f for the forms of a unit without an attempt, in order, while the unit
// has them, until f returns false. The unit has its first form afterwards.
func (l *Leader) eachForm(u *unit, f func() bool) {
	for i := range max(1, len(u.forms)) {
		l.chooseForm(u, i)
		if !f() {
			break
		}
	}
	l.chooseForm(u, 0)
}

// formHeld is the first form whose amounts members have, on the hosts as they are; the
// first of all where none is.
func (l *Leader) formHeld(u *unit, found map[resource.NodeID][]grant.Member) int {
	for i := range u.forms {
		request, same := u.forms[i].Demand.Request, true
		for id, members := range found {
			n := l.nodes[id]
			if n == nil || n.view.Host == nil {
				return 0
			}
			same = same && !slices.ContainsFunc(members, func(m grant.Member) bool { return n.view.Host.Satisfies(request, m.Assignment) != nil })
		}
		if same {
			return i
		}
	}
	return 0
}

// demandKey is equal for units whose forms have equal shapes.
func (u *unit) demandKey() string { return u.joined(func(f *form.Form) string { return f.Shape }) }

// chargesKey is equal for units whose forms have equal charge keys.
func (u *unit) chargesKey() string { return u.joined(func(f *form.Form) string { return f.ChargeKey }) }

// joined joins the keys of all forms.
func (u *unit) joined(of func(*form.Form) string) string {
	if u.forms == nil {
		return of(&u.Form)
	}
	keys := make([]string, len(u.forms))
	for i := range u.forms {
		keys[i] = of(&u.forms[i])
	}
	return strings.Join(keys, " or ")
}

// asksFor reports whether a form of the unit is charged for a resource.
func (u *unit) asksFor(name resource.Name) bool {
	return u.Charge.Request[name] != 0 || slices.ContainsFunc(u.forms, func(f form.Form) bool { return f.Charge.Request[name] != 0 })
}

// requested are the amounts of the form that the unit has, as they were written.
func (u *unit) requested() map[resource.Name]string {
	var spec *api.AllocationSpec
	if u.job != nil {
		spec = &u.job.doc.Spec.Template.Spec
	} else {
		spec = &u.allocation.Spec
	}
	return spec.Form(u.number).Resources.Requests
}

// demands are those of all forms, for the room.
func (u *unit) demands() (first *place.Unit, others []*place.Unit) {
	if u.forms == nil {
		return &u.Demand, nil
	}
	for i := range u.forms[1:] {
		others = append(others, &u.forms[1+i].Demand)
	}
	return &u.forms[0].Demand, others
}

// decide decides on a unit with the first of its forms that starts now, else with the
// first for which others give way. Where none does, the unit has its first form, and the
// evidence is that of each.
func (l *Leader) decide(u *unit) sched.Decision {
	var last sched.Decision
	var yields []string
	rights := []sched.Right{u.right()}
	if u.forms != nil && u.right() != sched.Nobody {
		rights = []sched.Right{sched.Nobody, u.right()}
	}
	for _, right := range rights {
		for i := range max(1, len(u.forms)) {
			l.chooseForm(u, i)
			l.bind(u)
			of := u.wanted()
			of.Demand.Policy, of.Right = l.policyFor(u.record.Queue), right
			d := l.world().Decide(of)
			l.wakeAt(d.Until)
			if d.Action != sched.Wait {
				return d
			}
			if d.Yields != "" && !slices.Contains(yields, d.Yields) {
				yields = append(yields, d.Yields)
			}
			if i == 0 {
				last = d
			} else {
				last.Evidence.Else = append(last.Evidence.Else, d.Evidence)
			}
		}
	}
	l.chooseForm(u, 0)
	for _, path := range yields {
		if a := l.units[path].attempt; a != nil {
			l.step(a, txn.BudgetSpent{})
		}
	}
	last.Yields = ""
	return last
}

// judgeForms is judgeNames of each form.
func (l *Leader) judgeForms(path string, spec api.AllocationSpec) *api.Status {
	if len(spec.Alternatives) == 0 {
		return l.judgeNames(path, spec)
	}
	for i, one := range spec.Forms() {
		at := path
		if i > 0 {
			at = fmt.Sprintf("%s.alternatives[%d]", path, i-1)
		}
		if status := l.judgeNames(at, one); status != nil {
			return status
		}
	}
	return nil
}
