package enroll

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/resource"
)

// Limits of the certificates for a node with a certificate: each is a write in the store. A
// node with a clock far ahead asks without end.
const (
	renewalBurst = 10
	renewalEvery = time.Minute // for good; a twentieth of a shorter certificate's time
	// renewing bounds the remembered nodes.
	renewing = 16_384
)

// renewals are the nodes with recent renewals. Methods may be called by any goroutine.
type renewals struct {
	mu    sync.Mutex
	nodes map[resource.NodeID]*rate.Limiter
}

// take counts a renewal of a certificate, up to the limit. life is the time of
// the certificate.
func (r *renewals) take(node resource.NodeID, life time.Duration, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil || len(r.nodes) >= renewing {
		r.nodes = map[resource.NodeID]*rate.Limiter{}
	}
	limit := r.nodes[node]
	if limit == nil {
		limit = rate.NewLimiter(rate.Every(min(renewalEvery, life/20)), renewalBurst)
		r.nodes[node] = limit
	}
	if !limit.AllowN(now, 1) {
		return status.Errorf(codes.ResourceExhausted, "renew %s: more than %d certificates at once and one a minute; look at the clock of the host", node, renewalBurst)
	}
	return nil
}
