package work

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// NewUnit builds a unit from a member's specification; job is the document whose template is
// the specification, nil for an allocation. user has created the allocation or the job, ""
// where unknown.
func NewUnit(tenant resource.TenantID, rec record.Unit, spec api.AllocationSpec, job *api.Job, user string) (*Unit, *api.Status) {
	if rec.Queue == "" {
		rec.Queue = api.DefaultQueue
	}
	rec.Tenant = tenant
	var groups api.QuotaDemand
	if spec.Quota != nil {
		groups = *spec.Quota
	}
	u := &Unit{Record: rec, Path: rec.Path().String(), Groups: groups, Policy: spec.PreemptionPolicy}
	return u, u.setForms(spec, job, user)
}
