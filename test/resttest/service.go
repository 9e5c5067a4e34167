package resttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/shown"
)

// This file hands requests to the leader and shows what it has.

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

// see shows what the leader has.
func see[T any](_ context.Context, c *Cluster, show func(i shown.Index) (T, *api.Status)) (T, error) {
	var none T
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	got, status := show(c.leader.Show(c.time(), c.changes))
	if status != nil {
		return none, status
	}
	return got, nil
}

// changes is a channel that closes when an object changes next. c.mu is held.
func (c *Cluster) changes(key string) <-chan struct{} {
	changed := c.watchers[key]
	if changed == nil {
		changed = make(chan struct{})
		c.watchers[key] = changed
	}
	return changed
}

// watched is something shown that may be waited for.
type watched[T any] struct {
	got     T
	settled bool
	changed <-chan struct{} // closes when the leader has something new of it
}

// seeSettled is see that waits until what is shown has settled, for at most wait.
func seeSettled[T any](ctx context.Context, c *Cluster, wait time.Duration, show func(i shown.Index) (watched[T], *api.Status)) (T, error) {
	expires := time.NewTimer(max(wait, 0))
	defer expires.Stop()
	for expired := wait <= 0; ; {
		w, err := see(ctx, c, show)
		if err != nil || w.settled || expired {
			return w.got, err
		}
		select {
		case <-w.changed:
		case <-expires.C:
			expired = true
		case <-ctx.Done():
			return w.got, gaveUp()
		}
	}
}

func hashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:16])
}
