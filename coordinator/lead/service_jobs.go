package lead

import (
	"errors"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// cancellationOf is the wish that ends a job as a release ends a unit, and keeps its
// object.
func cancellationOf(r txn.ReleaseAsked) record.Cancellation {
	return record.Cancellation{Reason: r.Reason, GraceSeconds: r.GraceSeconds, GraceKept: r.Kept}
}

// releaseOf is the release of a unit by a durable wish.
func releaseOf(c record.Cancellation) txn.ReleaseAsked {
	return txn.ReleaseAsked{Reason: c.Reason, GraceSeconds: c.GraceSeconds, Kept: c.GraceKept}
}

// cancelJob makes a wish of this instant durable and carries it out; done is called
// in the loop.
func (l *Leader) cancelJob(j *work.Job, wish record.Cancellation, done func(*api.Status)) {
	if j.Stored == 0 || j.Writing {
		// Its creation is under way: once more when that is answered.
		j.AddThen(func() {
			if j.Gone {
				done(api.Errorf(404, "job %s is gone", j.Record.Name))
				return
			}
			l.cancelJob(j, wish, done)
		})
		return
	}
	if c := j.Record.Cancelled; c != nil && (c.Remove || !wish.Remove) {
		done(nil)
		return
	}
	rec := j.Record
	wish.AskedMillis = l.post.Millis()
	rec.Cancelled = &wish
	if !api.Phase(rec.Phase).Ended() {
		rec.Phase = string(api.Cancelling)
	}
	j.BeginWrite()
	key := record.JobKey(rec.Namespace, rec.Name)
	l.post.Settle(post.Change(key, j.Stored, rec, func(o txn.Outcome, rev resource.Revision, err error) {
		j.FinishWrite()
		if d, waiting, ok := unheld(j); ok && o != txn.Landed && wish.Remove && errors.Is(err, record.ErrNoSpace) && !l.work.IsAwaited(j) {
			j.BeginWrite()
			for _, u := range waiting {
				u.Life.Begin(work.WriteChange)
				l.offer(u) // which holds the unit
			}
			d.Done = func(o txn.Outcome, _ resource.Revision, err error) {
				j.FinishWrite()
				if o == txn.Landed {
					l.forgetJob(j)
					done(nil)
					return
				}
				for _, u := range waiting {
					u.Life.Finish(work.WriteChange)
					l.goOn(u)
				}
				done(refusal.NotTaken("job "+rec.Name, "deletion", err))
				l.notifyJob(j)
			}
			l.post.Settle(d, key, post.Removed)
			return
		}
		if o != txn.Landed {
			done(refusal.NotTaken("job "+rec.Name, "cancellation", err))
			l.notifyJob(j)
			return
		}
		j.Keep(rec, rev)
		for _, u := range j.Units {
			l.endSince(u, releaseOf(wish), wish.AskedMillis)
		}
		done(nil)
		l.notifyJob(j)
		l.finishJob(j)
	}, func(written record.Job) bool { return written.Cancelled != nil && *written.Cancelled == *rec.Cancelled }))
}

// unheld is the Txn of deletions alone, which a store without space takes, of a job
// without devices, and its waiting units; not ok where the job has to be ended first.
func unheld(j *work.Job) (d post.Decision, waiting []*work.Unit, ok bool) {
	key := record.JobKey(j.Record.Namespace, j.Record.Name)
	d = post.Decision{Compares: []record.Compare{record.ModRevIs(key, j.Stored)}, Ops: []record.Op{record.Delete(key)}}
	for _, u := range j.Units {
		at := u.Record.Path().Key()
		d.Ops = append(d.Ops, record.Delete(at))
		switch {
		case u.Phase().Ended() && !u.Life.IsBeingWritten():
			continue
		case u.Attempt != nil || u.Adopting != "" || u.Life.IsBeingWritten() || u.Life.EndAsked() || u.Stored == 0:
			return d, nil, false
		}
		waiting = append(waiting, u)
		d.Compares = append(d.Compares, record.ModRevIs(at, u.Stored))
		if u.Queued {
			d.Ops = append(d.Ops, record.Delete(u.Record.Order().Key()))
		}
	}
	return d, waiting, true
}
