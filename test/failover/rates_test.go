package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

// counted is the standing of a tenant in the headers of an answer.
type counted struct {
	code, limit, remaining int
	retryAfter             string
	message                string
}

// caller sends requests of one token to coordinators.
type caller struct {
	t     *testing.T
	http  *http.Client
	token string
}

// ask sends a request. limit is -1 where the answer has no header of the limit.
func (k *caller) ask(ctx context.Context, at *cluster.Process, method, path, body string) counted {
	k.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, endpoints(at)+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := k.http.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	got := counted{code: answer.StatusCode, limit: -1, retryAfter: answer.Header.Get("Retry-After")}
	if limit := answer.Header.Get("X-RateLimit-Limit"); limit != "" {
		got.limit, _ = strconv.Atoi(limit)
		got.remaining, err = strconv.Atoi(answer.Header.Get("X-RateLimit-Remaining"))
		if err != nil {
			k.t.Errorf("X-RateLimit-Remaining: %v", err)
		}
	}
	var status api.Status
	if got.code >= 400 && json.Unmarshal(text, &status) == nil {
		got.message = status.Message
	}
	return got
}

// A tenant's limit is that of all coordinators together: each takes its share of the
// requests that arrive at it, and one that is passed on to the leader is counted where it
// arrived. A coordinator that has gone leaves its share to the others. Other tenants,
// administrators and /metrics are not counted with it.
func TestATenantsRateIsSharedByTheCoordinators(t *testing.T) {
	const limit, share = 90, 30
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 1, Quiet: true})
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	admin := client(t, c, c.Coordinators...)
	if _, err := admin.Tenants().Create(ctx, &api.Tenant{Kind: api.KindTenant, Metadata: api.ObjectMeta{Name: "ml"}, Spec: api.TenantSpec{RequestsPerMinute: limit}}); err != nil {
		t.Fatal(err)
	}
	newCaller := func(tenant string) *caller {
		made, err := admin.Tokens().Create(ctx, api.AccessTokenSpec{User: "ada", Role: api.RoleEditor, Tenant: tenant})
		if err != nil {
			t.Fatal(err)
		}
		return &caller{t, (&bearer{t: t, c: c}).client(), made.Status.Token}
	}
	ml, speech := newCaller("ml"), newCaller("speech")
	const read, trial = "/api/v1/namespaces/ml/allocations", `{"metadata":{"name":"a"},"spec":{"suspend":true,"resources":{"requests":{"cpu":"1"}}}}`

	// refilled bounds the requests that have come in since a time, of one share.
	refilled := func(since time.Time) int { return int(time.Since(since).Seconds()*share/60) + 1 }
	began := time.Now()
	for range 10 { // the leader decides each
		if got := ml.ask(ctx, followers[0], "POST", read+"?dryRun=All", trial); got.code != http.StatusOK || got.limit != limit {
			t.Fatalf("a dry run at a follower: %+v, want 200 and the limit %d", got, limit)
		}
	}
	if got := ml.ask(ctx, leader, "GET", read, ""); got.code != http.StatusOK || got.remaining != share-1 {
		t.Errorf("the leader, which has been sent one request and ten of a follower: %+v, want %d remaining", got, share-1)
	}
	if got := ml.ask(ctx, followers[0], "GET", read, ""); got.remaining < share-11 || got.remaining > share-11+refilled(began) {
		t.Errorf("the follower, which has been sent eleven: %+v, want %d remaining", got, share-11)
	}
	sent := map[string]int{leader.Name: 1, followers[0].Name: 11}
	for _, at := range c.Coordinators {
		var got counted
		for got = ml.ask(ctx, at, "GET", read, ""); got.code == http.StatusOK; got = ml.ask(ctx, at, "GET", read, "") {
			sent[at.Name]++
		}
		want := fmt.Sprintf("Rate limit exceeded. Tenant 'ml' limited to %d req/min. Each of the 3 live coordinators takes %d of them: ask another one, or again in %s s.", limit, share, got.retryAfter)
		if got.code != http.StatusTooManyRequests || got.limit != limit || got.remaining != 0 || got.message != want {
			t.Errorf("%s refuses with %+v, want %q", at.Name, got, want)
		}
		if n := sent[at.Name]; n < share || n > share+refilled(began) {
			t.Errorf("%s has taken %d requests in %s, want its share of %d", at.Name, n, time.Since(began), share)
		}
		if got := speech.ask(ctx, at, "GET", "/api/v1/namespaces/speech/allocations", ""); got.code != http.StatusOK {
			t.Errorf("%s refuses another tenant: %+v", at.Name, got)
		}
		for range 2 * share {
			if got := ml.ask(ctx, at, "GET", "/metrics", ""); got.code != http.StatusOK || got.limit != -1 {
				t.Fatalf("/metrics of %s: %+v, want 200 and no limit", at.Name, got)
			}
		}
	}
	for range limit {
		if _, err := admin.Tenants().Get(ctx, "ml"); err != nil {
			t.Fatalf("the administrator: %v", err)
		}
	}

	leader.Kill()
	c.AwaitLeader(epoch)
	at := followers[0]
	programs.Eventually(t, cluster.Patience, at.Name+" takes the half of the limit", func() error {
		got := ml.ask(ctx, at, "GET", read, "")
		if want := fmt.Sprintf("Each of the 2 live coordinators takes %d of them", limit/2); got.code != http.StatusTooManyRequests || !strings.Contains(got.message, want) {
			return fmt.Errorf("%+v, want %q", got, want)
		}
		return nil
	})
	t.Logf("requests of a tenant with %d in a minute, at three coordinators: %v", limit, sent)
}
