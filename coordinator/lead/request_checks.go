package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/work"
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
func checkAllocation(u *work.Unit, p *api.Preconditions) *api.Status {
	if p == nil {
		return nil
	}
	if status := (api.Preconditions{UID: p.UID}).Check("allocation "+u.Record.Name, api.ObjectMeta{UID: string(u.Record.UID)}); status != nil {
		return status
	}
	return edit.AtVersion("allocation", u.Record.Name, p.ResourceVersion, u.Stored, u.Version())
}

// checkJob is the same of a job.
func checkJob(j *work.Job, p *api.Preconditions) *api.Status {
	if p == nil {
		return nil
	}
	if status := (api.Preconditions{UID: p.UID}).Check("job "+j.Record.Name, api.ObjectMeta{UID: j.Record.UID}); status != nil {
		return status
	}
	return edit.AtVersion("job", j.Record.Name, p.ResourceVersion, j.Stored, j.Version())
}
