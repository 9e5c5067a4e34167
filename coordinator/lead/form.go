package lead

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
)

// This file is the requests of a unit: that of its specification, then each alternative
// (ADR 67). A unit has one of them at a time, and changes it only while it has no attempt.

// decide decides on a unit with the first of its forms that starts now, else with the
// first for which others give way. Where none does, the unit has its first form, and the
// evidence is that of each.
func (l *Leader) decide(u *work.Unit) sched.Decision {
	var last sched.Decision
	var yields []string
	rights := []sched.Right{u.Right()}
	if u.Forms != nil && u.Right() != sched.Nobody {
		rights = []sched.Right{sched.Nobody, u.Right()}
	}
	for _, right := range rights {
		for i := range max(1, len(u.Forms)) {
			l.chooseForm(u, i)
			l.bind(u)
			of := u.Wanted()
			of.Demand.Policy, of.Right = l.policyFor(u.Record.Queue), right
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
		if a := l.work.Units[path].Attempt; a != nil {
			l.step(a, txn.BudgetSpent{})
		}
	}
	last.Yields = ""
	return last
}

// judgeSets is judgeForms of each set of a job's members.
func (l *Leader) judgeSets(doc *api.Job) *api.Status {
	for i, spec := range doc.MemberSpecs() {
		at := "spec.template.spec"
		if len(doc.Spec.Members) > 0 && doc.Spec.Members[i].Resources != nil {
			at = fmt.Sprintf("spec.members[%d]", i)
		}
		if status := l.judgeForms(at, spec); status != nil {
			return status
		}
	}
	return nil
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
