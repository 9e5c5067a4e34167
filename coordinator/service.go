package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/txn"
)

var _ rest.Service = (*Coordinator)(nil)

// leading returns the present term, or the 503 that says who leads.
func (c *Coordinator) leading() (*term, error) {
	if l := c.serving(); l != nil {
		return l, nil
	}
	return nil, c.elsewhere()
}

// elsewhere refuses what only a leader can answer.
func (c *Coordinator) elsewhere() *api.Status {
	status := api.Errorf(503, "coordinator %s does not lead and knows of no leader yet; ask again", c.config.ID)
	if found, _ := c.follower.candidates(); len(found) > 0 {
		if a := found[0].Address; a.ID != c.config.ID && a.REST != "" {
			status.Message = fmt.Sprintf("coordinator %s does not lead; ask %s at %s", c.config.ID, a.ID, a.REST)
		}
	}
	status.Reason = api.NotLeader
	return status
}

// failure turns an error of a wait into a Status.
func failure(err error) error {
	switch {
	case errors.Is(err, errDeposed):
		status := api.Errorf(503, "the coordinator lost its leadership while the request was under way, which may have been done; ask again")
		status.Reason = api.LeaderLost
		return status
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(503, "the request was given up before it was answered")
	}
	return err
}

// ask runs f in the loop of the present leader and waits until it answers: at
// once or later, once, in the loop. Whatever goes wrong comes back as a
// Status.
func ask[T any](ctx context.Context, c *Coordinator, f func(l *leader, answer func(T, *api.Status))) (T, error) {
	l, err := c.leading()
	if err != nil {
		var none T
		return none, err
	}
	return askIn(ctx, l, f)
}

// askIn is ask in a term.
func askIn[T any](ctx context.Context, l *term, f func(l *leader, answer func(T, *api.Status))) (T, error) {
	got, err := askOnce(ctx, l, f)
	if hasty(err) && l.settled(ctx) {
		return askOnce(ctx, l, f)
	}
	return got, err
}

// hasty reports whether a refusal may rest on what a write that has landed is
// about to change: others may have seen its effect already. Whoever is refused
// so is judged again when the view has settled.
func hasty(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && (status.Code == 404 || status.Code == 409)
}

func askOnce[T any](ctx context.Context, t *term, f func(l *leader, answer func(T, *api.Status))) (T, error) {
	type answer struct {
		result T
		status *api.Status
	}
	var none T
	answers := make(chan answer, 1) // the loop never waits for the asker
	err := t.do(ctx, func() { f(t.leader, func(result T, status *api.Status) { answers <- answer{result, status} }) })
	if err != nil {
		return none, failure(err)
	}
	select {
	case a := <-answers:
		if a.status != nil {
			return none, a.status
		}
		return a.result, nil
	case <-t.ended:
		return none, failure(errDeposed)
	case <-ctx.Done():
		return none, failure(ctx.Err())
	}
}

// isElsewhere reports whether an error only says that this coordinator does not
// lead, or no longer.
func isElsewhere(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && (status.Reason == api.NotLeader || status.Reason == api.LeaderLost)
}

// see shows what every coordinator can: the leader from what it decides by, the
// others from their cache. Either way it shows what was acknowledged to anybody
// before the call.
func see[T any](ctx context.Context, c *Coordinator, show func(v *view) (T, *api.Status)) (T, error) {
	if l := c.serving(); l != nil && l.settled(ctx) {
		got, err := look(ctx, c, func(l *leader) (T, *api.Status) { return show(&l.view) })
		if !isElsewhere(err) && (err != nil || c.serving() == l) { // still: a term that has ended may be behind the next
			return got, err
		}
	}
	got, err := read(ctx, c.follower, show)
	if errors.Is(err, errBehind) {
		c.log.Debug("read_not_served", "error", err)
		return got, c.elsewhere()
	}
	return got, err
}

// settled waits until the view has what the store had of this leader's writes
// at the call; false if that takes long, or is in doubt.
func (l *term) settled(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	return l.commit.barrier.pass(ctx, l.ended)
}

// watched is something shown that may be waited for.
type watched[T any] struct {
	got     T
	settled bool
	changed <-chan struct{} // closes when the leader has something new of it
}

// seeSettled is see that waits until what is shown has settled, for at most
// wait; from one leader to the next, if need be.
func seeSettled[T any](ctx context.Context, c *Coordinator, wait time.Duration, show func(v *view) (watched[T], *api.Status)) (T, error) {
	expires := time.NewTimer(max(wait, 0))
	defer expires.Stop()
	expired := wait <= 0
	for {
		l := c.serving()
		_, cached := c.follower.at()
		w, err := see(ctx, c, show)
		if err != nil || w.settled || expired {
			return w.got, err
		}
		var ended <-chan struct{}
		if l != nil {
			cached, ended = w.changed, l.ended
		}
		select {
		case <-cached:
		case <-ended:
		case <-expires.C:
			expired = true
		case <-ctx.Done():
			return w.got, failure(ctx.Err())
		}
	}
}

// look is ask for what is known at once.
func look[T any](ctx context.Context, c *Coordinator, f func(l *leader) (T, *api.Status)) (T, error) {
	return ask(ctx, c, func(l *leader, answer func(T, *api.Status)) { answer(f(l)) })
}

// lookIn is look in a term.
func lookIn[T any](ctx context.Context, l *term, f func(l *leader) (T, *api.Status)) (T, error) {
	return askIn(ctx, l, func(l *leader, answer func(T, *api.Status)) { answer(f(l)) })
}

// submitAndWait takes a submission in and waits as its client asked.
func (l *term) submitAndWait(ctx context.Context, s *submission, wait time.Duration) (*unit, error) {
	u, status, err := l.take(ctx, s)
	if err == nil && status != nil && hasty(status) && l.settled(ctx) {
		u, status, err = l.take(ctx, s)
	}
	if err != nil {
		return nil, failure(err)
	}
	if status != nil {
		return nil, status
	}
	return u, failure(l.await(ctx, u, wait))
}

// take is accept, once no other request is creating what has its name.
func (l *term) take(ctx context.Context, s *submission) (u *unit, status *api.Status, err error) {
	for {
		var undecided <-chan struct{}
		if err := l.do(ctx, func() {
			undecided = nil
			if key := l.undecided(s); key != "" {
				undecided = l.changes(key)
				return
			}
			u, status = l.accept(s)
		}); err != nil || undecided == nil {
			return u, status, err
		}
		select {
		case <-undecided:
		case <-l.ended:
			return nil, nil, errDeposed
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// newest is the greatest revision that the leader knows of an object.
func (v *view) newest() string {
	newest := v.floor
	for _, u := range v.units {
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
