package service

import (
	"context"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// Changing is an Authenticator whose rules change while requests are served.
type Changing interface {
	Authenticator
	// Changed is closed when other rules are in force than at the call.
	Changed() <-chan struct{}
}

// Hold watches over a request that lasts, such as a watch: when the rules of an
// Authenticator change, and when the caller's token expires, judge decides again
// whether the caller may go on. With a refusal the returned context ends, and the
// refusal is its cause (Refused). The caller of Hold ends the watch over the request
// by end.
func Hold(ctx context.Context, a Authenticator, judge func(context.Context) (Principal, *api.Status)) (held context.Context, end func()) {
	changing, is := a.(Changing)
	if !is {
		return ctx, func() {}
	}
	held, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			changed := changing.Changed()
			p, refused := judge(held)
			if refused != nil {
				cancel(refused)
				return
			}
			if !waitFor(held, changed, p.Expires) {
				return
			}
		}
	}()
	return held, func() { cancel(nil) }
}

// SameRoles ends a watch whose caller has other roles than at its beginning: it shows
// its objects by the old ones.
func SameRoles(before, now Principal) *api.Status {
	if was, is := before.Roles(), now.Roles(); was != is {
		return api.Errorf(http.StatusForbidden, "the roles of %q have changed from %s to %s: ask again", now.Name, was, is)
	}
	return nil
}

// waitFor waits until a channel is closed or a time has passed, the zero value being
// never; it reports whether ctx goes on.
func waitFor(ctx context.Context, changed <-chan struct{}, at time.Time) bool {
	var over <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
		return false
	}
	return true
}

// Refused is the refusal that has ended a context of Hold; nil for any other reason.
func Refused(ctx context.Context) *api.Status {
	if status, is := context.Cause(ctx).(*api.Status); is {
		return status
	}
	return nil
}
