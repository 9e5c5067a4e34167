package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// pages serves count jobs in pages of at most most, and an empty page before
// each of them, as a selector that few jobs match makes them.
func pages(t *testing.T, count, most int) (*sdk.Client, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		q := r.URL.Query()
		from, skipped := 0, false
		if token := q.Get("continue"); token != "" {
			_, _ = fmt.Sscanf(token, "%d-%t", &from, &skipped)
		}
		list := api.JobList{Kind: "JobList", Metadata: api.ListMeta{ResourceVersion: strconv.Itoa(100 + from)}, Items: []api.Job{}}
		if !skipped {
			list.Metadata.Continue = fmt.Sprintf("%d-true", from)
		} else {
			limit := most
			if asked, err := strconv.Atoi(q.Get("limit")); err == nil {
				limit = min(limit, asked)
			}
			to := min(from+limit, count)
			for i := from; i < to; i++ {
				list.Items = append(list.Items, api.Job{Metadata: api.ObjectMeta{Name: fmt.Sprintf("j%d", i)}})
			}
			if to < count {
				list.Metadata.Continue = fmt.Sprintf("%d-false", to)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(s.Close)
	client, err := sdk.NewClient(sdk.Config{Endpoint: s.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return client, asked
}

func TestAListIsAskedForPageByPage(t *testing.T) {
	for name, c := range map[string]struct {
		limit int
		want  int
		more  bool
	}{
		"all":                       {0, 7, false},
		"fewer than a page":         {2, 2, true},
		"more than a page":          {5, 5, true},
		"as many as there are":      {7, 7, false},
		"more than there are":       {100, 7, false},
		"exactly two of the server": {6, 6, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := pages(t, 7, 3)
			list, err := client.Jobs("a").List(t.Context(), sdk.ListOptions{Limit: c.limit})
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if want := fmt.Sprintf("j%d", i); list.Items[i].Metadata.Name != want {
					t.Errorf("item %d is %s, want %s", i, list.Items[i].Metadata.Name, want)
				}
			}
			if len(list.Items) != c.want || (list.Metadata.Continue != "") != c.more || list.Metadata.ResourceVersion != "100" {
				t.Errorf("got %d items, continue %q, version %s; want %d items, more %t, version 100",
					len(list.Items), list.Metadata.Continue, list.Metadata.ResourceVersion, c.want, c.more)
			}
		})
	}
}

// A server that never gets on does not keep its client for ever.
func TestAListThatDoesNotGetOnIsAnError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"metadata":{"continue":"same"},"items":[]}`))
	}))
	defer s.Close()
	client, err := sdk.NewClient(sdk.Config{Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Nodes().List(t.Context(), sdk.ListOptions{}); err == nil {
		t.Error("the list has an end")
	}
}

func TestABusyServerIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		busy       int    // how often it refuses
		retryAfter string // with
		asked      int32
		ok         bool
	}{
		"it has room later":              {2, "0", 3, true},
		"it never has":                   {100, "0", 5, false},
		"it does not ask to come again":  {1, "", 1, false},
		"it asks to come again in words": {1, "Fri, 31 Dec 1999 23:59:59 GMT", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if int(asked.Add(1)) > c.busy {
					_, _ = w.Write([]byte("{}"))
					return
				}
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(http.StatusTooManyRequests)
				_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusTooManyRequests, "busy"))
			}))
			defer s.Close()
			client, err := sdk.NewClient(sdk.Config{Endpoint: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Jobs("a").Delete(t.Context(), "j", api.DeleteOptions{})
			var status *api.Status
			if asked.Load() != c.asked || (err == nil) != c.ok || err != nil && (!errors.As(err, &status) || status.Code != http.StatusTooManyRequests) {
				t.Errorf("asked %d times with %v, want %d times, ok %t", asked.Load(), err, c.asked, c.ok)
			}
		})
	}
}
