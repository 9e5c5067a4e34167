package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// cancellationOf is the wish that ends a job as a release ends a unit, and keeps its
// object.
func cancellationOf(r txn.ReleaseAsked) record.Cancellation {
	return record.Cancellation{Reason: r.Reason, GraceSeconds: r.GraceSeconds}
}

// cancelJob makes a wish of this instant durable and carries it out; done is called
// in the loop.
func (l *Leader) cancelJob(j *job, wish record.Cancellation, done func(*api.Status)) {
	if j.stored == 0 || j.writing {
		// Its creation is under way: once more when that is answered.
		j.addThen(func() {
			if j.gone {
				done(api.Errorf(404, "job %s is gone", j.record.Name))
				return
			}
			l.cancelJob(j, wish, done)
		})
		return
	}
	if c := j.record.Cancelled; c != nil && (c.Remove || !wish.Remove) {
		done(nil)
		return
	}
	rec := j.record
	wish.AskedMillis = l.millis()
	rec.Cancelled = &wish
	if !api.Phase(rec.Phase).Ended() {
		rec.Phase = string(api.Cancelling)
	}
	j.beginWrite()
	key := record.JobKey(rec.Namespace, rec.Name)
	l.settle(decision{
		compares: []record.Compare{record.ModRevIs(key, j.stored)},
		ops:      []record.Op{record.Put(key, record.MustEncode(rec))},
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			j.finishWrite()
			if o != txn.Landed {
				done(api.Errorf(503, "job %s: the store did not take the cancellation (%v); ask again", rec.Name, err))
				l.notifyJob(j)
				return
			}
			j.keep(rec, rev)
			for _, u := range j.units {
				l.endSince(u, txn.ReleaseAsked{Reason: wish.Reason, GraceSeconds: wish.GraceSeconds}, wish.AskedMillis)
			}
			done(nil)
			l.notifyJob(j)
			l.finishJob(j)
		},
	}, key, func(value []byte, found bool) bool {
		written, err := record.Decode[record.Job](key, value)
		return found && err == nil && written.Cancelled != nil && *written.Cancelled == *rec.Cancelled
	})
}
