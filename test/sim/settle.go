package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
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

// checkI13 verifies that everything agrees.
func (s *Sim) checkI13() {
	want := map[string]bool{}
	s.eachLive(func(tx resource.TxID, r record.Tx) {
		if r.State != grant.RecordCommitted {
			s.fail("I13", "%s is still %s", short(tx), r.State)
		}
		for _, m := range r.Members {
			if s.host(m.Node).lying() {
				continue
			}
			want[fmt.Sprintf("%s/%s", m.Node, tx)] = true
			if _, there := s.store.keys[indexKey(m.Node, tx)]; !there {
				s.fail("I13", "%s is COMMITTED and not in the index of %s", short(tx), m.Node)
			}
		}
	})
	for _, key := range s.store.under("index/") {
		if h := s.liar.host; h != nil && strings.HasPrefix(key, indexIn(h.node)) {
			continue
		}
		if !want[strings.TrimPrefix(key, "index/")] {
			s.fail("I13", "%s is left over", key)
		}
	}
	for _, h := range s.hosts {
		if h.lying() {
			continue
		}
		for _, g := range h.agent.l.Snapshot().Grants {
			at := fmt.Sprintf("%s/%s", h.node, g.Tx)
			switch {
			case g.Origin == ledger.OriginOrphan && !h.has(g): // of a card that is gone nobody says anything
			case g.Origin == ledger.OriginOrphan:
				s.fail("I13", "%s is still an orphan on %s", g.Tx, h.node)
			case !h.agent.l.Quarantine().IsZero():
				s.fail("I13", "%s is still in quarantine", h.node)
			case g.State == grant.Held && !want[at] && !h.lossless && s.store.keys[txKey(g.Tx)].value == nil:
				s.stats["revived grants at the end"]++ // an operator releases it
			case g.State == grant.Held && !want[at]:
				s.fail("I13", "%s holds %s, which is %q", h.node, short(g.Tx), s.decided[g.Tx])
			case g.State != grant.Held && g.State != grant.Tombstone:
				s.fail("I13", "%s has %s in %s", h.node, short(g.Tx), g.State)
			}
			if g.State == grant.Held {
				delete(want, at)
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(want)) {
		s.fail("I13", "%s is COMMITTED and not held there", at)
	}
	if len(s.terms) != 1 {
		s.fail("I13", "%d leaders", len(s.terms))
		return
	}
	for _, tx := range slices.Sorted(maps.Keys(s.terms[0].unheard)) {
		s.fail("I13", "the record of %s is kept until %v have told of themselves", short(tx), slices.Sorted(maps.Keys(s.terms[0].unheard[tx])))
	}
	s.checkUnits(s.terms[0])
}

// checkUnits is I13 for what the leader knows: every unit runs, or waits with a
// reason.
func (s *Sim) checkUnits(t *term) {
	for _, key := range s.store.under(unitKey("")) {
		r, _ := value[unitRecord](s.store, key)
		name := s.clients[r.client].name
		u := t.units[name]
		_, ordered := s.store.keys[orderKey(name)]
		switch {
		case u == nil:
			s.fail("I13", "the leader does not know %s", name)
		case r.phase != u.record.phase:
			s.fail("I13", "%s is %s, the leader says %s", name, r.phase, u.record.phase)
		case ordered != (r.phase == pending):
			s.fail("I13", "%s is %s, in the order: %t", name, r.phase, ordered)
		case r.phase == terminating:
			s.fail("I13", "%s is still Terminating", name)
		case r.phase == pending && t.fits(u):
			s.fail("I13", "%s waits although there is room", name)
		case r.phase == pending:
			s.stats["waiting at the end"]++
		default:
			s.stats["running at the end"]++
		}
	}
	for _, h := range s.hosts {
		if !h.lying() {
			s.checkView(t, h)
		}
	}
}

// checkView compares the leader's view of a node with its agent's ledger.
func (s *Sim) checkView(t *term, h *host) {
	v, l := t.nodes[h.node], h.agent.l.Snapshot()
	for i, d := range l.GPUs {
		healthy := d.Health == devices.OK || d.Health.Allocatable()
		if v.view.Free.GPU[i] != l.Free.GPU[i] || healthy != (v.view.Free.Unhealthy&(1<<i) == 0) {
			s.fail("I13", "%s has %d milli of %s free, the leader's view %d", h.node, l.Free.GPU[i], d.UUID, v.view.Free.GPU[i])
		}
	}
	if v.view.Unschedulable != l.Cordoned {
		s.fail("I13", "%s is cordoned: %t, for the leader: %t", h.node, l.Cordoned, v.view.Unschedulable)
	}
}
