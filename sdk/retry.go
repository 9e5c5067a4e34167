package sdk

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
)

// Bounds of the retries of refusals with 429. A server that asks for more time than
// longestBusy is not asked again.
const (
	busyAttempts = 5
	longestBusy  = 10 * time.Second
)

// miscellaneous is the code of a warning (RFC 9111, section 5.5).
const miscellaneous = 299

// Bounds of the retries where the leader is away. With the default lease another
// coordinator leads 7 s after the leader was paused.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 4 * time.Second
	// longestAway is when a request is sent for the last time, after the first.
	longestAway = 15 * time.Second
)

// laterError is a refusal that may pass by itself: a 429 with a Retry-After, or
// a 503 because the leader is away.
type laterError struct {
	status *api.Status
	after  time.Duration // of Retry-After; 0 for none
}

func (e *laterError) Error() string { return e.status.Error() }

// Unwrap returns the refusal.
func (e *laterError) Unwrap() error { return e.status }

// refusal returns a server's refusal, as a laterError where it may pass.
func refusal(answer *http.Response, status *api.Status) error {
	seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16)
	switch {
	case status.Code == http.StatusTooManyRequests && err == nil:
	case isLeaderAway(status):
	default:
		return status
	}
	// Beside an error seconds is 0, or the largest number for a larger one.
	return &laterError{status: status, after: time.Duration(seconds) * time.Second}
}

// isLeaderAway reports whether a coordinator refused a request because the leader
// has not answered, or there is none.
func isLeaderAway(s *api.Status) bool {
	return s.Code == http.StatusServiceUnavailable &&
		(s.Reason == api.NotLeader || s.Reason == api.LeaderLost || s.Reason == api.LeaderUnreachable || s.Reason == api.StoreNotAnswering)
}

// repeatable reports whether a request does no harm when it is done twice.
func (r request) repeatable() bool { return r.method == http.MethodGet || r.key != "" }

// pause returns the time until a refused request is sent again, and false where
// it is not: attempt counts from 1, spent is the time since the first. No request
// comes again before the time that the server has asked for, and clients that were
// refused together come again at different times.
func (r request) pause(refused *laterError, attempt int, spent time.Duration) (time.Duration, bool) {
	if refused.status.Code == http.StatusTooManyRequests {
		return refused.after + mathrand.N(refused.after/2+time.Millisecond), attempt < busyAttempts && refused.after <= longestBusy
	}
	if !r.repeatable() && refused.status.Reason != api.NotLeader { // NotLeader: nothing was done
		return 0, false
	}
	wait := max(refused.after, min(firstPause<<min(attempt-1, 8), longestPause))
	wait += mathrand.N(wait / 2)
	return wait, spent+wait <= longestAway
}

// send returns the body of a 2xx answer; any other is an *api.Status. It waits
// and asks again where the servers are busy or the leader is away.
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	began := time.Now()
	for attempt := 1; ; attempt++ {
		body, err := c.sendOnce(ctx, r)
		var refused *laterError
		if !errors.As(err, &refused) {
			return body, err
		}
		wait, again := r.pause(refused, attempt, time.Since(began))
		if !again {
			return nil, refused.status
		}
		if refused.status.Code == http.StatusTooManyRequests && refused.after > 0 && c.warnings != nil {
			c.warnings(miscellaneous, "muster", refused.status.Message)
		}
		select {
		case <-ctx.Done():
			return nil, refused.status
		case <-time.After(wait):
		}
	}
}

// sendOnce asks one server after the other, beginning with the server that answered
// last.
func (c *Client) sendOnce(ctx context.Context, r request) ([]byte, error) {
	first := int(c.last.Load())
	for i := 0; ; i++ {
		at := (first + i) % len(c.endpoints)
		body, err := c.sendTo(ctx, c.endpoints[at], r)
		if ctx.Err() != nil || !r.elsewhere(err) {
			c.last.Store(int32(at))
			return body, err
		}
		if i == len(c.endpoints)-1 {
			return nil, err
		}
	}
}

// elsewhere reports whether another server may be asked after an error: one
// that came before anything was done, or where asking twice does no harm.
func (r request) elsewhere(err error) bool {
	var op *net.OpError
	if err == nil || errors.As(err, &op) && op.Op == "dial" {
		return err != nil
	}
	var status *api.Status
	if errors.As(err, &status) {
		// Each server takes its share of a tenant's requests, and nothing was done.
		var busy *laterError
		if status.Code == http.StatusTooManyRequests && errors.As(err, &busy) {
			return true
		}
		unavailable := status.Code == http.StatusBadGateway || status.Code == http.StatusServiceUnavailable
		return unavailable && (r.repeatable() || status.Reason == api.NotLeader)
	}
	var broken *url.Error
	return r.repeatable() && errors.As(err, &broken)
}
