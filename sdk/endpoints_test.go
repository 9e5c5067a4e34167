package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

func TestSeveralServersAreAskedInTurn(t *testing.T) {
	type server struct {
		code int // 0: not there
	}
	for name, c := range map[string]struct {
		servers []server
		call    func(context.Context, *sdk.Client) error
		asked   []int // how often each is asked
		code    int   // of the answer
	}{
		"the first that is there answers":      {[]server{{0}, {200}, {200}}, get, []int{0, 1, 0}, 0},
		"a read goes on where one is away":     {[]server{{503}, {502}, {200}}, get, []int{1, 1, 1}, 0},
		"a create goes on too, under its key":  {[]server{{503}, {200}}, create, []int{1, 1}, 0},
		"a delete is asked once":               {[]server{{503}, {200}}, remove, []int{1, 0}, 503},
		"a delete that was never sent is":      {[]server{{0}, {200}}, remove, []int{0, 1}, 0},
		"a refusal is everybody's":             {[]server{{404}, {200}}, get, []int{1, 0}, 404},
		"the last refusal stands for them all": {[]server{{503}, {503}}, get, []int{1, 1}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make([]int, len(c.servers))
			var endpoints []string
			for i, s := range c.servers {
				if s.code == 0 {
					endpoints = append(endpoints, "http://127.0.0.1:1") // nobody is given this port
					continue
				}
				h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					asked[i]++
					w.WriteHeader(s.code)
					if s.code > 299 {
						_ = json.NewEncoder(w).Encode(api.Errorf(s.code, "no"))
						return
					}
					_, _ = w.Write([]byte("{}"))
				}))
				defer h.Close()
				endpoints = append(endpoints, h.URL)
			}
			client, err := sdk.NewClient(sdk.Config{Endpoint: strings.Join(endpoints, ", "), Token: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			err = c.call(t.Context(), client)
			var status *api.Status
			if errors.As(err, &status); status == nil && (err != nil || c.code != 0) || status != nil && status.Code != c.code {
				t.Errorf("%v, want code %d", err, c.code)
			}
			for i := range asked {
				if asked[i] != c.asked[i] {
					t.Errorf("asked %v times, want %v", asked, c.asked)
					break
				}
			}
		})
	}
}

// TestWhoAnsweredLastIsAskedFirst: a server that is away costs one attempt, not
// one for each call.
func TestWhoAnsweredLastIsAskedFirst(t *testing.T) {
	var asked []string
	serve := func(name string, code *int) string {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked = append(asked, name)
			w.WriteHeader(*code)
			_, _ = w.Write([]byte("{}"))
		}))
		t.Cleanup(h.Close)
		return h.URL
	}
	one, two := 503, 200
	endpoints := []string{serve("one", &one), serve("two", &two)}
	client, err := sdk.NewClient(sdk.Config{Endpoint: strings.Join(endpoints, ","), Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		one, two int
		asked    string
		endpoint string
	}{
		{503, 200, "one two", endpoints[1]},
		{503, 200, "two", endpoints[1]},
		{200, 200, "two", endpoints[1]}, // no reason to leave it
		{200, 503, "two one", endpoints[0]},
		{200, 200, "one", endpoints[0]},
	} {
		asked, one, two = nil, want.one, want.two
		if err := get(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, " "); got != want.asked || client.Endpoint() != want.endpoint {
			t.Errorf("call %d asks %s, then %s is first; want %s and %s", i+1, got, client.Endpoint(), want.asked, want.endpoint)
		}
	}
}

func get(ctx context.Context, c *sdk.Client) error {
	_, err := c.Allocations("default").Get(ctx, "a", sdk.GetOptions{})
	return err
}

func create(ctx context.Context, c *sdk.Client) error {
	_, err := c.Allocations("default").Create(ctx, &api.Allocation{}, sdk.CreateOptions{})
	return err
}

func remove(ctx context.Context, c *sdk.Client) error {
	_, err := c.Allocations("default").Delete(ctx, "a", api.DeleteOptions{})
	return err
}
