package resttest

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
)

// This file hands requests to the leader and shows the store's objects.

// reply is the leader's answer to a request.
type reply struct {
	result any
	status *api.Status
}

// ask hands the leader a request and waits for the answer.
func ask[T any](ctx context.Context, c *Cluster, r lead.Request) (T, error) {
	var none T
	replies := make(chan reply, 1)
	c.mu.Lock()
	c.asked++
	mine := c.asked
	c.clients[mine] = replies
	_, boost := r.(lead.BoostJob)
	if caller, bounded := service.CeilingsOf(ctx, boost); bounded {
		r = lead.Bounded{Caller: caller, Request: r}
	}
	if by := service.ChangeOf(ctx); by != nil {
		r = lead.AskedBy{By: by, Request: r}
	}
	c.inputs = append(c.inputs, lead.ClientRequest{Token: mine, Request: r})
	c.settle()
	c.mu.Unlock()
	select {
	case a := <-replies:
		if a.status != nil {
			return none, a.status
		}
		result, _ := a.result.(T)
		return result, nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.clients, mine)
		c.inputs = append(c.inputs, lead.ClientGone{Token: mine})
		c.settle()
		return none, gaveUp()
	}
}

func gaveUp() error { return api.Errorf(503, "the request was given up before it was answered") }

// see shows the objects of the store's keys, as every coordinator does.
func see[T any](_ context.Context, c *Cluster, show func(v *objects.View) (T, *api.Status)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, _, err := seeNow(c, show)
	return got, err
}

// seeNow is see with a channel that closes at the store's next change. c.mu is held.
func seeNow[T any](c *Cluster, show func(v *objects.View) (T, *api.Status)) (T, <-chan struct{}, error) {
	var none T
	c.settle()
	got, status := show(c.view())
	if status != nil {
		return none, nil, status
	}
	return got, c.changed, nil
}

// view is the objects as they are now. c.mu is held.
func (c *Cluster) view() *objects.View {
	kvs, at, err := c.store.Range(context.Background(), record.Root, store.RangeOptions{})
	must(err)
	now := make(map[string]record.KV, len(kvs))
	for _, kv := range kvs {
		if now[kv.Key] = kv; c.seen[kv.Key].ModRev != kv.ModRev {
			c.cache.Touch(kv.Key)
		}
	}
	for key := range c.seen {
		if _, stays := now[key]; !stays {
			c.cache.Touch(key)
		}
	}
	c.seen = now
	must(c.cache.Refresh(now, at, c.time()))
	return c.cache.View(at, c.time())
}

// watched is something shown that may be waited for.
type watched[T any] struct {
	got     T
	settled bool
}

// seeSettled is see that waits until the object has settled, for at most wait.
func seeSettled[T any](ctx context.Context, c *Cluster, wait time.Duration, show func(v *objects.View) (watched[T], *api.Status)) (T, error) {
	expires := time.NewTimer(max(wait, 0))
	defer expires.Stop()
	for expired := wait <= 0; ; {
		c.mu.Lock()
		w, changed, err := seeNow(c, show)
		c.mu.Unlock()
		if err != nil || w.settled || expired {
			return w.got, err
		}
		select {
		case <-changed:
		case <-expires.C:
			expired = true
		case <-ctx.Done():
			return w.got, gaveUp()
		}
	}
}
