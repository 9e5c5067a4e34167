package lead

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
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
	// needs are the positions that the dependencies name, by their index; none while the
	// view does not have the job.
	needs []*awaited
	// priorities is the alarm at which the priorities of the units are looked at.
	priorities *post.Alarm
	// then runs, once, after the next change.
	then []func()
}

// newJob is a job that the store does not have yet.
func newJob(doc *api.Job, gang bool, rec record.Job) *job {
	return &job{record: rec, doc: doc, gang: gang}
}

// key names the job among what has changed.
func (j *job) key() string { return "job/" + j.record.Namespace + "/" + j.record.Name }

// addUnit adds a unit, with its path in the record. The units ascend by N.
func (j *job) addUnit(u *unit) {
	j.units = append(j.units, u)
	j.record.Units = append(j.record.Units, u.record.Path())
}

// restoreUnit adds a unit that the record names.
func (j *job) restoreUnit(u *unit) {
	at, _ := slices.BinarySearchFunc(j.units, u.record.N, func(u *unit, n int) int { return cmp.Compare(u.record.N, n) })
	j.units = slices.Insert(j.units, at, u)
}

// dropUnits removes units that are no more.
func (j *job) dropUnits(past []*unit) {
	j.units = slices.DeleteFunc(j.units, func(u *unit) bool { return slices.Contains(past, u) })
}

// version is the newest revision of the keys of the job and its units.
func (j *job) version() resource.Revision {
	newest := j.stored
	for _, u := range j.units {
		newest = max(newest, u.version())
	}
	return newest
}

// beginWrite notes that a Txn about the job's own key is under way.
func (j *job) beginWrite() { j.writing = true }

// finishWrite notes that the Txn has its answer.
func (j *job) finishWrite() { j.writing = false }

// setStored notes the revision at which the job was stored.
func (j *job) setStored(rev resource.Revision) { j.stored = rev }

// keep takes over the job as it was written at rev.
func (j *job) keep(written record.Job, rev resource.Revision) { j.record, j.stored = written, rev }

// setDocument takes over the document that was written with the job.
func (j *job) setDocument(doc *api.Job) { j.doc = doc }

// setNeeds notes the positions that the dependencies name.
func (j *job) setNeeds(needs []*awaited) { j.needs = needs }

// creation is the write of the new job; met are the dependencies that have come true.
func (j *job) creation(met []int) (record.Compare, record.Op) {
	j.record.Met = met
	key := record.JobKey(j.record.Namespace, j.record.Name)
	return record.Absent(key), record.Put(key, record.MustEncode(j.record))
}

// remove notes that the object is gone.
func (j *job) remove() { j.gone = true }

// isHidden reports whether reads show the job no more: its end in the background
// is durable.
func (j *job) isHidden() bool { return j.record.Cancelled != nil && j.record.Cancelled.Background }

// awaitPriorities sets the only alarm for the priorities of the units.
func (j *job) awaitPriorities(p *post.Post, wait time.Duration, due func()) {
	p.Cancel(j.priorities)
	j.priorities = p.After(wait, due)
}

// addThen has f run after the next change.
func (j *job) addThen(f func()) { j.then = append(j.then, f) }

// takeThen returns what is to run now that the job has changed.
func (j *job) takeThen() []func() {
	then := j.then
	j.then = nil
	return then
}
