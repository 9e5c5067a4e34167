package gate

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// DefaultRequests is the number of requests that a tenant may send in a minute where
// nothing else is configured.
const DefaultRequests = 60_000

// MaxRequests bounds the number of requests in a minute that may be configured.
const MaxRequests = api.MaxRequestsPerMinute

const (
	// anonymousRequests is the number of requests in a minute that one address may
	// send without a valid token: the probes of a load balancer are far below.
	anonymousRequests = 6_000
	// mostAddresses bounds the addresses that are counted one by one. All further
	// addresses share one count.
	mostAddresses = 16_384
	// sweepFrom is the number of counts from which on those that stand still are
	// forgotten, at most once in sweepEvery.
	sweepFrom  = 1_024
	sweepEvery = time.Minute
)

// Rates counts requests: of a tenant, of a user without a tenant, and of an address
// without a valid token. Each count is a token bucket (golang.org/x/time/rate) that
// holds the requests of one minute and is filled evenly. A coordinator takes its share
// of a tenant's limit: the limit divided by the coordinators that are live. Rates may
// be used by several goroutines.
type Rates struct {
	// Requests is the limit of a tenant that has none of its own, in requests in a
	// minute; 0 is no limit.
	Requests int
	// Of returns the limit of a tenant; 0 where the tenant has none of its own. nil: no
	// tenant has. It must not block.
	Of func(resource.TenantID) int
	// Live is the number of live coordinators; nil = 1. It must not block.
	Live func() int

	mu sync.Mutex
	// buckets has no more elements than there are tenants and users with tokens, and
	// mostAddresses.
	buckets   map[party]*rate.Limiter
	addresses int // of buckets
	swept     time.Time
}

// party is a counted party: one field is set. The zero value is all addresses beyond
// mostAddresses.
type party struct {
	tenant  resource.TenantID
	user    string
	address string
}

// partyOf is the tenant of a caller, or the user without a tenant.
func partyOf(p service.Principal) party {
	if p.Tenant == "" {
		return party{user: cmp.Or(p.Name, p.Token)}
	}
	return party{tenant: p.Tenant}
}

// String begins the sentence of a refusal.
func (p party) String() string {
	switch {
	case p.tenant != "":
		return "Tenant '" + string(p.tenant) + "'"
	case p.user != "":
		return "User '" + p.user + "'"
	case p.address != "":
		return "Address '" + p.address + "' without a valid token"
	}
	return "All addresses without a valid token beyond the first " + strconv.Itoa(mostAddresses) + " are together"
}

// Standing is the count of a party after one of its requests, as the headers of the
// answer have it. The zero value is that of a party without a limit.
type Standing struct {
	// Limit is the number of requests in a minute at all coordinators together.
	Limit int
	// Remaining is the number of requests that this coordinator takes at once.
	Remaining int
	// Reset is the time when Remaining is as great as it can be, in Unix seconds.
	Reset int64
}

// Headers are the names of the headers that carry a Standing, as the specification
// writes them, and their values; none for the zero Standing.
func (s Standing) Headers(yield func(name, value string) bool) {
	if s.Limit == 0 {
		return
	}
	_ = yield("X-RateLimit-Limit", strconv.Itoa(s.Limit)) &&
		yield("X-RateLimit-Remaining", strconv.Itoa(s.Remaining)) &&
		yield("X-RateLimit-Reset", strconv.FormatInt(s.Reset, 10))
}

// Take counts a request of a caller with a valid token, and refuses the request that is
// beyond the caller's limit. Administrators have no limit.
func (r *Rates) Take(p service.Principal, now time.Time) (Standing, *api.Status) {
	if p.Everywhere(service.Admins) {
		return Standing{}, nil
	}
	of, limit, live := r.limitOf(p)
	if limit == 0 || of == (party{}) {
		return Standing{}, nil
	}
	return r.take(of, limit, live, now)
}

// limitOf is the party of a caller, its limit, and the number of live coordinators.
func (r *Rates) limitOf(p service.Principal) (of party, limit, live int) {
	of, limit, live = partyOf(p), r.Requests, 1
	if p.Tenant != "" && r.Of != nil {
		limit = cmp.Or(r.Of(p.Tenant), limit)
	}
	if r.Live != nil {
		live = max(1, r.Live())
	}
	return of, limit, live
}

// TakeAnonymous counts a request without a valid token, by the address that it came
// from: an IPv4 address, or a network of IPv6. Every coordinator counts for itself.
func (r *Rates) TakeAnonymous(address string, now time.Time) (Standing, *api.Status) {
	return r.take(party{address: address}, anonymousRequests, 1, now)
}

func (r *Rates) take(of party, limit, live int, now time.Time) (Standing, *api.Status) {
	share := (limit + live - 1) / live
	bucket := r.bucket(&of, share, now)
	taken := bucket.AllowN(now, 1)
	left := bucket.TokensAt(now)
	perSecond := float64(bucket.Limit())
	s := Standing{
		Limit: limit, Remaining: max(0, int(left)),
		Reset: now.Add(time.Duration((float64(share) - left) / perSecond * float64(time.Second))).Add(time.Second - 1).Unix(),
	}
	if taken {
		return s, nil
	}
	return s, refusal(of, limit, share, live, max(1, int(math.Ceil((1-left)/perSecond))))
}

// refusal is the specification's sentence. Where several coordinators share the limit,
// a second sentence says how much of it this one takes.
func refusal(of party, limit, share, live, after int) *api.Status {
	text := fmt.Sprintf("Rate limit exceeded. %s limited to %d req/min.", of, limit)
	if live > 1 {
		text += fmt.Sprintf(" Each of the %d live coordinators takes %d of them: ask another one, or again in %d s.", live, share, after)
	}
	status := api.Errorf(http.StatusTooManyRequests, "%s", text)
	status.RetryAfterSeconds = after
	return status
}

// bucket is the bucket of a party, made if need be, with the present share. Where too
// many addresses are counted, of becomes the party of all further ones.
func (r *Rates) bucket(of *party, share int, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	b := r.buckets[*of]
	if b == nil && of.address != "" && r.addresses >= mostAddresses {
		*of = party{}
		b = r.buckets[*of]
	}
	if b == nil {
		b = rate.NewLimiter(perMinute(share), share)
		if r.buckets == nil {
			r.buckets = map[party]*rate.Limiter{}
		}
		r.buckets[*of] = b
		if of.address != "" {
			r.addresses++
		}
	}
	if b.Burst() != share {
		b.SetBurstAt(now, share)
		b.SetLimitAt(now, perMinute(share))
	}
	return b
}

func perMinute(n int) rate.Limit { return rate.Limit(float64(n) / 60) }

// sweep forgets the buckets that are full: a new bucket is full as well. r.mu is held.
func (r *Rates) sweep(now time.Time) {
	if len(r.buckets) < sweepFrom || now.Sub(r.swept) < sweepEvery {
		return
	}
	r.swept = now
	for of, b := range r.buckets {
		if b.TokensAt(now) < float64(b.Burst()) {
			continue
		}
		delete(r.buckets, of)
		if of.address != "" {
			r.addresses--
		}
	}
}
