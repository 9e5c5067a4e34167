package api

import (
	"github.com/musterd/muster/resource"
)

// Members is the number of the job's members: its completions or, where none are given
// and for a gang, its parallelism.
func (j *Job) Members() int {
	if c := j.Spec.Completions; c != nil && !j.isGang() {
		return int(*c)
	}
	return j.AtOnce()
}

// isGang reports whether members start together.
func (j *Job) isGang() bool { return j.Spec.Template.Spec.Gang() != nil || j.hasSets() }

// AtOnce is the job's parallelism, 1 where none is given; all members where they differ.
func (j *Job) AtOnce() int {
	if j.hasSets() {
		return j.countSets()
	}
	if j.Spec.Parallelism == nil {
		return 1
	}
	return int(*j.Spec.Parallelism)
}

// JobUnits splits a valid job into units, the smallest sets placed all or
// nothing (PROTOCOL.md section 1). A gang's first unit has minMembers members
// (all of them by default), and each member above that is a growth unit of its
// own. Without a gang every member is its own unit: the first has one member,
// the others are growth.
func JobUnits(j *Job) (firstUnitMembers, growth int, gang bool) {
	members := j.Members()
	if j.hasSets() {
		return members, 0, true
	}
	g := j.Spec.Template.Spec.Gang()
	if g == nil {
		return 1, members - 1, false
	}
	first := members
	if g.MinMembers != nil {
		first = int(*g.MinMembers)
	}
	return first, members - first, true
}

// RecordedOnly lists, in document order, the given fields that this version
// keeps and echoes but does not act on yet:
//
//	spec.resources.limits, where they exceed the requests
func (a *Allocation) RecordedOnly() []string {
	return a.Spec.recordedOnly("spec", nil)
}

// RecordedOnly lists, in document order, the fields that Allocation.RecordedOnly lists of
// the template.
func (j *Job) RecordedOnly() []string {
	return j.Spec.Template.Spec.recordedOnly("spec.template.spec", nil)
}

func (s *AllocationSpec) recordedOnly(path string, fields []string) []string {
	for name := range s.Resources.Limits {
		if acted := s.HasWork() && (name == resource.CPU || name == resource.Memory); !acted && s.greaterLimit(name) > 0 {
			return append(fields, path+".resources.limits")
		}
	}
	return fields
}

// GreaterLimits are the limits of processors and memory that are greater than the
// requests: the processes of the member are bound by them. 0 stands for the request.
func (s *AllocationSpec) GreaterLimits() (cpu resource.Millicores, memory resource.Bytes) {
	return resource.Millicores(s.greaterLimit(resource.CPU)), resource.Bytes(s.greaterLimit(resource.Memory))
}

// greaterLimit is a limit that is greater than its request, in base units; else 0.
func (s *AllocationSpec) greaterLimit(name resource.Name) int64 {
	request, requested := s.Resources.Requests[name]
	limit, limited := s.Resources.Limits[name]
	if !requested || !limited {
		return 0
	}
	most, limitErr := resource.ParseAmount(name, limit)
	least, requestErr := resource.ParseAmount(name, request)
	if limitErr != nil || requestErr != nil || most <= least {
		return 0
	}
	return most
}
