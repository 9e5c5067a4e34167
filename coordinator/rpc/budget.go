package rpc

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/resource"
)

// Budget bounds the calls of one node at one coordinator: so many at once, and
// then so many a second. An honest agent stays far below each, after a restart
// and after an election too.
type Budget struct {
	// Name is the budget's name in errors and logs, the plural of the calls
	// that it counts.
	Name   string
	Burst  int
	Second rate.Limit
}

// The budgets of a node. Fences, registrations, leases and conditions write to
// the store; the others read it, or ask the leader.
var (
	// Fences: after an election an agent fences its reservations, at most one
	// transaction per grant in flight. An invented transaction leaves a record
	// of about 300 bytes: half a fence a second is 13 MB a day.
	Fences        = Budget{"fences of absent transactions", 512, 0.5}
	Registrations = Budget{"registrations", 60, 1}
	Leases        = Budget{"new leases", 30, 1}
	Conditions    = Budget{"writes of conditions", 10, 0.2}
	Heartbeat     = Budget{"heartbeats", 100, 20}
	Resolutions   = Budget{"resolutions", 4096, 200}
	Reads         = Budget{"reads of its records", 60, 2}
	Evictions     = Budget{"evictions", 64, 4}
)

// maxSpenders bounds the nodes whose spending is remembered. Callers prove which
// node they are, so there are no more than are enrolled; without TLS a host may
// claim any name.
const maxSpenders = 16 << 10

// idleAfter is when a node's spending is forgotten: by then every budget is full
// again, but for fences, of which a third is.
const idleAfter = 10 * time.Minute

// spending counts the nodes' use of their budgets. The zero value is ready;
// methods may be called by any goroutine.
type spending struct {
	mu       sync.Mutex
	spenders map[resource.NodeID]*spender
	sweptAt  time.Time // of idle spenders
}

type spender struct {
	last     time.Time
	limiters map[string]*rate.Limiter
	told     map[string]time.Time // by budget: when its end was last logged
}

// allow takes one call from a node's budget; tell means that a refusal is to be
// logged, once a minute per budget.
func (s *spending) allow(node resource.NodeID, b Budget, now time.Time) (ok, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.spenders[node]
	if at == nil {
		at = s.admit(node, now)
	}
	at.last = now
	limiter := at.limiters[b.Name]
	if limiter == nil {
		limiter = rate.NewLimiter(b.Second, b.Burst)
		at.limiters[b.Name] = limiter
	}
	if limiter.AllowN(now, 1) {
		return true, false
	}
	if now.Sub(at.told[b.Name]) < time.Minute && !at.told[b.Name].IsZero() {
		return false, false
	}
	at.told[b.Name] = now
	return false, true
}

// admit begins to count for a node. Where too many are remembered, the idle
// ones are forgotten; if none is, all further nodes share one budget.
func (s *spending) admit(node resource.NodeID, now time.Time) *spender {
	if s.spenders == nil {
		s.spenders = map[resource.NodeID]*spender{}
	}
	if len(s.spenders) >= maxSpenders && now.Sub(s.sweptAt) > time.Minute {
		s.sweptAt = now
		for id, at := range s.spenders {
			if now.Sub(at.last) > idleAfter {
				delete(s.spenders, id)
			}
		}
	}
	if len(s.spenders) >= maxSpenders {
		node = "" // no node has this name
	}
	at := s.spenders[node]
	if at == nil {
		at = &spender{limiters: map[string]*rate.Limiter{}, told: map[string]time.Time{}}
		s.spenders[node] = at
	}
	return at
}

// spend takes one act from a node's budget, or returns ResourceExhausted, which
// names the budget. over, if not nil, is called with each refusal.
func (s *spending) spend(node resource.NodeID, b Budget, log *slog.Logger, over func(resource.NodeID, Budget)) error {
	ok, tell := s.allow(node, b, time.Now())
	if ok {
		return nil
	}
	if tell {
		log.Warn("node_over_budget", "node", node, "budget", b.Name, "at_once", b.Burst, "a_second", float64(b.Second))
	}
	if over != nil {
		over(node, b)
	}
	return status.Error(codes.ResourceExhausted, fmt.Sprintf("node %s: more %s than its budget of %d at once and %g a second; try again later", node, b.Name, b.Burst, float64(b.Second)))
}
