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
}

// Of builds a form. spec is one of api.AllocationSpec.Forms, job the job of the unit or nil,
// user the user to be charged, and groups the groups of the specification. A status is that
// of an invalid request.
func Of(rec record.Unit, spec api.AllocationSpec, job *api.Job, user string, groups api.QuotaDemand) (Form, *api.Status) {
	request, status := api.MemberRequest(spec)
	if status != nil {
		return Form{}, status
	}
	cluster := api.SplitForeign(&request, spec, rec.NodeResources)
	if err := request.Validate(); err != nil {
		return Form{}, api.Errorf(422, "spec.resources.requests: of the nodes %v", err)
	}
	demand := place.Unit{Members: rec.Members, Request: request, Constraints: constraint.Compile(withWork(Constraints(spec.Scheduling), job)), Subject: neighbourOf(rec, spec, job), Topology: topologyOf(rec, spec, job)}
	charge := Scope(rec, spec, job, user)
	member := request.Charge()
	maps.Copy(member, cluster)
	charge.Group, charge.Request = rec.Namespace, member.Scaled(int64(rec.Members))
	return Form{Demand: demand, Shape: shapeOf(demand), Charge: charge, ChargeKey: chargeKeyOf(string(rec.Tenant), charge, cluster, groups)}, nil
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
	if d.Topology != nil {
		shape += " " + d.Topology.Key()
	}
	return shape
}

// chargeKeyOf is equal for units that quota treats alike, but for namespace,
// demand and priority. cluster are the amounts of a member that its demand does not
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
