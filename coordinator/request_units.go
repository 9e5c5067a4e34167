package coordinator

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file serves requests about allocations and jobs.

// createAllocation submits an allocation and waits, for at most wait, until it
// runs or has ended. Its result is a created.
type createAllocation struct {
	submitted
	document *api.Allocation
	wait     time.Duration
}

// createJob is the same of a job.
type createJob struct {
	submitted
	document *api.Job
	wait     time.Duration
}

// created is what a client's submission made; repeated: an earlier request with
// its id did. One of the objects is set.
type created struct {
	allocation *api.Allocation
	job        *api.Job
	repeated   bool
}

func (r createAllocation) serve(l *leader, c *call) {
	s, status := l.submissionOfAllocation(r.submitted, r.document)
	if status != nil {
		c.answer(nil, status)
		return
	}
	l.submitFor(c, s, r.wait)
}

func (r createJob) serve(l *leader, c *call) {
	s, status := l.submissionOfJob(r.submitted, r.document)
	if status != nil {
		c.answer(nil, status)
		return
	}
	l.submitFor(c, s, r.wait)
}

// submitFor accepts a submission, once no other request is creating what has its
// name, and waits as its client asked.
func (l *leader) submitFor(c *call, s *submission, wait time.Duration) {
	if other := l.undecided(s); other != nil {
		l.waitForChange(c, other, func() bool {
			l.submitFor(c, s, wait)
			return true
		})
		return
	}
	u, repeated, status := l.accept(s)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.begun = true
	expired := wait <= 0
	settled := func() bool {
		switch {
		case u.err != nil:
			c.answer(nil, u.err)
		case u.create == nil && (expired || u.gone || !unitWaiting(u)): // the store holds it
			made := created{repeated: repeated}
			if u.job == nil {
				made.allocation = l.allocation(u, 0)
			} else {
				made.job = l.jobObject(u.job)
			}
			c.answer(made, nil)
		default:
			return false
		}
		return true
	}
	if wait > 0 {
		l.answerBy(c, wait, func() { expired = true; settled() })
	}
	l.wait(c, u, settled)
}

// deleteAllocation asks for an allocation's end. Its result is the allocation,
// once that is durable.
type deleteAllocation struct {
	namespace, name string
	options         api.DeleteOptions
}

func (r deleteAllocation) serve(l *leader, c *call) {
	u, _, status := l.member(r.namespace, r.name)
	switch {
	case status != nil:
		c.answer(nil, status)
		return
	case u.job != nil:
		c.answer(nil, api.Errorf(409, "allocation %s is a member of job %s; cancel or delete the job", r.name, u.record.Name))
		return
	}
	c.begun = true
	leaving := u.ending != nil // for another who asked
	l.end(u, releaseFor(r.options))
	ends := func() {
		l.wait(c, u, func() bool { return l.answerEnding(c, u, r.name) })
	}
	if !leaving {
		ends()
		return
	}
	l.ifStillThere(c, u, ends)
}

// answerEnding answers with an allocation whose release is durable, or was not
// taken.
func (l *leader) answerEnding(c *call, u *unit, name string) bool {
	switch {
	case u.ending == nil:
		c.answer(nil, api.Errorf(503, "allocation %s: the store did not take the deletion; ask again", name))
	case !u.gone && u.wish != endDurable:
		return false
	case u.stored == 0: // it came to nothing, and the next leader would not know that it was to be deleted
		c.answer(nil, notFound("allocation", u.record.Namespace, name))
	default:
		c.answer(l.terminating(u, l.stamp()), nil)
	}
	return true
}

// ifStillThere goes on, or answers 404 for a unit that was found on its way out
// and has ended: that may have landed, and been shown by others, before this
// leader has heard of it.
func (l *leader) ifStillThere(c *call, u *unit, then func()) {
	l.settleFirst(c, func() {
		if u.gone {
			c.answer(nil, notFound("allocation", u.record.Namespace, u.record.Name))
			return
		}
		then()
	})
}

// endJob asks for a job's end, and for the removal of its object if remove is
// set. Its result is the job, once that is durable.
type endJob struct {
	namespace, name string
	options         api.DeleteOptions
	remove          bool
}

func (r endJob) serve(l *leader, c *call) {
	j, status := l.findJob(r.namespace, r.name)
	if status != nil {
		c.answer(nil, status)
		return
	}
	l.cancelJob(j, releaseFor(r.options), r.remove, func(status *api.Status) { c.answer(l.jobObject(j), status) })
}

// evictUnit ends the unit of an allocation under notice. Its result is an
// eviction, once that is durable.
type evictUnit struct {
	options EvictOptions
	notice  txn.EvictAsked
}

func (r evictUnit) serve(l *leader, c *call) {
	u, status := l.evictee(r.options)
	if status != nil {
		c.answer(nil, status)
		return
	}
	c.begun = true
	a, leaving := u.attempt, u.phase() == api.Terminating
	l.evict(u, r.notice)
	noticed := func() {
		l.wait(c, u, func() bool {
			e, durable := l.evictionOf(u, a)
			if durable {
				c.answer(e, nil)
			}
			return durable
		})
	}
	if !leaving {
		noticed()
		return
	}
	l.ifStillThere(c, u, noticed)
}

// drainNode gives notice to every unit with a member on a node. Its result is a
// drained, once all that is durable.
type drainNode struct {
	node   resource.NodeID
	notice txn.EvictAsked
}

// drained is what a drain has begun.
type drained struct {
	// coming are members that were promised before the agent knew of the cordon.
	coming int
	// evicted are the members that are leaving, the last of them at until.
	evicted int
	until   time.Time
}

func (r drainNode) serve(l *leader, c *call) {
	var d drained
	var left []occupant
	for _, tx := range l.attemptsOn(r.node) {
		a := l.attempts[tx]
		if a.machine.Undecided() { // its commit may be on its way
			d.coming += len(a.requests[r.node])
			continue
		}
		vote, _ := a.machine.Vote(r.node)
		left = append(left, occupant{a.unit, a, len(vote.Members)})
		l.evict(a.unit, r.notice)
	}
	c.begun = true
	l.drainNext(c, d, left)
}

// occupant is a unit with members on a node that is drained.
type occupant struct {
	unit    *unit
	attempt *attempt
	members int
}

// drainNext waits for the notices of the units that are left, one after the
// other.
func (l *leader) drainNext(c *call, d drained, left []occupant) {
	if len(left) == 0 {
		c.answer(d, nil)
		return
	}
	at := left[0]
	l.wait(c, at.unit, func() bool {
		e, durable := l.evictionOf(at.unit, at.attempt)
		if !durable {
			return false
		}
		if !e.ended {
			d.evicted += at.members
			if e.until.After(d.until) {
				d.until = e.until
			}
		}
		l.drainNext(c, d, left[1:])
		return true
	})
}

// defaultGrace is the documented grace of a deletion, in seconds.
const defaultGrace = 30

// releaseFor turns delete options into a release.
func releaseFor(o api.DeleteOptions) txn.ReleaseAsked {
	r := txn.ReleaseAsked{GraceSeconds: defaultGrace, Reason: "UserRequested"}
	if o.GracePeriodSeconds != nil {
		r.GraceSeconds = *o.GracePeriodSeconds
	}
	if o.Reason != "" {
		r.Reason = o.Reason
	}
	return r
}
