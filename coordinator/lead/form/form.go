// Package form translates the specification of a unit into the requests that the leader
// decides on: a demand on nodes and a charge to quota. It has no state and decides nothing
// about a place or a quota.
package form

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Form is one request of a unit.
type Form struct {
	Demand place.Unit
	Shape  string // equal for demands that fit or fail together
	Charge quota.Charge
	// ChargeKey is equal for units that quota treats alike, but for namespace, demand and
	// priority.
	ChargeKey string
	// memberCharges are the charges of a member of each set of Demand; nil where members are
	// equal.
	memberCharges []resource.Vector
}

// Of builds a form. spec is one of api.AllocationSpec.Forms, job the job of the unit or nil,
// user the user to be charged, and groups the groups of the specification. A status is that
// of an invalid request.
func Of(rec record.Unit, spec api.AllocationSpec, job *api.Job, user string, groups api.QuotaDemand) (Form, *api.Status) {
	demand := place.Unit{Members: rec.Members, Subject: neighbourOf(rec, spec, job), Topology: topologyOf(spec)}
	charge := Scope(rec, spec, job, user)
	charge.Group, charge.Request = rec.Namespace, resource.Vector{}
	cluster := resource.Vector{} // amounts of all members that no node has
	sets := setsOf(rec, spec, job)
	var charges []resource.Vector
	for _, one := range sets {
		request, foreign, status := requestOf(rec, one.spec)
		if status != nil {
			return Form{}, status
		}
		member := request.Charge()
		maps.Copy(member, foreign)
		charge.Request.Add(member.Scaled(int64(one.members)))
		cluster.Add(foreign.Scaled(int64(one.members)))
		charges = append(charges, member)
		demand.Sets = append(demand.Sets, place.Set{
			Name: one.name, Members: one.members, Request: request, Constraints: constraint.Compile(withWork(Constraints(one.spec.Scheduling), job)),
		})
	}
	demand.Request, demand.Constraints = demand.Sets[0].Request, demand.Sets[0].Constraints
	if len(sets) == 1 {
		demand.Sets, charges = nil, nil
	}
	key := chargeKeyOf(string(rec.Tenant), charge, cluster, groups)
	return Form{Demand: demand, Shape: shapeOf(demand), Charge: charge, ChargeKey: key, memberCharges: charges}, nil
}

// ChargeOf is the part of Charge.Request that some members have, by their indices.
func (f *Form) ChargeOf(members []int) resource.Vector {
	sum := make(resource.Vector, len(f.Charge.Request))
	if f.memberCharges == nil {
		for name, amount := range f.Charge.Request {
			sum[name] = amount / int64(f.Demand.Members) * int64(len(members))
		}
		return sum
	}
	for _, index := range members {
		sum.Add(f.memberCharges[f.Demand.SetOf(index)])
	}
	return sum
}

// set is members of a unit with the same specification.
type set struct {
	name    string
	members int
	spec    api.AllocationSpec
}

// setsOf are the sets of a job's unit, whose members may differ; of another unit one. A
// unit that replaces a member has the specification of that member.
func setsOf(rec record.Unit, spec api.AllocationSpec, job *api.Job) []set {
	if job == nil || len(job.Spec.Members) == 0 {
		return []set{{members: rec.Members, spec: spec}}
	}
	if rec.Replaces {
		return []set{{members: rec.Members, spec: job.SpecOf(rec.FirstMember)}}
	}
	var sets []set
	for i, of := range job.MemberSpecs() {
		m := &job.Spec.Members[i]
		sets = append(sets, set{name: m.Name, members: int(m.Count), spec: of})
	}
	return sets
}

// requestOf is the request of a member, and its amounts that no node has.
func requestOf(rec record.Unit, spec api.AllocationSpec) (resource.Request, resource.Vector, *api.Status) {
	request, status := api.MemberRequest(spec)
	if status != nil {
		return request, nil, status
	}
	foreign := api.SplitForeign(&request, spec, rec.NodeResources)
	if err := request.Validate(); err != nil {
		return request, nil, api.Errorf(422, "spec.resources.requests: of the nodes %v", err)
	}
	return request, foreign, nil
}

// Scope is the part of a unit's charge that limits compare besides its amount. user is the
// user to be charged, "" where unknown.
func Scope(rec record.Unit, spec api.AllocationSpec, job *api.Job, user string) quota.Charge {
	c := quota.Charge{Members: int64(rec.Members), User: user, Class: spec.PriorityClass, Terminating: isTimeLimited(&spec, job)}
	if job != nil {
		c.Class = job.Spec.PriorityClass
	}
	return c
}

// isTimeLimited reports whether a specification has a limit of the time that its work runs.
func isTimeLimited(spec *api.AllocationSpec, job *api.Job) bool {
	return spec.TTL != "" || job != nil && job.Spec.ActiveDeadlineSeconds != nil
}

// shapeOf is equal for demands that fit or fail together.
func shapeOf(d place.Unit) string {
	shape := fmt.Sprintf("%d %+v %s", d.Members, d.Request, d.Constraints.Key())
	for i := range d.Sets {
		s := &d.Sets[i]
		shape += fmt.Sprintf(" of %d %+v %s", s.Members, s.Request, s.Constraints.Key())
	}
	if d.Topology != nil {
		shape += " " + d.Topology.Key()
	}
	return shape
}

// chargeKeyOf is equal for units that quota treats alike, but for namespace,
// demand and priority. cluster are the amounts of the members that their demand does not
// have.
func chargeKeyOf(owner string, c quota.Charge, cluster resource.Vector, wish api.QuotaDemand) string {
	var b strings.Builder
	for _, name := range cluster.Names() {
		fmt.Fprintf(&b, "%s:%d ", name, cluster[name])
	}
	fmt.Fprintf(&b, "%q %q %t %d %t", owner, c.Class, c.Terminating, wish.Type, wish.Unpreemptable)
	for _, tree := range slices.Sorted(maps.Keys(wish.Groups)) {
		fmt.Fprintf(&b, " %q=%q", tree, wish.Groups[tree])
	}
	return b.String()
}
