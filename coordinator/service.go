package coordinator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

var _ rest.Service = (*Coordinator)(nil)

// leading returns the present term, or the 503 that says who leads.
func (c *Coordinator) leading() (*leader, error) {
	if l := c.term.Load(); l != nil {
		return l, nil
	}
	if a := c.leaderAddress.Load(); a != nil && a.ID != c.config.ID && a.REST != "" {
		return nil, api.Errorf(503, "coordinator %s does not lead; ask %s at %s", c.config.ID, a.ID, a.REST)
	}
	return nil, api.Errorf(503, "coordinator %s does not lead and knows of no leader yet; ask again", c.config.ID)
}

// failure turns an error of a wait into a Status.
func failure(err error) error {
	switch {
	case errors.Is(err, errDeposed):
		return api.Errorf(503, "the coordinator lost its leadership while the request was under way; ask again")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(503, "the request was given up before it was answered")
	}
	return err
}

// CreateAllocation implements rest.Allocations.
func (c *Coordinator) CreateAllocation(ctx context.Context, create rest.Create, a *api.Allocation) (*api.Allocation, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	s, err := l.submissionOfAllocation(create, a)
	if err != nil {
		return nil, err
	}
	u, err := l.submit(ctx, s, create.Wait)
	if err != nil {
		return nil, failure(err)
	}
	var result *api.Allocation
	err = l.do(ctx, func() { result = l.allocation(u, 0) })
	return result, failure(err)
}

// submit takes a submission in and waits as its client asked.
func (l *leader) submit(ctx context.Context, s *submission, wait time.Duration) (*unit, error) {
	var u *unit
	var status *api.Status
	if err := l.do(ctx, func() { u, status = l.accept(s) }); err != nil {
		return nil, err
	}
	if status != nil {
		return nil, status
	}
	return u, l.await(ctx, u, wait)
}

// GetAllocation implements rest.Allocations.
func (c *Coordinator) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	var result *api.Allocation
	var status *api.Status
	look := func() {
		u, index, notFound := l.member(namespace, name)
		if status = notFound; status == nil {
			result = l.allocation(u, index)
		}
	}
	if wait > 0 {
		var u *unit
		if err := l.do(ctx, func() { u, _, status = l.member(namespace, name) }); err != nil {
			return nil, failure(err)
		}
		if status != nil {
			return nil, status
		}
		if err := l.await(ctx, u, wait); err != nil {
			return nil, failure(err)
		}
	}
	if err := l.do(ctx, look); err != nil {
		return nil, failure(err)
	}
	if status != nil {
		return nil, status
	}
	return result, nil
}

// ListAllocations implements rest.Allocations.
func (c *Coordinator) ListAllocations(ctx context.Context, namespace string) (*api.AllocationList, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	list := &api.AllocationList{Kind: "AllocationList", Items: []api.Allocation{}}
	err = l.do(ctx, func() {
		for _, m := range l.members {
			if namespace == "" || m.unit.record.Namespace == namespace {
				list.Items = append(list.Items, *l.allocation(m.unit, m.index))
			}
		}
		list.Metadata.ResourceVersion = l.newest()
	})
	if err != nil {
		return nil, failure(err)
	}
	slices.SortFunc(list.Items, func(a, b api.Allocation) int {
		return cmp.Or(strings.Compare(a.Metadata.Namespace, b.Metadata.Namespace), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return list, nil
}

// newest is the greatest revision that the leader knows of an object.
func (l *leader) newest() string {
	newest := resource.Revision(l.epoch)
	for _, u := range l.units {
		newest = max(newest, u.stored)
	}
	return strconv.FormatInt(int64(newest), 10)
}

// DeleteAllocation implements rest.Allocations.
func (c *Coordinator) DeleteAllocation(ctx context.Context, namespace, name string, o api.DeleteOptions) (*api.Allocation, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	var u *unit
	var status *api.Status
	err = l.do(ctx, func() {
		if u, _, status = l.member(namespace, name); status != nil {
			return
		}
		if u.job != nil {
			status = api.Errorf(409, "allocation %s is a member of job %s; cancel or delete the job", name, u.record.Name)
			return
		}
		l.end(u, asked(o, "UserRequested"))
	})
	if err == nil && status != nil {
		return nil, status
	}
	if err == nil {
		err = l.awaitEnding(ctx, func() (bool, <-chan struct{}) {
			return u.gone || u.phase() == api.Terminating || u.ending == nil, u.changed
		})
	}
	if err != nil {
		return nil, failure(err)
	}
	var result *api.Allocation
	err = l.do(ctx, func() {
		if u.ending == nil {
			status = api.Errorf(503, "allocation %s: the store did not take the deletion; ask again", name)
			return
		}
		result = l.allocation(u, 0)
		result.Metadata.DeletionTimestamp = now()
		result.Metadata.DeletionGracePeriodSeconds = &u.ending.GraceSeconds
		result.Status.Phase = api.Terminating
		result.Status.Conditions = append(result.Status.Conditions, api.Condition{
			Type: "Terminating", Status: "True", Reason: "UserRequested", Message: "Graceful termination in progress",
		})
	})
	if status != nil {
		return nil, status
	}
	return result, failure(err)
}

// asked turns delete options into a release; the documented grace is 30 s.
func asked(o api.DeleteOptions, reason string) txn.ReleaseAsked {
	r := txn.ReleaseAsked{GraceSeconds: 30, Reason: reason}
	if o.GracePeriodSeconds != nil {
		r.GraceSeconds = *o.GracePeriodSeconds
	}
	if o.Reason != "" {
		r.Reason = o.Reason
	}
	return r
}

// awaitEnding waits until done reports true; it is called in the loop and
// returns what to wait for next.
func (l *leader) awaitEnding(ctx context.Context, done func() (bool, <-chan struct{})) error {
	for {
		var ended bool
		var changed <-chan struct{}
		if err := l.do(ctx, func() { ended, changed = done() }); err != nil {
			return err
		}
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-l.ended:
			return errDeposed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CreateJob implements rest.Jobs.
func (c *Coordinator) CreateJob(ctx context.Context, create rest.Create, doc *api.Job) (*api.Job, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	s, err := l.submissionOfJob(create, doc)
	if err != nil {
		return nil, err
	}
	u, err := l.submit(ctx, s, create.Wait)
	if err != nil {
		return nil, failure(err)
	}
	var result *api.Job
	err = l.do(ctx, func() { result = l.jobObject(u.job) })
	return result, failure(err)
}

// findJob finds a job in the loop.
func (l *leader) findJob(namespace, name string) (*job, *api.Status) {
	j := l.jobs[namespace+"/"+name]
	if j == nil {
		return nil, api.Errorf(404, "job %s not found in namespace %s", name, namespace)
	}
	return j, nil
}

// GetJob implements rest.Jobs.
func (c *Coordinator) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	var j *job
	var status *api.Status
	var result *api.Job
	look := func() {
		if j, status = l.findJob(namespace, name); status == nil {
			result = l.jobObject(j)
		}
	}
	if err := l.do(ctx, look); err != nil {
		return nil, failure(err)
	}
	if status != nil {
		return nil, status
	}
	if wait > 0 {
		if err := l.await(ctx, j.units[0], wait); err != nil {
			return nil, failure(err)
		}
		if err := l.do(ctx, look); err != nil {
			return nil, failure(err)
		}
		if status != nil {
			return nil, status
		}
	}
	return result, nil
}

// ListJobs implements rest.Jobs.
func (c *Coordinator) ListJobs(ctx context.Context, namespace string) (*api.JobList, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	list := &api.JobList{Kind: "JobList", Items: []api.Job{}}
	err = l.do(ctx, func() {
		for _, j := range l.jobs {
			if namespace == "" || j.record.Namespace == namespace {
				list.Items = append(list.Items, *l.jobObject(j))
			}
		}
		list.Metadata.ResourceVersion = l.newest()
	})
	if err != nil {
		return nil, failure(err)
	}
	slices.SortFunc(list.Items, func(a, b api.Job) int {
		return cmp.Or(strings.Compare(a.Metadata.Namespace, b.Metadata.Namespace), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return list, nil
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
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	var j *job
	var status *api.Status
	var result *api.Job
	answered := make(chan struct{})
	release := asked(o, "UserRequested")
	err = l.do(ctx, func() {
		if j, status = l.findJob(namespace, name); status != nil {
			close(answered)
			return
		}
		l.cancelJob(j, release, remove, func(s *api.Status) {
			if status = s; status == nil {
				result = l.jobObject(j)
			}
			close(answered)
		})
	})
	if err != nil {
		return nil, failure(err)
	}
	select {
	case <-answered:
	case <-l.ended:
		return nil, failure(errDeposed)
	case <-ctx.Done():
		return nil, failure(ctx.Err())
	}
	if status != nil {
		return nil, status
	}
	return result, nil
}

// cancelJob makes the wish durable and carries it out; done is called in the
// loop.
func (l *leader) cancelJob(j *job, release txn.ReleaseAsked, remove bool, done func(*api.Status)) {
	if j.stored == 0 || j.writing {
		// its creation is under way: once more when that is answered
		changed := j.changed
		go func() {
			select {
			case <-changed:
				l.post(func() {
					if j.gone {
						done(api.Errorf(404, "job %s is gone", j.record.Name))
						return
					}
					l.cancelJob(j, release, remove, done)
				})
			case <-l.ended:
			}
		}()
		return
	}
	if c := j.record.Cancelled; c != nil && (c.Remove || !remove) {
		done(nil)
		return
	}
	record := j.record
	record.Cancelled = &store.Cancellation{Reason: release.Reason, GraceSeconds: release.GraceSeconds, Remove: remove}
	if !api.Phase(record.Phase).Ended() {
		record.Phase = string(api.Cancelling)
	}
	j.writing = true
	key := store.JobKey(record.Namespace, record.Name)
	l.settle(decision{
		compares: []store.Compare{store.ModRevIs(key, j.stored)},
		ops:      []store.Op{store.Put(key, store.MustEncode(record))},
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			j.writing = false
			if o != txn.Landed {
				done(api.Errorf(503, "job %s: the store did not take the cancellation (%v); ask again", record.Name, err))
				j.notify()
				return
			}
			j.record, j.stored = record, rev
			for _, u := range j.units {
				l.end(u, release)
			}
			done(nil)
			j.notify()
			l.finishJob(j)
		},
	}, key, func(value []byte, found bool) bool {
		written, err := store.Decode[store.JobRecord](key, value)
		return found && err == nil && written.Cancelled != nil && *written.Cancelled == *record.Cancelled
	})
}
