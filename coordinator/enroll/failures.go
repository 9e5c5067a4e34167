package enroll

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Limits of refused enrolments. An address that has not been refused lately is
// never limited, so that nobody can keep honest hosts out by failing.
const (
	perAddress   = rate.Limit(1.0 / 3) // refusals of one address per second, for good
	addressBurst = 10
	perToken     = rate.Limit(1.0 / 6) // refusals that name one token id, from all addresses
	tokenBurst   = 10
	inAll        = rate.Limit(20)
	allBurst     = 100
	// failing bounds the addresses, and the token ids, that are remembered.
	failing = 4096
	// logEvery is the least time between two log lines about one address.
	logEvery = 10 * time.Second
)

// failures remembers refused enrolments. Methods may be called by any goroutine.
type failures struct {
	refused *prometheus.CounterVec // by reason

	mu        sync.Mutex
	all       *rate.Limiter
	addresses map[string]*failer
	tokens    map[string]*rate.Limiter
}

// failer is an address that was refused.
type failer struct {
	limit  *rate.Limiter
	logged time.Time
	silent int // refusals since then without a line
}

func newFailures(r prometheus.Registerer) *failures {
	f := &failures{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_coordinator_enrollments_refused_total",
			Help: "Refused enrolments, by reason: cluster, request, token, denied, exists, limited.",
		}, []string{"reason"}),
		all: rate.NewLimiter(inAll, allBurst), addresses: map[string]*failer{}, tokens: map[string]*rate.Limiter{},
	}
	if r != nil {
		r.MustRegister(f.refused)
	}
	return f
}

// wait returns how long a caller has to wait before it is judged again, 0 for
// none. from is "" for callers without an address: they are never limited.
func (f *failures) wait(from, token string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.addresses[from]
	if a == nil {
		return 0
	}
	longest := max(waitOf(a.limit, now), waitOf(f.all, now))
	if t := f.tokens[token]; t != nil {
		longest = max(longest, waitOf(t, now))
	}
	return longest
}

// waitOf is the time until a limiter has one event left.
func waitOf(l *rate.Limiter, now time.Time) time.Duration {
	if left := l.TokensAt(now); left < 1 {
		return time.Duration(float64(time.Second)*(1-left)/float64(l.Limit())) + time.Millisecond
	}
	return 0
}

// add counts a refusal.
func (f *failures) add(from, token string, now time.Time) {
	if from == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.addresses[from]
	if a == nil {
		makeRoom(f.addresses, func(a *failer) bool { return a.limit.TokensAt(now) >= addressBurst })
		a = &failer{limit: rate.NewLimiter(perAddress, addressBurst)}
		f.addresses[from] = a
	}
	a.limit.AllowN(now, 1)
	f.all.AllowN(now, 1)
	if token == "" {
		return
	}
	t := f.tokens[token]
	if t == nil {
		makeRoom(f.tokens, func(l *rate.Limiter) bool { return l.TokensAt(now) >= tokenBurst })
		t = rate.NewLimiter(perToken, tokenBurst)
		f.tokens[token] = t
	}
	t.AllowN(now, 1)
}

// makeRoom removes the entries that have no refusal left to remember from a map
// that is full, or any one of them.
func makeRoom[V any](m map[string]V, idle func(V) bool) {
	if len(m) < failing {
		return
	}
	for key, v := range m {
		if idle(v) {
			delete(m, key)
		}
	}
	for key := range m {
		if len(m) < failing {
			return
		}
		delete(m, key)
	}
}

// line reports whether a refusal is to be logged, and how many of the same
// address were not since the last line.
func (f *failures) line(from string, now time.Time) (silent int, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.addresses[from]
	if a == nil {
		return 0, from == ""
	}
	if now.Sub(a.logged) < logEvery {
		a.silent++
		return 0, false
	}
	silent, a.silent, a.logged = a.silent, 0, now
	return silent, true
}

// refused counts and logs a refusal; err is nil where the caller is limited.
func (s *Service) refused(from, node, reason string, err error) {
	s.failures.refused.WithLabelValues(reason).Inc()
	if silent, yes := s.failures.line(from, time.Now()); yes {
		if len(node) > 63 {
			node = node[:63] + "…"
		}
		s.log.Warn("enrolment_refused", "from", from, "node", node, "reason", reason, "not_logged_before", silent, "error", err)
	}
}

// reasonOf is the reason of a refusal, for the metric.
func reasonOf(err error) string {
	switch status.Code(err) {
	case codes.FailedPrecondition:
		return "cluster"
	case codes.InvalidArgument:
		return "request"
	case codes.Unauthenticated:
		return "token"
	case codes.AlreadyExists:
		return "exists"
	}
	return "denied"
}

// isPassing reports whether a failure says nothing about the caller: the store
// did not answer, or the caller went away.
func isPassing(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.DataLoss, codes.Internal:
		return true
	}
	return false
}

// addressOf is the address that a call comes from, of IPv6 its /64: a host has
// all of it. It is "" for calls within this process.
func addressOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap()
	if ip.Is6() {
		if prefix, err := ip.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return ip.String()
}
