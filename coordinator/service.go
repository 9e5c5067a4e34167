package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/service"
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
	case errors.Is(err, post.ErrDeposed):
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
	var mine post.Token
	err = t.visit(ctx, func() {
		if ctx.Err() != nil {
			return
		}
		t.asked++
		mine = t.asked
		t.clients[mine] = replies
		_, boost := r.(lead.BoostJob)
		if caller, bounded := service.CeilingsOf(ctx, boost); bounded {
			r = lead.Bounded{Caller: caller, Request: r}
		}
		if by := service.ChangeOf(ctx); by != nil {
			r = lead.AskedBy{By: by, Request: r}
		}
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
		return nil, false, failure(post.ErrDeposed)
	case <-ctx.Done():
		go t.post(func() {
			delete(t.clients, mine)
			t.apply(lead.ClientGone{Token: mine})
		})
		return nil, false, failure(ctx.Err())
	}
}

// settled waits until the view has this leader's writes that the store had at
// the call; false if that takes long, or is in doubt.
func (l *term) settled(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, follow.CatchUp)
	defer cancel()
	return l.commit.barrier.pass(ctx, l.ended)
}
