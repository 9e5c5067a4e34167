package coordinator

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
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

// ask runs f in the loop of the present leader and waits until it answers: at
// once or later, once, in the loop. Whatever goes wrong comes back as a
// Status.
func ask[T any](ctx context.Context, c *Coordinator, f func(l *leader, answer func(T, *api.Status))) (T, error) {
	type answer struct {
		result T
		status *api.Status
	}
	var none T
	l, err := c.leading()
	if err != nil {
		return none, err
	}
	answers := make(chan answer, 1) // the loop never waits for the asker
	err = l.do(ctx, func() { f(l, func(result T, status *api.Status) { answers <- answer{result, status} }) })
	if err != nil {
		return none, failure(err)
	}
	select {
	case a := <-answers:
		if a.status != nil {
			return none, a.status
		}
		return a.result, nil
	case <-l.ended:
		return none, failure(errDeposed)
	case <-ctx.Done():
		return none, failure(ctx.Err())
	}
}

// look is ask for what is known at once.
func look[T any](ctx context.Context, c *Coordinator, f func(l *leader) (T, *api.Status)) (T, error) {
	return ask(ctx, c, func(l *leader, answer func(T, *api.Status)) { answer(f(l)) })
}

// submit takes a submission in and waits as its client asked.
func (l *leader) submit(ctx context.Context, s *submission, wait time.Duration) (*unit, error) {
	var u *unit
	var status *api.Status
	if err := l.do(ctx, func() { u, status = l.accept(s) }); err != nil {
		return nil, failure(err)
	}
	if status != nil {
		return nil, status
	}
	return u, failure(l.await(ctx, u, wait))
}

// newest is the greatest revision that the leader knows of an object.
func (l *leader) newest() string {
	newest := resource.Revision(l.epoch)
	for _, u := range l.units {
		newest = max(newest, u.stored)
	}
	return strconv.FormatInt(int64(newest), 10)
}

// defaultGrace is the documented grace of a deletion, in seconds.
const defaultGrace = 30

// asked turns delete options into a release.
func asked(o api.DeleteOptions) txn.ReleaseAsked {
	r := txn.ReleaseAsked{GraceSeconds: defaultGrace, Reason: "UserRequested"}
	if o.GracePeriodSeconds != nil {
		r.GraceSeconds = *o.GracePeriodSeconds
	}
	if o.Reason != "" {
		r.Reason = o.Reason
	}
	return r
}

// byName orders objects of all namespaces.
func byName(a, b api.ObjectMeta) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
