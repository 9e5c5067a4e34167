package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
)

// This file serves requests about allocations and jobs.

// CreateAllocation submits an allocation and waits, for at most wait, until it
// runs or has ended. Its result is a created.
type CreateAllocation struct {
	Submitted
	Document *api.Allocation
	Wait     time.Duration
}

// CreateJob is the same of a job.
type CreateJob struct {
	Submitted
	Document *api.Job
	Wait     time.Duration
}

// Created is what a client's submission made; repeated: an earlier request with
// its id did. One of the objects is set.
type Created struct {
	Allocation *api.Allocation
	Job        *api.Job
	Repeated   bool
	// Warnings are for the client: the object waits, and can never run.
	Warnings []string
}

func (r CreateAllocation) serve(l *Leader, c *desk.Call) {
	if l.isPaused(c, r.Namespace, func() { r.serve(l, c) }) {
		return
	}
	s, status := l.submissionOfAllocation(r.Submitted, r.Document)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	l.submitFor(c, s, r.Wait)
}

func (r CreateJob) serve(l *Leader, c *desk.Call) {
	if l.isPaused(c, r.Namespace, func() { r.serve(l, c) }) {
		return
	}
	s, status := l.submissionOfJob(r.Submitted, r.Document)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	l.submitFor(c, s, r.Wait)
}

// submitFor accepts a submission, once no other request is creating what has its
// name, and waits as its client asked.
func (l *Leader) submitFor(c *desk.Call, s *submission, wait time.Duration) {
	if other := l.undecided(s); other != nil {
		c.WaitForChange(changesOf(other), func() bool {
			l.submitFor(c, s, wait)
			return true
		})
		return
	}
	u, repeated, status := l.accept(s)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	c.Begin()
	expired := wait <= 0
	settled := func() bool {
		switch {
		case u.Err != nil:
			c.Answer(nil, u.Err)
		case u.Create == nil && (expired || u.Life.Gone() || !work.UnitWaiting(u) || u.IsSuspended()): // the store holds it
			made := Created{Repeated: repeated, Warnings: append(u.WarningsOf(), l.dependencyWarnings(u.Job)...)}
			if u.Job == nil {
				made.Allocation = l.allocation(u, 0)
			} else {
				made.Job = l.jobObject(u.Job)
			}
			c.Answer(made, nil)
		default:
			return false
		}
		return true
	}
	if wait > 0 {
		c.AnswerBy(wait, func() { expired = true; settled() })
	}
	c.Wait(changesOf(u), settled)
}

// DeleteAllocation asks for an allocation's end. Its result is the allocation,
// once that is durable.
type DeleteAllocation struct {
	Namespace, Name string
	Options         api.DeleteOptions
}

func (r DeleteAllocation) serve(l *Leader, c *desk.Call) {
	u, _, status := l.member(r.Namespace, r.Name)
	switch {
	case status != nil:
		c.Answer(nil, status)
		return
	case u.Job != nil:
		c.Answer(nil, inJob(r.Name, u))
		return
	}
	if status := checkAllocation(u, r.Options.Preconditions); status != nil {
		c.Answer(nil, status)
		return
	}
	if u.EndsWithItsTime() { // the request is about the allocation that has ended
		c.Wait(changesOf(u), func() bool {
			if !u.Life.Gone() && !u.Phase().Ended() {
				return false
			}
			r.serve(l, c)
			return true
		})
		return
	}
	c.Begin()
	leaving := u.Life.EndAsked() // for another who asked
	if !leaving && r.Options.PropagationPolicy == api.Background {
		u.Hide()
	}
	l.end(u, releaseFor(r.Options))
	ends := func() {
		c.Wait(changesOf(u), func() bool { return l.answerEnding(c, u, r.Name) })
	}
	if !leaving {
		ends()
		return
	}
	l.ifStillThere(c, u, ends)
}

// answerEnding answers with an allocation whose release is durable, or was not
// taken.
func (l *Leader) answerEnding(c *desk.Call, u *work.Unit, name string) bool {
	switch {
	case !u.Life.EndAsked():
		c.Answer(nil, notDeleted(name))
	case !u.Life.Gone() && !u.Life.EndDurable():
		return false
	case u.Stored == 0: // it came to nothing, and the next leader would not know that it was to be deleted
		c.Answer(nil, NotFound("allocation", u.Record.Namespace, name))
	default:
		c.Answer(l.terminating(u), nil)
	}
	return true
}

// ifStillThere goes on, or answers 404 for a unit that was found on its way out
// and has ended: that may have landed, and been shown by others, before this
// leader has heard of it.
func (l *Leader) ifStillThere(c *desk.Call, u *work.Unit, then func()) {
	c.Settle(func() {
		if u.Life.Gone() {
			c.Answer(nil, NotFound("allocation", u.Record.Namespace, u.Record.Name))
			return
		}
		then()
	})
}

// EndJob asks for a job's end, and for the removal of its object if remove is
// set. Its result is the job, once that is durable.
type EndJob struct {
	Namespace, Name string
	Options         api.DeleteOptions
	Remove          bool
}

func (r EndJob) serve(l *Leader, c *desk.Call) {
	j, status := l.findJob(r.Namespace, r.Name)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	if status := checkJob(j, r.Options.Preconditions); status != nil {
		c.Answer(nil, status)
		return
	}
	wish := cancellationOf(releaseFor(r.Options))
	wish.Remove = r.Remove
	wish.Background = r.Remove && r.Options.PropagationPolicy == api.Background
	l.cancelJob(j, wish, func(status *api.Status) { c.Answer(l.jobObject(j), status) })
}

// EvictUnit ends the unit of an allocation under notice. Its result is an
// eviction, once that is durable.
type EvictUnit struct {
	Options EvictOptions
	Notice  txn.EvictAsked
}

func (r EvictUnit) serve(l *Leader, c *desk.Call) {
	u, status := l.evictee(r.Options)
	if status != nil {
		c.Answer(nil, status)
		return
	}
	c.Begin()
	a, leaving := u.Attempt, u.Phase() == api.Terminating
	l.evict(u, r.Notice)
	noticed := func() {
		c.Wait(changesOf(u), func() bool {
			e, durable := l.evictionOf(u, a)
			if durable {
				c.Answer(e, nil)
			}
			return durable
		})
	}
	if !leaving {
		l.activity.addPreemptions(l.post.Now(), 1)
		noticed()
		return
	}
	l.ifStillThere(c, u, noticed)
}

// DefaultGrace is the documented grace of a deletion, in seconds.
const DefaultGrace = 30
