package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// register answers questions about the audit from a list of entries, two a page.
type register struct {
	mu      sync.Mutex
	entries []api.AuditEntry // newest first
	fails   []int            // codes of the next answers
	asked   []string         // the queries
	broken  []error          // of the next connections
	garbled bool             // answers are no documents
}

// RoundTrip implements http.RoundTripper.
func (r *register) RoundTrip(q *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.URL.Query().Get("person"))
	if len(r.broken) > 0 {
		err := r.broken[0]
		r.broken = r.broken[1:]
		return nil, err
	}
	if r.garbled {
		_, _ = w.WriteString("<html>not a list")
		return w.Result(), nil
	}
	if len(r.fails) > 0 {
		code := r.fails[0]
		r.fails = r.fails[1:]
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(api.Errorf(code, "fails"))
		return w.Result(), nil
	}
	since, _ := time.Parse(time.RFC3339, q.URL.Query().Get("since"))
	var list api.AuditEntryList
	for _, e := range r.entries {
		at, err := time.Parse(time.RFC3339, e.Time)
		if err != nil {
			return nil, err
		}
		switch after := q.URL.Query().Get("continue"); {
		case after != "" && e.ID >= after, at.Before(since):
		case len(list.Items) == 2:
			list.Metadata.Continue = list.Items[1].ID
		default:
			list.Items = append(list.Items, e)
		}
		if list.Metadata.Continue != "" {
			break
		}
	}
	_ = json.NewEncoder(w).Encode(list)
	return w.Result(), nil
}

// fail has the next answers be these codes.
func (r *register) fail(codes ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = codes
}

// add adds an entry of a request that began some time ago.
func (r *register) add(n int, ago time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now().Add(-ago).UTC()
	e := api.AuditEntry{ID: fmt.Sprintf("%d-%03d", at.UnixMilli(), n), Time: at.Format("2006-01-02T15:04:05.000Z07:00"), Name: fmt.Sprint("e", n)}
	r.entries = append(r.entries, e)
	slices.SortFunc(r.entries, func(a, b api.AuditEntry) int { return -1 * compare(a.ID, b.ID) })
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// FollowAudit yields each entry once, in the order in which entries are seen: also where
// pages are short, where an entry comes late, and where no coordinator answers for a
// while. A revoked token ends it.
func TestFollowAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &register{}
		for n := range 5 {
			r.add(n, time.Duration(10-n)*time.Second)
		}
		client, err := sdk.NewClient(sdk.Config{Endpoint: "https://coordinator", Token: "t", HTTPClient: &http.Client{Transport: r}})
		if err != nil {
			t.Fatal(err)
		}
		steps := []func(){
			func() { r.add(5, 0); r.add(6, 0) },
			func() { r.add(7, 30*time.Second) }, // its request took long
			func() { r.fail(503, 429) },
			func() {
				for n := 8; n < 13; n++ { // more than a page
					r.add(n, time.Second)
				}
			},
			func() { r.fail(401) },
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(500 * time.Millisecond) // a step is no part of a question's moment
			for _, step := range steps {
				time.Sleep(30 * time.Second) // of the bubble
				step()
			}
		}()
		var names []string
		for e, err := range client.FollowAudit(t.Context(), sdk.AuditOptions{Person: "ada", Limit: 3}) {
			var status *api.Status
			if errors.As(err, &status) && status.Code == 401 {
				names = append(names, "401")
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, e.Name)
		}
		<-done
		want := []string{"e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11", "e12", "401"}
		if !slices.Equal(names, want) {
			t.Errorf("got  %v\nwant %v", names, want)
		}
		if i := slices.IndexFunc(r.asked, func(person string) bool { return person != "ada" }); i >= 0 {
			t.Errorf("question %d had another filter", i)
		}
	})
}

// An interrupted follower ends with the error of its context.
func TestFollowAuditEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := sdk.NewClient(sdk.Config{Endpoint: "https://coordinator", Token: "t", HTTPClient: &http.Client{Transport: &register{}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for e, err := range client.FollowAudit(ctx, sdk.AuditOptions{}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v, %v", e, err)
			}
		}
	})
}

// timeout is the error of a dial that takes too long: net's timeouts are
// DeadlineExceeded, as the end of a context is.
func timeout() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("i/o timeout: %w", context.DeadlineExceeded)}
}

// A connection that takes too long does not end the follower; an answer that is no list
// does. Without a limit the first page has 100 entries.
func TestFollowAuditAfterABrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &register{}
		for n := range 120 {
			r.add(n, time.Duration(130-n)*time.Second)
		}
		client, err := sdk.NewClient(sdk.Config{Endpoint: "https://coordinator", Token: "t", HTTPClient: &http.Client{Transport: r}})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for e, err := range client.FollowAudit(t.Context(), sdk.AuditOptions{Person: "ada"}) {
			if err != nil {
				if !r.garbled || !strings.Contains(err.Error(), "not what was asked for") {
					t.Errorf("ended by %v", err)
				}
				break
			}
			switch names = append(names, e.Name); len(names) {
			case 100:
				r.add(120, 0)
				r.broken = []error{timeout(), timeout(), errors.New("connection reset")}
			case 101:
				r.garbled = true
			}
		}
		if len(names) != 101 || names[0] != "e20" || names[100] != "e120" {
			t.Errorf("%d entries, the first %v", len(names), names[:min(3, len(names))])
		}
	})
}
