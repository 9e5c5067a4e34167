package narrate

import (
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// job is a job as its key has it.
type job struct {
	record   *record.Job
	revision resource.Revision
	doc      *api.Job // nil where the document cannot be read
	work     *work    // of its units, once one has asked for it
	ofNodes  []resource.Name
}

// takeJob takes a job's key.
func (n *Narrator) takeJob(c *change, e record.Event) error {
	key := e.KV.Key
	if _, noted := c.jobs[key]; !noted {
		c.jobs[key] = n.jobs[key]
	}
	if e.Type == record.EventDelete {
		delete(n.jobs, key)
		return nil
	}
	rec, err := decode[record.Job](e.KV)
	if err != nil {
		return err
	}
	j := &job{record: rec, revision: e.KV.ModRev}
	n.jobs[key] = j
	c.note(parsed(rec.Ended))
	if c.whole || e.KV.CreateRev == e.KV.ModRev { // a full read does not know which submissions the history has
		c.note(parsed(rec.Created))
		if rec.Made != nil {
			n.tellSubmission(e.KV, rec.Made, "jobs", rec.Namespace, rec.Name)
		}
	}
	doc, status := api.StoredJob(rec.Document)
	if status != nil {
		return inKey(e.KV, "document", status)
	}
	doc.Spec.CompleteBy(rec.Admitted.Fill)
	j.doc = doc
	return nil
}

// workOf is the request of a unit of the job; nil where the document cannot be read.
func (j *job) workOf(u *record.Unit) *work {
	if u.Replaces && j.doc != nil && len(j.doc.Spec.Members) > 0 {
		return j.workOfMember(u)
	}
	ofNodes := u.NodeResources
	if j.work != nil && slices.Equal(j.ofNodes, ofNodes) {
		return j.work
	}
	if j.doc == nil {
		return nil
	}
	specs := j.doc.MemberSpecs()
	w, err := workOf(&specs[0], ofNodes, j.doc.Spec.PriorityClass)
	if err != nil {
		return nil // the leader has accepted the document: this is another version's
	}
	for i := range j.doc.Spec.Members {
		f, err := readForm(specs[i], ofNodes)
		if err != nil {
			return nil
		}
		w.sets = append(w.sets, formsOf{int(j.doc.Spec.Members[i].Count), f})
	}
	w.limited = w.limited || j.doc.Spec.ActiveDeadlineSeconds != nil
	j.work, j.ofNodes = w, ofNodes
	return w
}

// workOfMember is workOf a unit that replaces a member of a job whose members differ.
func (j *job) workOfMember(u *record.Unit) *work {
	spec := j.doc.SpecOf(u.FirstMember)
	w, err := workOf(&spec, u.NodeResources, j.doc.Spec.PriorityClass)
	if err != nil {
		return nil
	}
	w.limited = w.limited || j.doc.Spec.ActiveDeadlineSeconds != nil
	return w
}

// tellJob makes the row of a job that has changed.
func (n *Narrator) tellJob(c *change, key string) {
	before, after := c.jobs[key], n.jobs[key]
	if before != nil && (after == nil || after.record.UID != before.record.UID) && before.record.Ended == "" {
		row := before.row()
		row.Phase, row.Ended, row.Revision = string(api.Cancelled), n.endOfJob(c, before), c.revision
		n.out.jobs.put(row.UID, row)
	}
	if after != nil {
		n.out.jobs.put(after.record.UID, after.row())
	}
}

// endOfJob is the instant at which a job ended whose key was deleted: the end of its
// last unit.
func (n *Narrator) endOfJob(c *change, j *job) time.Time {
	var at time.Time
	for _, path := range j.record.Units {
		if u := c.units[path.String()]; u != nil {
			at = latest(at, parsed(u.record.Ended))
		}
	}
	var asked time.Time
	if j.record.Cancelled != nil {
		asked = instant(j.record.Cancelled.AskedMillis)
	}
	return first(at, c.at, asked, parsed(j.record.Created))
}

func (j *job) row() history.Job {
	r := j.record
	return history.Job{
		UID: r.UID, Namespace: r.Namespace, Name: r.Name, Tenant: r.Tenant, User: r.Made.User(), Phase: r.Phase, Document: r.Document,
		Created: parsed(r.Created), Ended: parsed(r.Ended), Reason: r.Reason, Message: r.Message, Revision: j.revision,
	}
}
