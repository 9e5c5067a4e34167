package lead

import (
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// releaseFor turns delete options into a release.
func releaseFor(o api.DeleteOptions) txn.ReleaseAsked {
	r := txn.ReleaseAsked{GraceSeconds: DefaultGrace, Reason: "UserRequested"}
	if o.GracePeriodSeconds != nil {
		r.GraceSeconds = *o.GracePeriodSeconds
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
	return atVersion("allocation", u.record.Name, p.ResourceVersion, u.stored, u.version())
}

// checkJob is the same of a job.
func checkJob(j *job, p *api.Preconditions) *api.Status {
	if p == nil {
		return nil
	}
	if status := (api.Preconditions{UID: p.UID}).Check("job "+j.record.Name, api.ObjectMeta{UID: j.record.UID}); status != nil {
		return status
	}
	return atVersion("job", j.record.Name, p.ResourceVersion, j.stored, j.version())
}

// atVersion refuses a change that was made from a version which is older than the
// object's specification, or which the object never had. The specification is the
// object's own key: a write of its status alone, e.g. that it is Ready, makes no
// conflict.
func atVersion(kind, name, want string, spec, has resource.Revision) *api.Status {
	if want == "" {
		return nil
	}
	from, err := strconv.ParseInt(want, 10, 64)
	if err != nil || resource.Revision(from) < spec || resource.Revision(from) > has {
		return api.Errorf(409, "%s %s is at resourceVersion %d, the change was made from %s; read it again", kind, name, has, want)
	}
	return nil
}
