package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// CreateJob implements rest.Jobs.
func (c *Coordinator) CreateJob(ctx context.Context, create rest.Create, doc *api.Job) (*api.Job, error) {
	made, err := ask[created](ctx, c, createJob{submittedAs(create), doc, create.Wait})
	made.tell(create)
	return made.job, err
}

// findJob finds a job in the loop.
func (l *leader) findJob(namespace, name string) (*job, *api.Status) {
	j := l.jobs[namespace+"/"+name]
	if j == nil {
		return nil, notFound("job", namespace, name)
	}
	return j, nil
}

// GetJob implements rest.Jobs. A wait is for the job's first unit.
func (c *Coordinator) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	return seeSettled(ctx, c, wait, func(i shown.Index) (watched[*api.Job], *api.Status) {
		position := namespace + "/" + name
		j, found := i.Job(position)
		if !found {
			return watched[*api.Job]{}, notFound("job", namespace, name)
		}
		return watched[*api.Job]{j.Show(), j.Settled, i.JobChanged(position)}, nil
	})
}

// ListJobs implements rest.Jobs.
func (c *Coordinator) ListJobs(ctx context.Context, namespace string, p rest.Page[api.Job]) (*api.JobList, error) {
	return see(ctx, c, func(i shown.Index) (*api.JobList, *api.Status) {
		list := &api.JobList{Kind: "JobList", Metadata: shown.ListMeta(i.Newest())}
		list.Items, list.Metadata.Continue = p.Of(i.Jobs(namespace), func(position string) *api.Job {
			j, _ := i.Job(position)
			return j.Show()
		})
		return list, nil
	})
}

// CancelJob implements rest.Jobs.
func (c *Coordinator) CancelJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return ask[*api.Job](ctx, c, endJob{namespace, name, o, false})
}

// DeleteJob implements rest.Jobs.
func (c *Coordinator) DeleteJob(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Job, error) {
	return ask[*api.Job](ctx, c, endJob{namespace, name, o, true})
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
