package service

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// StoreLimit is how long a request waits for a store with a fault: a change for a
// store without space, and each request for a store without answers.
const StoreLimit = 2500 * time.Millisecond

const (
	// storePause is between two looks at the store after StoreLimit.
	storePause = 250 * time.Millisecond
	// storeRetry is the Retry-After of a refusal for want of space, in seconds: a person
	// has to make room.
	storeRetry = 10
)

// StoreFaults knows the present fault of the store: nil, record.ErrNoSpace,
// record.ErrReadOnly, or an error with the time of the wait for an answer of the store.
// Late counts slow answers, too. The methods do not block.
type StoreFaults interface {
	Fault() error
	Late() error
}

// Bound describes a request to Limit.
type Bound struct {
	// Changes: the request needs a store with the right and the space to write.
	Changes bool
	// Waits: the caller waits for more than the store, so slow answers do not end the wait.
	Waits bool
}

// Limit bounds a request's wait for a store with a fault. After StoreLimit the
// returned context ends as soon as there is a fault, with the refusal as the cause
// (Refused). A read does not wait for space. A nil faults is a store without faults.
// The caller calls end.
func Limit(ctx context.Context, faults StoreFaults, b Bound) (limited context.Context, end func()) {
	if faults == nil {
		return ctx, func() {}
	}
	limited, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	began := time.Now()
	ready := make(chan struct{}) // timer is set
	timer = time.AfterFunc(StoreLimit, func() {
		<-ready
		fault := faults.Late
		if b.Waits {
			fault = faults.Fault
		}
		switch err := fault(); {
		case limited.Err() != nil:
		case err == nil, !b.Changes && refusesWrites(err):
			timer.Reset(storePause)
		default:
			cancel(unansweredIn(time.Since(began), err, b.Changes))
		}
	})
	close(ready)
	return limited, func() { timer.Stop(); cancel(nil) }
}

// unansweredIn is the refusal of a request after a time of waiting for the store.
func unansweredIn(took time.Duration, fault error, changes bool) *api.Status {
	outcome := "nothing was changed; ask again"
	if changes {
		outcome = "the request may have been done or may be done yet: look, or repeat it (a create with its idempotency key happens once)"
	}
	return faulty(api.Errorf(http.StatusServiceUnavailable, "no answer within %.1f s: %v: %s", took.Seconds(), fault, outcome), fault)
}

// refusesWrites reports whether a store with the fault answers reads.
func refusesWrites(fault error) bool {
	return errors.Is(fault, record.ErrNoSpace) || errors.Is(fault, record.ErrReadOnly)
}

// faulty gives a 503 the reason and the Retry-After of a fault of the store.
func faulty(s *api.Status, fault error) *api.Status {
	s.Reason, s.RetryAfterSeconds = api.StoreNotAnswering, retryAfter
	switch {
	case errors.Is(fault, record.ErrNoSpace):
		s.Reason, s.RetryAfterSeconds = api.StoreOutOfSpace, storeRetry
	case errors.Is(fault, record.ErrReadOnly):
		s.Reason, s.RetryAfterSeconds = api.StoreReadOnly, storeRetry
	}
	return s
}

// StoreRefusal is the refusal in an error of the store: record.ErrNoSpace,
// record.ErrReadOnly and record.ErrUnknownOutcome; nil for any other error.
func StoreRefusal(err error) *api.Status {
	switch {
	case errors.Is(err, record.ErrUnknownOutcome):
		return faulty(api.Errorf(http.StatusServiceUnavailable, "the store (etcd) has not answered; the change may have been done: look, then ask again"), err)
	case errors.Is(err, record.ErrNoSpace):
		return faulty(api.Errorf(http.StatusServiceUnavailable, "nothing was changed: %v", record.ErrNoSpace), err)
	case errors.Is(err, record.ErrReadOnly):
		return faulty(api.Errorf(http.StatusServiceUnavailable, "nothing was changed: %v", record.ErrReadOnly), err)
	}
	return nil
}

// NameFault returns a refusal with the fault of the store where the refusal is a 503
// without a more exact reason, or for want of a leader.
func NameFault(s *api.Status, faults StoreFaults) *api.Status {
	if s.Code != http.StatusServiceUnavailable {
		return s
	}
	if faults == nil {
		return s
	}
	named, fault := *s, faults.Fault() // s may be shared
	plain := s.Reason == api.Errorf(s.Code, "").Reason
	leaderless := Elsewhere(s) != nil && !refusesWrites(fault)
	if fault == nil || !plain && !leaderless {
		return s
	}
	if text := fault.Error(); !strings.Contains(named.Message, text) {
		named.Message += ": " + text
	}
	if plain {
		return faulty(&named, fault)
	}
	return &named
}
