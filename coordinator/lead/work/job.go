package work

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Job is a set of units under a common name.
type Job struct {
	Record record.Job
	Stored resource.Revision
	Doc    *api.Job
	// Gang: units after the first grow the gang, and wait until the gang runs.
	Gang  bool
	Units []*Unit
	// Writing: a Txn about the job's own key is under way.
	Writing bool
	Gone    bool // the object was removed
	// needs are the positions named by the dependencies, by the index of the dependency; none
	// while the view does not have the job.
	needs []*awaited
	// priorities is the alarm for the next look at the priorities of the units.
	priorities *post.Alarm
	// then runs, once, after the next change.
	then []func()
}

// NewJob returns a job not in the store yet.
func NewJob(doc *api.Job, gang bool, rec record.Job) *Job {
	return &Job{Record: rec, Doc: doc, Gang: gang}
}

// Key names the job among the changed objects.
func (j *Job) Key() string { return "job/" + j.Record.Namespace + "/" + j.Record.Name }

// AddUnit adds a unit, and the unit's path to the record. The units ascend by N.
func (j *Job) AddUnit(u *Unit) {
	j.Units = append(j.Units, u)
	j.Record.Units = append(j.Record.Units, u.Record.Path())
}

// RestoreUnit adds a unit already named by the record.
func (j *Job) RestoreUnit(u *Unit) {
	at, _ := slices.BinarySearchFunc(j.Units, u.Record.N, func(u *Unit, n int) int { return cmp.Compare(u.Record.N, n) })
	j.Units = slices.Insert(j.Units, at, u)
}

// DropUnits removes past units.
func (j *Job) DropUnits(past []*Unit) {
	j.Units = slices.DeleteFunc(j.Units, func(u *Unit) bool { return slices.Contains(past, u) })
}

// Version is the newest revision of the keys of the job and its units.
func (j *Job) Version() resource.Revision {
	newest := j.Stored
	for _, u := range j.Units {
		newest = max(newest, u.Version())
	}
	return newest
}

// BeginWrite notes a Txn under way about the job's own key.
func (j *Job) BeginWrite() { j.Writing = true }

// FinishWrite notes the answer to the Txn.
func (j *Job) FinishWrite() { j.Writing = false }

// SetStored notes the revision at which the job was stored.
func (j *Job) SetStored(rev resource.Revision) { j.Stored = rev }

// Keep takes over the record of the job, written at rev.
func (j *Job) Keep(written record.Job, rev resource.Revision) { j.Record, j.Stored = written, rev }

// SetDocument takes over the document written with the job.
func (j *Job) SetDocument(doc *api.Job) { j.Doc = doc }

// setNeeds notes the positions named by the dependencies.
func (j *Job) setNeeds(needs []*awaited) { j.needs = needs }

// Creation is the write of the new job; met are the indices of the dependencies already true.
func (j *Job) Creation(met []int) (record.Compare, record.Op) {
	j.Record.Met = met
	key := record.JobKey(j.Record.Namespace, j.Record.Name)
	return record.Absent(key), record.Put(key, record.MustEncode(j.Record))
}

// Remove notes the removal of the object.
func (j *Job) Remove() { j.Gone = true }

// IsHidden reports whether reads show the job no more: the end in the background is durable.
func (j *Job) IsHidden() bool { return j.Record.Cancelled != nil && j.Record.Cancelled.Background }

// AwaitPriorities sets the only alarm for the priorities of the units.
func (j *Job) AwaitPriorities(p *post.Post, wait time.Duration, due func()) {
	p.Cancel(j.priorities)
	j.priorities = p.After(wait, due)
}

// AddThen has f run after the next change.
func (j *Job) AddThen(f func()) { j.then = append(j.then, f) }

// TakeThen returns the functions to run after a change of the job.
func (j *Job) TakeThen() []func() {
	then := j.then
	j.then = nil
	return then
}

// FirstWaiting is the first waiting unit, else the first unit.
func (j *Job) FirstWaiting() *Unit {
	return j.Units[max(0, slices.IndexFunc(j.Units, (*Unit).Waiting))]
}
