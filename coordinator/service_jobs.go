package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// CreateJob implements rest.Jobs.
func (c *Coordinator) CreateJob(ctx context.Context, create rest.Create, doc *api.Job) (*api.Job, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	s, err := l.submissionOfJob(create, doc, time.Now())
	if err != nil {
		return nil, err
	}
	u, err := l.submitAndWait(ctx, s, create.Wait)
	if err != nil {
		return nil, err
	}
	var result *api.Job
	err = l.do(ctx, func() { result = l.jobObject(u.job) })
	return result, failure(err)
}

// findJob finds a job in the loop.
func (v *view) findJob(namespace, name string) (*job, *api.Status) {
	j := v.jobs[namespace+"/"+name]
	if j == nil {
		return nil, notFound("job", namespace, name)
	}
	return j, nil
}

// GetJob implements rest.Jobs. A wait is for the job's first unit.
func (c *Coordinator) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	return seeSettled(ctx, c, wait, func(v *view) (watched[*api.Job], *api.Status) {
		j, status := v.findJob(namespace, name)
		if status == nil && j.stored == 0 { // it may yet come to nothing
			status = notFound("job", namespace, name)
		}
		if status != nil {
			return watched[*api.Job]{}, status
		}
		return watched[*api.Job]{v.jobObject(j), !unitWaiting(j.units[0]), v.changes(j.key())}, nil
	})
}

// ListJobs implements rest.Jobs.
func (c *Coordinator) ListJobs(ctx context.Context, namespace string, p rest.Page[api.Job]) (*api.JobList, error) {
	return see(ctx, c, func(v *view) (*api.JobList, *api.Status) {
		list := &api.JobList{Kind: "JobList", Metadata: api.ListMeta{ResourceVersion: v.newest()}}
		list.Items, list.Metadata.Continue = p.Of(func(yield func(string) bool) {
			for key, j := range v.jobs {
				if j.stored != 0 && (namespace == "" || j.record.Namespace == namespace) && !yield(key) {
					return
				}
			}
		}, func(key string) *api.Job { return v.jobObject(v.jobs[key]) })
		return list, nil
	})
}

// CancelJob implements rest.Jobs.
func (c *Coordinator) CancelJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return c.endJob(ctx, namespace, name, o, false)
}

// DeleteJob implements rest.Jobs.
func (c *Coordinator) DeleteJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return c.endJob(ctx, namespace, name, o, true)
}

// endJob writes the wish to end a job, then ends its units. Once the wish is
// durable the next leader would go on with it.
func (c *Coordinator) endJob(ctx context.Context, namespace, name string, o api.DeleteOptions, remove bool) (*api.Job, error) {
	return ask(ctx, c, func(l *leader, answer func(*api.Job, *api.Status)) {
		j, status := l.findJob(namespace, name)
		if status != nil {
			answer(nil, status)
			return
		}
		l.cancelJob(j, asked(o), remove, func(status *api.Status) { answer(l.jobObject(j), status) })
	})
}

// cancelJob makes the wish durable and carries it out; done is called in the
// loop.
func (l *leader) cancelJob(j *job, release txn.ReleaseAsked, remove bool, done func(*api.Status)) {
	if j.stored == 0 || j.writing {
		// Its creation is under way: once more when that is answered.
		j.addThen(func() {
			if j.gone {
				done(api.Errorf(404, "job %s is gone", j.record.Name))
				return
			}
			l.cancelJob(j, release, remove, done)
		})
		return
	}
	if c := j.record.Cancelled; c != nil && (c.Remove || !remove) {
		done(nil)
		return
	}
	rec := j.record
	rec.Cancelled = &record.Cancellation{Reason: release.Reason, GraceSeconds: release.GraceSeconds, Remove: remove}
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
				l.end(u, release)
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
