package gate_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// noon is the time of the specification's example.
var noon = time.Unix(1705312500, 0)

func of(tenant, user string) service.Principal {
	return service.Principal{Name: user, Tenant: resource.TenantID(tenant), Grants: []service.Grant{{Role: service.Editor, Tenant: resource.TenantID(tenant)}}}
}

var root = service.Principal{Name: "root", Admin: true}

// spend sends n requests at once and returns the last answer.
func spend(r *gate.Rates, p service.Principal, n int, at time.Time) (s gate.Standing, refused *api.Status) {
	for range n {
		s, refused = r.Take(p, at)
	}
	return s, refused
}

func TestRequestsBeyondTheLimitAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		requests, own, live int
		caller              service.Principal
		sent                int
		after               time.Duration // before the last request
		want                string        // of the last request; "" is let in
		retry, remaining    int
	}{
		"the last request of the minute":         {requests: 1000, live: 1, caller: of("ml-team", "ada"), sent: 1000},
		"the specification's sentence":           {requests: 1000, live: 1, caller: of("ml-team", "ada"), sent: 1001, want: "Rate limit exceeded. Tenant 'ml-team' limited to 1000 req/min.", retry: 1},
		"a limit of the tenant's own":            {requests: 1000, own: 10, live: 1, caller: of("ml-team", "ada"), sent: 11, want: "Rate limit exceeded. Tenant 'ml-team' limited to 10 req/min.", retry: 6},
		"two in a minute":                        {requests: 2, live: 1, caller: of("ml-team", "ada"), sent: 3, want: "Rate limit exceeded. Tenant 'ml-team' limited to 2 req/min.", retry: 30},
		"half a minute later":                    {requests: 2, live: 1, caller: of("ml-team", "ada"), sent: 3, after: 30 * time.Second},
		"a moment too early":                     {requests: 2, live: 1, caller: of("ml-team", "ada"), sent: 3, after: 29 * time.Second, want: "Rate limit exceeded. Tenant 'ml-team' limited to 2 req/min.", retry: 1},
		"two of three coordinators would do":     {requests: 1000, live: 3, caller: of("ml-team", "ada"), sent: 334},
		"a third of the limit":                   {requests: 1000, live: 3, caller: of("ml-team", "ada"), sent: 335, want: "Rate limit exceeded. Tenant 'ml-team' limited to 1000 req/min. Each of the 3 live coordinators takes 334 of them: ask another one, or again in 1 s.", retry: 1},
		"fewer requests than coordinators":       {requests: 2, live: 5, caller: of("ml-team", "ada"), sent: 2, want: "Rate limit exceeded. Tenant 'ml-team' limited to 2 req/min. Each of the 5 live coordinators takes 1 of them: ask another one, or again in 60 s.", retry: 60},
		"coordinators that are not known yet":    {requests: 1000, live: 0, caller: of("ml-team", "ada"), sent: 1000},
		"a user without a tenant":                {requests: 5, live: 1, caller: service.Principal{Name: "olga", Grants: []service.Grant{{Role: service.Operator}}}, sent: 6, want: "Rate limit exceeded. User 'olga' limited to 5 req/min.", retry: 12},
		"an administrator":                       {requests: 5, live: 1, caller: root, sent: 10_000},
		"no limit":                               {requests: 0, live: 1, caller: of("ml-team", "ada"), sent: 100_000},
		"no limit, but for this tenant":          {requests: 0, own: 1, live: 1, caller: of("ml-team", "ada"), sent: 2, want: "Rate limit exceeded. Tenant 'ml-team' limited to 1 req/min.", retry: 60},
		"remaining requests are counted down":    {requests: 1000, live: 1, caller: of("ml-team", "ada"), sent: 400, remaining: 600},
		"remaining requests of one coordinator":  {requests: 1000, live: 2, caller: of("ml-team", "ada"), sent: 400, remaining: 100},
		"another minute brings everything again": {requests: 1000, live: 1, caller: of("ml-team", "ada"), sent: 1001, after: time.Minute, remaining: 999},
	} {
		t.Run(name, func(t *testing.T) {
			r := &gate.Rates{Requests: c.requests, Of: func(resource.TenantID) int { return c.own }, Live: func() int { return c.live }}
			_, _ = spend(r, c.caller, c.sent-1, noon)
			got, refused := r.Take(c.caller, noon.Add(c.after))
			switch {
			case c.want == "" && refused != nil:
				t.Errorf("refused: %v", refused)
			case c.want != "" && (refused == nil || refused.Message != c.want || refused.Code != 429 || refused.Reason != "TooManyRequests" || refused.RetryAfterSeconds != c.retry):
				t.Errorf("got %+v, want %q and Retry-After %d", refused, c.want, c.retry)
			}
			if c.remaining != 0 && got.Remaining != c.remaining {
				t.Errorf("%d remain, want %d", got.Remaining, c.remaining)
			}
		})
	}
}

// All users and tokens of a tenant spend one limit, and no other tenant's.
func TestATenantHasOneLimit(t *testing.T) {
	r := &gate.Rates{Requests: 2}
	_, _ = r.Take(of("vision", "ada"), noon)
	_, _ = r.Take(of("vision", "bob"), noon)
	if _, refused := r.Take(of("vision", "cyd"), noon); refused == nil {
		t.Error("a third user of the tenant was let in")
	}
	if _, refused := r.Take(of("speech", "ada"), noon); refused != nil {
		t.Errorf("another tenant: %v", refused)
	}
}

// The headers are those of the specification.
func TestTheHeadersOfAStanding(t *testing.T) {
	r := &gate.Rates{Requests: 1000}
	s, _ := spend(r, of("ml-team", "ada"), 1001, noon)
	want := map[string]string{"X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1705312560"}
	if got := maps.Collect(s.Headers); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := maps.Collect(gate.Standing{}.Headers); len(got) != 0 {
		t.Errorf("without a limit there are %v", got)
	}
}

// A limit that changes counts from the next request on.
func TestALimitMayChange(t *testing.T) {
	own, live := 10, 1
	r := &gate.Rates{Requests: 1000, Of: func(resource.TenantID) int { return own }, Live: func() int { return live }}
	p := of("vision", "ada")
	_, _ = spend(r, p, 10, noon)
	if _, refused := r.Take(p, noon); refused == nil {
		t.Fatal("the eleventh was let in")
	}
	own = 6_000 // a hundred in a second
	_, _ = r.Take(p, noon)
	if s, refused := r.Take(p, noon.Add(10*time.Millisecond)); refused != nil || s.Limit != 6_000 {
		t.Errorf("after the limit grew: %+v, %v", s, refused)
	}
	_, _ = spend(r, p, 1, noon.Add(2*time.Minute))
	live = 6_000
	if s, refused := r.Take(p, noon.Add(2*time.Minute)); refused != nil || s.Remaining != 0 {
		t.Errorf("after more coordinators came: %+v, %v", s, refused)
	}
}

// No minute has more requests than twice the limit: those that were saved, and those
// that came in meanwhile. From a minute of no request on, all of the limit is there.
func TestNoMinuteHasMoreThanItsRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 50).Draw(t, "limit")
		live := rapid.IntRange(1, 4).Draw(t, "live")
		share := (limit + live - 1) / live
		r := &gate.Rates{Requests: limit, Live: func() int { return live }}
		var let []time.Time
		now := noon
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "pause")) * time.Millisecond)
			s, refused := r.Take(of("t", "u"), now)
			if refused == nil {
				let = append(let, now)
			} else if _, early := r.Take(of("t", "u"), now.Add(time.Duration(refused.RetryAfterSeconds)*time.Second)); early != nil {
				t.Fatalf("after the Retry-After of %d s: %v", refused.RetryAfterSeconds, early)
			} else {
				now = now.Add(time.Duration(refused.RetryAfterSeconds) * time.Second)
				let = append(let, now)
			}
			if s.Remaining < 0 || s.Remaining > share {
				t.Fatalf("%d remain of %d", s.Remaining, share)
			}
			n := 0
			for _, at := range let {
				if now.Sub(at) < time.Minute {
					n++
				}
			}
			if n > 2*share+1 {
				t.Fatalf("%d requests in one minute, the share is %d", n, share)
			}
		}
	})
}

// An address that guesses tokens is limited; so many addresses that nobody could count
// them one by one are limited together, and take bounded memory.
func TestAddressesWithoutATokenAreLimited(t *testing.T) {
	r := &gate.Rates{}
	for range 6_000 {
		if _, refused := r.TakeAnonymous("192.0.2.1", noon); refused != nil {
			t.Fatal(refused)
		}
	}
	_, refused := r.TakeAnonymous("192.0.2.1", noon)
	if want := "Rate limit exceeded. Address '192.0.2.1' without a valid token limited to 6000 req/min."; refused == nil || refused.Message != want {
		t.Errorf("got %v, want %q", refused, want)
	}
	for i := range 16_384 + 6_000 {
		if _, refused = r.TakeAnonymous(fmt.Sprintf("2001:db8:%x::", i), noon); refused != nil {
			break
		}
	}
	if want := "Rate limit exceeded. All addresses without a valid token beyond the first 16384 are together limited to 6000 req/min."; refused == nil || refused.Message != want {
		t.Errorf("many addresses: got %v, want %q", refused, want)
	}
	if _, refused := r.TakeAnonymous("192.0.2.77", noon.Add(2*time.Minute)); refused != nil {
		t.Errorf("two minutes later: %v", refused)
	}
	if _, refused := r.Take(of("vision", "ada"), noon); refused != nil {
		t.Errorf("a tenant beside the addresses: %v", refused)
	}
}

func BenchmarkTake(b *testing.B) {
	r := &gate.Rates{Requests: gate.MaxRequests, Live: func() int { return 3 }}
	p := of("vision", "ada")
	now := noon
	for b.Loop() {
		now = now.Add(time.Microsecond)
		_, _ = r.Take(p, now)
	}
}
