package sim

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// client wants one allocation, and sooner or later its end.
type client struct {
	index     int
	name      string
	namespace string
	group     string
	priority  int32
	demand    place.Unit
	lower     bool // those of lower priority may be evicted for it

	asked *term            // where it waits for an answer
	acked resource.UnitUID // what it was told it has, "" for nothing
	ends  bool             // it has asked for the end
	over  bool
}

func (c *client) vector() resource.Vector {
	return c.demand.Request.Vector().Scaled(int64(c.demand.Members))
}

func (c *client) path() record.UnitPath {
	return record.UnitPath{Namespace: c.namespace, Kind: record.AllocUnit, Name: c.name}
}

// actClient lets a new client ask a leader.
func (s *Sim) actClient() bool {
	if most := 8; len(s.live) >= most && (!s.evictions || len(s.live) >= 2*most) {
		return false
	}
	c := &client{
		index: len(s.clients), name: fmt.Sprintf("u%d", len(s.clients)+1), namespace: pick(s, namespaces), group: pick(s, groups),
		priority: int32(s.rng.IntN(3)),
	}
	c.demand = place.Unit{Members: 1, Request: resource.Request{GPUs: 1 + s.rng.IntN(2), CPU: 1000}}
	if s.rng.IntN(3) == 0 {
		c.demand.Members = 2 + s.rng.IntN(2)
	}
	if s.evictions {
		c.lower = s.rng.IntN(6) > 0
		c.priority += int32(s.rng.IntN(4))
	}
	s.clients, s.live = append(s.clients, c), append(s.live, c)
	s.checker.Demanded(c.path(), invariant.Wants{Members: c.demand.Members, GPUs: c.demand.Request.GPUs})
	s.logf("client %s: wants %d times %d GPUs for %s and %s", c.name, c.demand.Members, c.demand.Request.GPUs, c.namespace, c.group)
	return true
}

// actRetry lets a client ask that has no answer yet.
func (s *Sim) actRetry() bool {
	var fit []*client
	for _, c := range s.live {
		if c.acked == "" && !c.over && (c.asked == nil || c.asked.ended || s.rng.IntN(16) == 0) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return false
	}
	return s.withTerm(nil, func(t *term) {
		c := pick(s, fit)
		s.logf("client %s: asks %s", c.name, t.name)
		t.accept(c)
		t.schedule()
	})
}

// actRelease lets a client give back what it has.
func (s *Sim) actRelease() bool {
	var fit []*client
	s.live = slices.DeleteFunc(s.live, func(c *client) bool {
		return c.over || c.ends && s.store.keys[unitKey(c.name)].value == nil
	})
	for _, c := range s.live {
		if c.acked != "" {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return false
	}
	return s.withTerm(nil, func(t *term) { s.release(t, pick(s, fit)) })
}

func (s *Sim) release(t *term, c *client) {
	u := t.units[c.name]
	if u == nil {
		return
	}
	s.endAsked(c)
	s.logf("client %s: asks %s for its end", c.name, t.name)
	t.finish(u, txn.ReleaseAsked{GraceSeconds: int64(s.rng.IntN(20)), Reason: "deleted"})
	t.schedule()
}
