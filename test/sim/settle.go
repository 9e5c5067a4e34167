package sim

import (
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
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
		if s.liar.host != nil { // a lie that was on its way may have arrived since
			s.withTerm(nil, (*term).forgive)
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
		t.tick()
		for _, h := range s.hosts {
			t.tell(h.node, order{resync: true})
		}
	})
	if s.quiet() {
		s.checkI13()
	}
}

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
		if s.fences && !h.beating && a.l.Registration() > 0 && s.store.keys[record.NodeLeaseKey(h.node)].ModRev == 0 {
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
		for _, key := range s.store.under(record.LeaderPrefix) {
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
		if at := t.links[h.node]; at.stream == nil && !at.dialing && !at.distrusted {
			t.connect(h)
			return true
		}
	}
	for _, h := range s.hosts {
		if s.restored && t.operate(h) {
			return true
		}
	}
	if !t.wakeAt.IsZero() { // that time passes for agents too, which keep what they promised to others
		s.clock += max(0, t.wakeAt.Sub(t.now()))
		t.ring()
		return true
	}
	for _, c := range s.live {
		if u, exists := s.unit(c); exists && c.ends && u.Phase != terminating && !t.ending[resource.TxID(u.UID)] {
			t.ending[resource.TxID(u.UID)] = true // once
			t.release(c, 0)
			return true
		}
	}
	return false
}
