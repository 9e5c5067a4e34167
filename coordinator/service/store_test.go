package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

// faultBetween is a store with a fault between two instants; errSlow is Late alone.
type faultBetween struct {
	from, to time.Time
	err      error
}

func (f faultBetween) Fault() error {
	if err := f.Late(); err != errSlow {
		return err
	}
	return nil
}

func (f faultBetween) Late() error {
	if now := time.Now(); now.Before(f.from) || !now.Before(f.to) {
		return nil
	}
	return f.err
}

var errSlow = errors.New("the store (etcd) is slow")

var errSilent = errors.New("the store (etcd) has not answered for 2.5 s")

// TestWhatARequestWaitsFor: a request ends where the store has a fault, and goes on where
// the fault is over.
func TestWhatARequestWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		from, to time.Duration
		bound    service.Bound
		want     time.Duration // 0: no end within 10 s
		reason   string
	}{
		"a change without space":          {record.ErrNoSpace, 0, time.Hour, service.Bound{Changes: true}, service.StoreLimit, api.StoreOutOfSpace},
		"a read without space":            {record.ErrNoSpace, 0, time.Hour, service.Bound{}, 0, ""},
		"a change without an answer":      {errSilent, 0, time.Hour, service.Bound{Changes: true}, service.StoreLimit, api.StoreNotAnswering},
		"a read without an answer":        {errSilent, 0, time.Hour, service.Bound{}, service.StoreLimit, api.StoreNotAnswering},
		"a change in a store to read":     {record.ErrReadOnly, 0, time.Hour, service.Bound{Changes: true}, service.StoreLimit, api.StoreReadOnly},
		"a read in a store to read":       {record.ErrReadOnly, 0, time.Hour, service.Bound{}, 0, ""},
		"a change in a slow store":        {errSlow, 0, time.Hour, service.Bound{Changes: true}, service.StoreLimit, api.StoreNotAnswering},
		"a wait in a slow store":          {errSlow, 0, time.Hour, service.Bound{Changes: true, Waits: true}, 0, ""},
		"a wait without an answer":        {errSilent, 0, time.Hour, service.Bound{Waits: true}, service.StoreLimit, api.StoreNotAnswering},
		"a fault that is over":            {errSilent, 0, 2 * time.Second, service.Bound{Changes: true}, 0, ""},
		"a fault in the middle of a wait": {errSilent, 3600 * time.Millisecond, time.Hour, service.Bound{Changes: true}, 3750 * time.Millisecond, api.StoreNotAnswering},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, end := service.Limit(t.Context(), faultBetween{began.Add(c.from), began.Add(c.to), c.err}, c.bound)
				defer end()
				select {
				case <-ctx.Done():
					if took := time.Since(began); took != c.want {
						t.Errorf("ended after %v, want %v", took, c.want)
					}
					if got := service.Refused(ctx); got == nil || got.Code != 503 || got.Reason != c.reason || got.RetryAfterSeconds == 0 {
						t.Errorf("the refusal is %+v, want a 503 %s with a Retry-After", got, c.reason)
					}
				case <-time.After(10 * time.Second):
					if c.want != 0 {
						t.Errorf("goes on after 10 s, want an end after %v", c.want)
					}
				}
			})
		})
	}
}

// TestAFaultIsNamedInRefusals: a more exact reason stays, and a store without a fault
// changes no refusal.
func TestAFaultIsNamedInRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		given  *api.Status
		fault  error
		reason string
		named  bool
	}{
		"another code":               {api.Errorf(409, "no"), errSilent, "Conflict", false},
		"no fault":                   {api.Errorf(503, "no"), nil, "ServiceUnavailable", false},
		"without an answer":          {api.Errorf(503, "no"), errSilent, api.StoreNotAnswering, true},
		"without space":              {api.Errorf(503, "no"), record.ErrNoSpace, api.StoreOutOfSpace, true},
		"no leader, no answer":       {api.Errorf(503, "no").Because(api.LeaderLost), errSilent, api.LeaderLost, true},
		"no leader, no space":        {api.Errorf(503, "no").Because(api.NotLeader), record.ErrNoSpace, api.NotLeader, false},
		"a leader that is not heard": {api.Errorf(503, "no").Because(api.LeaderUnreachable), errSilent, api.LeaderUnreachable, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := *c.given
			got := service.NameFault(c.given, faultBetween{time.Time{}, time.Now().Add(time.Hour), c.fault})
			if named := c.fault != nil && strings.Contains(got.Message, c.fault.Error()); got.Reason != c.reason || named != c.named {
				t.Errorf("%s %q, want the reason %s, and the fault named: %v", got.Reason, got.Message, c.reason, c.named)
			}
			if again := service.NameFault(got, faultBetween{time.Time{}, time.Now().Add(time.Hour), c.fault}); again.Message != got.Message {
				t.Errorf("the second door says %q, want the fault once", again.Message)
			}
			if diff := cmp.Diff(before, *c.given); diff != "" {
				t.Errorf("the shared refusal changed: %s", diff)
			}
			if got := service.NameFault(c.given, nil); got != c.given {
				t.Errorf("without a store: %+v", got)
			}
		})
	}
}

// TestRefusalsOfTheStore: errors of the store are 503, and no other error.
func TestRefusalsOfTheStore(t *testing.T) {
	for err, reason := range map[error]string{
		fmt.Errorf("a: %w", record.ErrNoSpace):        api.StoreOutOfSpace,
		fmt.Errorf("a: %w", record.ErrReadOnly):       api.StoreReadOnly,
		fmt.Errorf("a: %w", record.ErrUnknownOutcome): api.StoreNotAnswering,
		errSilent: "",
	} {
		got := service.StoreRefusal(err)
		if reason == "" && got != nil || reason != "" && (got == nil || got.Reason != reason || got.Code != 503) {
			t.Errorf("%v is %+v, want the reason %q", err, got, reason)
		}
	}
}
