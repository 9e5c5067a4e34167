package coordinator

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// job is a set of units under one name.
type job struct {
	record record.Job
	stored resource.Revision
	doc    *api.Job
	// gang: units after the first grow it, and wait until it runs.
	gang  bool
	units []*unit
	// writing: a Txn about the job's own key is under way.
	writing bool
	gone    bool // the object was removed
	// then runs, once, after the next change.
	then []func()
}

// key names the job among what has changed.
func (j *job) key() string { return "job/" + j.record.Namespace + "/" + j.record.Name }
