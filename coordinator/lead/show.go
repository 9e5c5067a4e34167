package lead

import (
	"iter"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/shown"
)

// This file is what the leader shows: plain values of its state, made for one
// answer in the loop.

// Shown is the leader's allocations and jobs as the leader knows them: for tests that
// compare them with the store's.
type Shown struct{ l *Leader }

// allocation shows one member of a unit, stored or not.
func (l *Leader) allocation(u *work.Unit, index int) *api.Allocation {
	m := l.showMember(u, index)
	return m.Show()
}

// jobObject shows a job, stored or not.
func (l *Leader) jobObject(j *work.Job) *api.Job {
	s := l.showJob(j)
	return s.Show()
}

// Member returns an allocation by its position, "namespace/name".
func (i Shown) Member(position string) (shown.Member, bool) {
	m := i.l.work.Members[position]
	if m == nil || m.Unit.Stored == 0 || m.Unit.IsHidden() { // it may yet come to nothing
		return shown.Member{}, false
	}
	return i.l.showMember(m.Unit, m.Index), true
}

// Members are the positions of the allocations of a namespace, "" being all, in any order.
func (i Shown) Members(namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for position, m := range i.l.work.Members {
			if m.Unit.Stored != 0 && !m.Unit.IsHidden() && (namespace == "" || m.Unit.Record.Namespace == namespace) && !yield(position) {
				return
			}
		}
	}
}

// Job returns a job by its position.
func (i Shown) Job(position string) (shown.Job, bool) {
	j := i.l.work.Jobs[position]
	if j == nil || j.Stored == 0 || j.IsHidden() { // it may yet come to nothing
		return shown.Job{}, false
	}
	return i.l.showJob(j), true
}

// Jobs is Members of jobs.
func (i Shown) Jobs(namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for position, j := range i.l.work.Jobs {
			if j.Stored != 0 && !j.IsHidden() && (namespace == "" || j.Record.Namespace == namespace) && !yield(position) {
				return
			}
		}
	}
}
