package gate

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Work is the cost of a request in units, beside the count of requests (Rates). A unit is
// about the work for a member of a job, or for 1 KiB of a document.
type Work int64

// The costs.
const (
	// perYAML is the cost of 1 KiB of YAML: a conversion takes many times the work of JSON.
	perYAML Work = 8
	// workPerSecond comes back to a tenant in a second, and workSaved is the most of a
	// tenant at once. A tenant with a limit above DefaultRequests has as many times
	// more, and each coordinator gives a share of both.
	workPerSecond = 1_000
	workSaved     = 10_000
	// Requests of a cost of heavy or more are decided on singly for each tenant, and at most
	// mostHeavy of all tenants at a time.
	heavy     Work = 256
	mostHeavy      = 4
)

// OfJSON is the cost of a document of a length in bytes.
func OfJSON(bytes int) Work { return Work((bytes + 1023) / 1024) }

// OfYAML is OfJSON with a conversion.
func OfYAML(bytes int) Work { return perYAML * OfJSON(bytes) }

// works is the units left to each party. A party without units waits until the debt of the
// last request is paid: a single request may cost more than a party has.
type works struct {
	mu    sync.Mutex
	left  map[party]worked
	swept time.Time
}

// worked is the units left at a time.
type worked struct {
	units float64
	at    time.Time
}

// charge takes units from a party, or returns how long the party has to wait first.
func (w *works) charge(of party, units Work, share float64, now time.Time) (wait time.Duration) {
	perSecond, most := workPerSecond*share, workSaved*share
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == nil {
		w.left = map[party]worked{}
	}
	if len(w.left) >= sweepFrom && now.Sub(w.swept) >= sweepEvery {
		w.swept = now
		for other, has := range w.left {
			if has.units+perSecond*now.Sub(has.at).Seconds() >= most {
				delete(w.left, other)
			}
		}
	}
	has, known := w.left[of]
	if !known {
		has = worked{most, now}
	}
	has.units = min(most, has.units+perSecond*max(0, now.Sub(has.at).Seconds()))
	if has.units <= 0 {
		return time.Duration(-has.units/perSecond*float64(time.Second)) + 1
	}
	w.left[of] = worked{has.units - float64(units), now}
	return 0
}

// Charge takes the cost of a request from the caller's tenant, and refuses requests of a
// tenant without units. Administrators, tenants without a limit of requests, and requests by
// way of another coordinator are not charged.
func (g *Gate) Charge(c service.Caller, cost Work) *api.Status {
	if g == nil || g.Rates == nil || cost == 0 || c.Via != "" || c.Everywhere(service.Admins) {
		return nil
	}
	of, limit, live := g.Rates.limitOf(c.Principal)
	if limit == 0 || of == (party{}) {
		return nil
	}
	share := max(1, float64(limit)/DefaultRequests) / float64(live)
	wait := g.works.charge(of, cost, share, time.Now())
	if wait == 0 {
		return nil
	}
	status := api.Errorf(http.StatusTooManyRequests, "%s has used up its share of work (members of jobs, bytes of documents, dry runs): %d units are saved and %d come back in a second at this coordinator, and this request costs %d; ask again in %d s",
		of, int(workSaved*share), int(workPerSecond*share), cost, seconds(wait))
	status.RetryAfterSeconds = seconds(wait)
	return status
}

func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// Begin implements service.Charger: heavy requests of a tenant are decided on singly.
func (g *Gate) Begin(ctx context.Context, units int64, wait time.Duration) (end func(), status *api.Status) {
	c, cost := service.CallerOf(ctx), Work(units)
	if service.FirstCharge(ctx) {
		if status := g.Charge(c, cost); status != nil {
			return nil, status
		}
	}
	if cost < heavy || wait > 0 || g == nil || isSystem(c.Principal) {
		return func() {}, nil
	}
	end, ok := g.Rooms.heavy.Take(ctx, c.Principal, 1)
	if !ok {
		return nil, tooMany("another large request of %s is being decided on, or %d of other tenants: ask again", ownerOf(c.Principal).group(), mostHeavy)
	}
	return end, nil
}
