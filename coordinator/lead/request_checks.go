package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/txn"
)

// releaseFor turns delete options into a release.
func releaseFor(o api.DeleteOptions) txn.ReleaseAsked {
	r := txn.ReleaseAsked{GraceSeconds: DefaultGrace, Reason: "UserRequested"}
	if o.GracePeriodSeconds != nil {
		r.GraceSeconds, r.Kept = *o.GracePeriodSeconds, *o.GracePeriodSeconds > 0
	}
	if o.Reason != "" {
		r.Reason = o.Reason
	}
	return r
}

// checkAllocation refuses a change of an allocation that is not the one, or not
// at the version, that the change is for.
func checkAllocation(u *unit, p *api.Preconditions) *api.Status {
	if p == nil {
		return nil
	}
	if status := (api.Preconditions{UID: p.UID}).Check("allocation "+u.record.Name, api.ObjectMeta{UID: string(u.record.UID)}); status != nil {
		return status
	}
	return edit.AtVersion("allocation", u.record.Name, p.ResourceVersion, u.stored, u.version())
}

// checkJob is the same of a job.
func checkJob(j *job, p *api.Preconditions) *api.Status {
	if p == nil {
		return nil
	}
	if status := (api.Preconditions{UID: p.UID}).Check("job "+j.record.Name, api.ObjectMeta{UID: j.record.UID}); status != nil {
		return status
	}
	return edit.AtVersion("job", j.record.Name, p.ResourceVersion, j.stored, j.version())
}
