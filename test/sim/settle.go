package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/txn"
)

// settle ends the faults and lets two TTLs and one resync pass; then everything
// must agree (I13).
func (s *Sim) settle() {
	s.logf("the faults end")
	s.faults = false
	for len(s.late) > 0 && len(s.failures) == 0 {
		s.actLate()
		s.check()
	}
	s.past = nil
	s.repent()
	for _, h := range s.hosts {
		h.stragglers = nil
	}
	if s.restored {
		s.audit()
	}
	for range 2 {
		if !s.quiet() {
			return
		}
		s.clock += longestTTL + longestTTL/4 // a TTL on the slowest clock
		for _, h := range s.hosts {
			s.logf("%s: looks at what is due", h.node)
			h.agent.tick()
		}
	}
	if !s.quiet() {
		return
	}
	s.withTerm(nil, func(t *term) {
		t.checkWaiting() // an agent's answer wakes everything
		for _, h := range s.hosts {
			t.tell(h.node, order{resync: true})
		}
	})
	if s.quiet() {
		s.checkI13()
	}
}

// backoff is the time between attempts of a unit that agents have refused again
// and again.
const backoff = 2 * time.Second

// due reports whether a deadline of the agent has passed.
func (h *host) due() bool {
	at, ok := h.agent.l.Next()
	return ok && !h.now().Before(at)
}

// quiet lets everything happen that is to happen without time passing, but for
// backoffs. It
// reports whether that came to an end without a failure.
func (s *Sim) quiet() bool {
	for range 20_000 {
		if len(s.failures) > 0 {
			return false
		}
		if !s.proceed() {
			return true
		}
		s.step++
		s.check()
	}
	s.fail("I13", "no end in sight: %d requests, %d answers, %d streams", len(s.requests), len(s.answers), len(s.streams))
	return false
}

// proceed does one thing that is to be done, in a fixed order of preference.
func (s *Sim) proceed() bool {
	for _, h := range s.hosts {
		switch {
		case h.off:
			h.powerOn()
			return true
		case h.agent == nil:
			h.startAgent()
			return true
		}
	}
	if s.actNotice() || s.actAnswer() || s.actServe() || s.actUp() || s.actDown() || s.actFlush() {
		return true
	}
	for _, h := range s.hosts {
		a := h.agent
		switch {
		case a.register && !a.calling, len(a.unresolved) > 0 && len(a.calls) == 0, s.evictions && len(a.unresolved) == 0 && h.due():
			a.tick()
			return true
		}
		if s.fences && !h.beating && a.l.Registration() > 0 && s.store.keys[leaseKey(h.node)].value == nil {
			h.beat()
			return true
		}
		if s.stragglers && a.l.Registration() > 0 && !maps.Equal(a.seen, h.busy()) {
			a.look()
			return true
		}
		if txs := h.stoppable(); len(txs) > 0 {
			h.stop(txs[0], false)
			return true
		}
	}
	return s.proceedTerm()
}

func (s *Sim) proceedTerm() bool {
	s.terms = slices.DeleteFunc(s.terms, func(t *term) bool { return t.ended })
	if len(s.terms) == 0 {
		for _, key := range s.store.under(leaderPrefix) {
			if !slices.ContainsFunc(s.coordinators, func(c *coordinator) bool { return c.key == key }) {
				s.expire(key)
				return true
			}
		}
		for range 50 {
			if s.actElect() {
				return true
			}
		}
		return false
	}
	t := s.terms[len(s.terms)-1]
	for _, h := range s.hosts {
		if v := t.nodes[h.node]; v.stream == nil && !v.dialing {
			t.connect(h)
			return true
		}
	}
	for _, h := range s.hosts {
		if s.restored && t.operate(h) {
			return true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.units)) {
		u := t.units[name]
		if u.resting {
			if s.evictions { // while agents keep what they promised to others, it would try for ever
				s.clock += backoff
			}
			t.rested(u)
			t.schedule()
			return true
		}
		if u.attempt != nil && u.attempt.budget {
			t.step(u.attempt, txn.BudgetSpent{})
			t.schedule()
			return true
		}
		if u.adopting != nil && !u.adopting.over {
			t.abandon(u.adopting)
			return true
		}
	}
	for _, c := range s.live {
		if u := t.units[c.name]; c.ends && u != nil && u.ending == nil {
			s.release(t, c)
			return true
		}
	}
	return false
}
