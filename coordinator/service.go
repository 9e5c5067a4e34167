package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
)

var _ service.Service = (*Coordinator)(nil)

// leading returns the present term, or the 503 that names the leader.
func (c *Coordinator) leading() (*term, error) {
	if l := c.serving(); l != nil {
		return l, nil
	}
	return nil, c.elsewhere()
}

// elsewhere refuses requests that only a leader can answer.
func (c *Coordinator) elsewhere() *api.Status {
	status := api.Errorf(503, "coordinator %s does not lead and knows of no leader yet; ask again", c.config.ID)
	if found, _ := c.follower.Candidates(); len(found) > 0 {
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
	case errors.Is(err, lead.ErrDeposed):
		status := api.Errorf(503, "the coordinator lost its leadership while the request was under way, which may have been done; ask again")
		status.Reason = api.LeaderLost
		return status
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(503, "the request was given up before it was answered")
	}
	return err
}

// ask hands the present leader a request and waits for the answer. Every error
// comes back as a Status.
func ask[T any](ctx context.Context, c *Coordinator, r lead.Request) (T, error) {
	l, err := c.leading()
	if err != nil {
		var none T
		return none, err
	}
	got, final, err := l.ask(ctx, r)
	if hasty(err) && !final && l.settled(ctx) {
		got, _, err = l.ask(ctx, r)
	}
	result, _ := got.(T)
	return result, err
}

// hasty reports whether a refusal may rest on a state that a write which has
// landed is about to change: others may have seen its effect already. A request
// that is refused so is judged again when the view has settled.
func hasty(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && (status.Code == 404 || status.Code == 409)
}

// reply is the answer to a request; final: it would be the same again.
type reply struct {
	result any
	status *api.Status
	final  bool
}

// ask hands the leader a request and waits for the answer.
func (t *term) ask(ctx context.Context, r lead.Request) (result any, final bool, err error) {
	replies := make(chan reply, 1) // the loop never waits for the client
	var mine lead.Token
	err = t.visit(ctx, func() {
		if ctx.Err() != nil {
			return
		}
		t.asked++
		mine = t.asked
		t.clients[mine] = replies
		t.apply(lead.ClientRequest{Token: mine, Request: r})
	})
	if err != nil {
		return nil, false, failure(err)
	}
	select {
	case a := <-replies:
		if a.status != nil {
			return nil, a.final, a.status
		}
		return a.result, a.final, nil
	case <-t.ended:
		return nil, false, failure(lead.ErrDeposed)
	case <-ctx.Done():
		go t.post(func() {
			delete(t.clients, mine)
			t.apply(lead.ClientGone{Token: mine})
		})
		return nil, false, failure(ctx.Err())
	}
}

// isElsewhere reports whether an error only means that this coordinator does
// not lead, or no longer.
func isElsewhere(err error) bool {
	var status *api.Status
	return errors.As(err, &status) && (status.Reason == api.NotLeader || status.Reason == api.LeaderLost)
}

// see shows objects at any coordinator: the leader's from its view, the others'
// from their cache. Either way it shows every write acknowledged before the
// call.
func see[T any](ctx context.Context, c *Coordinator, show func(i shown.Index) (T, *api.Status)) (T, error) {
	if l := c.serving(); l != nil && l.settled(ctx) {
		got, err := look(ctx, l, show)
		if !isElsewhere(err) && (err != nil || c.serving() == l) { // still: a term that has ended may be behind the next
			return got, err
		}
	}
	got, err := follow.Read(ctx, c.follower, show)
	if errors.Is(err, follow.ErrBehind) {
		c.log.Debug("read_not_served", "error", err)
		return got, c.elsewhere()
	}
	return got, err
}

// settled waits until the view has this leader's writes that the store had at
// the call; false if that takes long, or is in doubt.
func (l *term) settled(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, follow.CatchUp)
	defer cancel()
	return l.commit.barrier.pass(ctx, l.ended)
}

// watched is something shown that may be waited for.
type watched[T any] struct {
	got     T
	settled bool
	changed <-chan struct{} // closes when the leader has something new of it
}

// seeSettled is see that waits until the view has settled, for at most wait;
// from one leader to the next, if need be.
func seeSettled[T any](ctx context.Context, c *Coordinator, wait time.Duration, show func(i shown.Index) (watched[T], *api.Status)) (T, error) {
	expires := time.NewTimer(max(wait, 0))
	defer expires.Stop()
	expired := wait <= 0
	for {
		l := c.serving()
		_, cached := c.follower.At()
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

// look shows objects of the leader's view; where it does not find one, it looks
// again once the view has all writes that had landed.
func look[T any](ctx context.Context, l *term, show func(i shown.Index) (T, *api.Status)) (T, error) {
	got, err := lookOnce(ctx, l, show)
	if hasty(err) && l.settled(ctx) {
		got, err = lookOnce(ctx, l, show)
	}
	return got, err
}

func lookOnce[T any](ctx context.Context, l *term, show func(i shown.Index) (T, *api.Status)) (T, error) {
	var got, none T
	var status *api.Status
	if err := l.visit(ctx, func() { got, status = show(l.Show(time.Now(), l.changes)) }); err != nil {
		return none, failure(err)
	}
	if status != nil {
		return none, status
	}
	return got, nil
}
