package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/resource"
)

// ReleaseAllocations asks for the end of several allocations. Its result is an
// *api.BulkRelease, once every end is durable; a dry run ends none.
type ReleaseAllocations struct {
	Namespace string
	Names     []string
	Options   api.DeleteOptions
	DryRun    bool
}

// bulk is a release of several allocations that is under way.
type bulk struct {
	result api.BulkRelease
	freed  resource.Vector
	// forms are the units of the amounts as they were requested: "m" of 8000m.
	forms api.Forms
}

func (r ReleaseAllocations) serve(l *Leader, c *desk.Call) {
	b := &bulk{result: api.BulkRelease{DryRun: r.DryRun}, freed: resource.Vector{}, forms: api.Forms{}}
	var leaving []*work.Unit
	for _, name := range r.Names {
		u, _, status := l.member(r.Namespace, name)
		switch {
		case status != nil || u.Stored == 0 || u.Life.EndAsked(): // it has gone meanwhile, or its end was asked for
		case u.Job != nil:
			b.fail(name, inJob(name, u))
		default:
			leaving = append(leaving, u)
		}
	}
	if r.DryRun {
		for _, u := range leaving {
			b.release(u, u.Holding())
		}
		c.Answer(b.answer(), nil)
		return
	}
	if len(leaving) > 0 {
		c.Begin()
	}
	holding := make([]resource.Vector, len(leaving)) // before their ends
	for i, u := range leaving {
		holding[i] = u.Holding()
		if r.Options.PropagationPolicy == api.Background {
			u.Hide()
		}
		l.end(u, releaseFor(r.Options))
	}
	l.releaseNext(c, b, leaving, holding)
}

// releaseNext waits until the ends of the units that are left are durable, one
// after the other.
func (l *Leader) releaseNext(c *desk.Call, b *bulk, left []*work.Unit, holding []resource.Vector) {
	if len(left) == 0 {
		c.Answer(b.answer(), nil)
		return
	}
	u := left[0]
	c.Wait(changesOf(u), func() bool {
		switch {
		case !u.Life.EndAsked():
			b.fail(u.Record.Name, notDeleted(u.Record.Name))
		case !u.Life.Gone() && !u.Life.EndDurable():
			return false
		default:
			b.release(u, holding[0])
		}
		l.releaseNext(c, b, left[1:], holding[1:])
		return true
	})
}

// release counts a unit that ends, and the amounts that it held.
func (b *bulk) release(u *work.Unit, held resource.Vector) {
	b.result.Released++
	if len(b.result.Allocations) < api.MaxReleasedNames {
		b.result.Allocations = append(b.result.Allocations, u.Record.Name)
	}
	b.freed.Add(held)
	if held != nil && u.Allocation != nil {
		b.forms.Note(held, u.Allocation.Spec.Resources.Requests)
	}
}

// fail counts an allocation that does not end.
func (b *bulk) fail(name string, why *api.Status) {
	b.result.Failed++
	if len(b.result.Failures) < api.MaxReleaseFailures {
		b.result.Failures = append(b.result.Failures, api.ReleaseFailure{Name: name, Message: why.Message})
	}
}

func (b *bulk) answer() *api.BulkRelease {
	b.result.TotalResourcesFreed = b.forms.Amounts(b.freed)
	return &b.result
}

// inJob refuses the end of one member of a job.
func inJob(name string, u *work.Unit) *api.Status {
	return api.Errorf(409, "allocation %s is a member of job %s; cancel or delete the job", name, u.Record.Name).Because(api.FailedPrecondition)
}

// notDeleted says that the store did not take a deletion.
func notDeleted(name string) *api.Status {
	return api.Errorf(503, "allocation %s: the store did not take the deletion; ask again", name)
}
