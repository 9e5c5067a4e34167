package sdk_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// limited refuses requests until a time.
type limited struct {
	until time.Time
	after int // of Retry-After, in seconds
	asked []time.Time
}

const sentence = "Rate limit exceeded. Tenant 'ml-team' limited to 1000 req/min."

func (l *limited) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.asked = append(l.asked, time.Now())
	if !time.Now().Before(l.until) {
		_, _ = w.Write([]byte("{}"))
		return
	}
	w.Header().Set("Retry-After", strconv.Itoa(l.after))
	w.WriteHeader(http.StatusTooManyRequests)
	_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusTooManyRequests, "%s", sentence))
}

// A client beyond its rate comes again, never before the time that the server has
// asked for, and says once for each wait why it waits.
func TestAClientBeyondItsRateWaitsAsLongAsItIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration
		after int
		asked int
		ok    bool
	}{
		"a second":                              {until: time.Second, after: 1, asked: 2, ok: true},
		"ten seconds":                           {until: 10 * time.Second, after: 10, asked: 2, ok: true},
		"longer than the client waits":          {until: time.Hour, after: 1, asked: 5},
		"the server asks for too much patience": {until: time.Hour, after: 11, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &limited{until: time.Now().Add(c.until), after: c.after}
				var told []string
				client, err := sdk.NewClient(sdk.Config{
					Endpoint: "http://127.0.0.1:8470", HTTPClient: &http.Client{Transport: inProcess{server}},
					Warnings: func(_ int, _, text string) { told = append(told, text) },
				})
				if err != nil {
					t.Fatal(err)
				}
				err = remove(t.Context(), client)
				var status *api.Status
				if (err == nil) != c.ok || err != nil && (!errors.As(err, &status) || status.Message != sentence) {
					t.Errorf("%v, want success: %t", err, c.ok)
				}
				if len(server.asked) != c.asked || len(told) != c.asked-1 || slices.ContainsFunc(told, func(text string) bool { return text != sentence }) {
					t.Errorf("asked %d times, want %d, and a word before each but the first: %q", len(server.asked), c.asked, told)
				}
				for i := 1; i < len(server.asked); i++ {
					if pause := server.asked[i].Sub(server.asked[i-1]); pause < time.Duration(c.after)*time.Second {
						t.Errorf("asked again after %s, the server asked for %d s", pause, c.after)
					}
				}
			})
		})
	}
}

// Each coordinator takes its share of a tenant's requests: a client that knows several
// asks the next one at once.
func TestAClientBeyondTheShareOfOneServerAsksAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, free := &limited{until: time.Now().Add(time.Hour), after: 1}, &limited{}
		both := inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Port() == "1" || r.Host == "127.0.0.1:1" {
				full.ServeHTTP(w, r)
				return
			}
			free.ServeHTTP(w, r)
		})}
		client, err := sdk.NewClient(sdk.Config{Endpoint: "http://127.0.0.1:1,http://127.0.0.1:2", HTTPClient: &http.Client{Transport: both}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 2 {
			if err := remove(t.Context(), client); err != nil {
				t.Fatal(err)
			}
		}
		if len(full.asked) != 1 || len(free.asked) != 2 || time.Since(began) != 0 {
			t.Errorf("the full server was asked %d times, the free one %d times, in %s", len(full.asked), len(free.asked), time.Since(began))
		}
	})
}
