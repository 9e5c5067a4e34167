package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// inProcess serves a client's requests without a network, for synctest.
type inProcess struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// follower refuses requests for as long as nobody but a paused leader leads, as
// package rest does: each after 2 s.
type follower struct {
	reason     string
	retryAfter string
	leads      time.Duration // when another coordinator leads, after the start
	began      time.Time
	asked      int
	keys       map[string]bool
}

func (f *follower) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked++
	f.keys[r.Header.Get("Idempotency-Key")] = true
	if time.Since(f.began) >= f.leads {
		_, _ = w.Write([]byte("{}"))
		return
	}
	select {
	case <-r.Context().Done():
		return
	case <-time.After(2 * time.Second):
	}
	if f.retryAfter != "" {
		w.Header().Set("Retry-After", f.retryAfter)
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	refused := api.Errorf(http.StatusServiceUnavailable, "the leader did not answer")
	refused.Reason = f.reason
	_ = json.NewEncoder(w).Encode(refused)
}

func TestARequestOutlastsALeaderThatIsAway(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		call       func(context.Context, *sdk.Client) error
		reason     string
		retryAfter string
		leads      time.Duration
		within     time.Duration // of the caller; 0 for no end
		ok         bool
		once       bool          // it is asked once
		longest    time.Duration // that the call takes
	}{
		"a create, under one key":                    {create, api.LeaderUnreachable, "1", 7 * time.Second, 0, true, false, 12 * time.Second},
		"a create, through a lost leader":            {create, api.LeaderLost, "1", 7 * time.Second, 0, true, false, 12 * time.Second},
		"a read":                                     {get, api.LeaderUnreachable, "1", 7 * time.Second, 0, true, false, 12 * time.Second},
		"a server that names no time":                {get, api.NotLeader, "", 7 * time.Second, 0, true, false, 13 * time.Second},
		"a delete that was not done":                 {remove, api.NotLeader, "1", 7 * time.Second, 0, true, false, 12 * time.Second},
		"a delete that may have been done":           {remove, api.LeaderUnreachable, "1", 7 * time.Second, 0, false, true, 2 * time.Second},
		"a 503 for another reason":                   {create, "ServiceUnavailable", "1", 7 * time.Second, 0, false, true, 2 * time.Second},
		"nobody leads for long":                      {create, api.LeaderUnreachable, "1", never, 0, false, false, 17 * time.Second},
		"the server asks for more time than is left": {create, api.NotLeader, "60", never, 0, false, true, 2 * time.Second},
		"the caller ends the wait":                   {create, api.NotLeader, "10", never, 3 * time.Second, false, true, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &follower{reason: c.reason, retryAfter: c.retryAfter, leads: c.leads, began: time.Now(), keys: map[string]bool{}}
				client, err := sdk.NewClient(sdk.Config{Endpoint: "http://127.0.0.1:8470", HTTPClient: &http.Client{Transport: inProcess{f}}})
				if err != nil {
					t.Fatal(err)
				}
				ctx := t.Context()
				if c.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.within)
					defer cancel()
				}
				err = c.call(ctx, client)
				var status *api.Status
				if (err == nil) != c.ok || err != nil && (!errors.As(err, &status) || status.Reason != c.reason) {
					t.Errorf("%v, want success %t, or the follower's refusal", err, c.ok)
				}
				if took := time.Since(f.began); took > c.longest {
					t.Errorf("it takes %s, want %s at most", took, c.longest)
				}
				if (f.asked == 1) != c.once || f.asked > 8 || len(f.keys) != 1 {
					t.Errorf("asked %d times under %d keys, want one key, and once: %t", f.asked, len(f.keys), c.once)
				}
			})
		})
	}
}

// A second server that the client knows is asked at once, before any wait.
func TestAnotherServerIsAskedBeforeTheClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paused := &follower{reason: api.NotLeader, retryAfter: "1", leads: time.Hour, began: time.Now(), keys: map[string]bool{}}
		leads := &follower{began: time.Now(), keys: map[string]bool{}}
		both := inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Host, ":1") {
				paused.ServeHTTP(w, r)
				return
			}
			leads.ServeHTTP(w, r)
		})}
		client, err := sdk.NewClient(sdk.Config{Endpoint: "http://127.0.0.1:1,http://127.0.0.1:2", HTTPClient: &http.Client{Transport: both}})
		if err != nil {
			t.Fatal(err)
		}
		if err := remove(t.Context(), client); err != nil || paused.asked != 1 || leads.asked != 1 || time.Since(paused.began) > 2*time.Second {
			t.Errorf("%v after %s; asked %d and %d times, want each once", err, time.Since(paused.began), paused.asked, leads.asked)
		}
	})
}
