package sim

import (
	"slices"
	"time"
)

// action is one thing that may happen. It reports false if it cannot now.
type action struct {
	weight int
	act    func(*Sim) bool
}

// trouble is how often something breaks: a seed draws one of these, so that
// some clusters get much done and others hardly anything.
var trouble = []int{1, 2, 8}

// actions are what a step draws from: what is on its way arrives far more often
// than anything breaks.
var actions = []action{
	{240, (*Sim).actServe},
	{240, (*Sim).actAnswer},
	{200, (*Sim).actDown},
	{200, (*Sim).actUp},
	{160, (*Sim).actFlush},
	{64, (*Sim).actConnect},
	{48, (*Sim).actElect},
	{24, (*Sim).actTime},
	{80, (*Sim).actTick},
	{48, (*Sim).actTimer},
	{40, (*Sim).actClient},
	{40, (*Sim).actRetry},
	{20, (*Sim).actRelease},
	{48, (*Sim).actStop},
	{8, (*Sim).actLaunch},
	{40, (*Sim).actCollect},
	{48, (*Sim).actStartAgent},
	{8, (*Sim).actSync},
	{4, (*Sim).actCompact},
	{4, (*Sim).actLimit},
}

// mishaps are drawn as often as the seed has trouble.
var mishaps = []action{
	{6, (*Sim).actStall},
	{4, (*Sim).actLate},
	{3, (*Sim).actGhost},
	{2, (*Sim).actBreak},
	{1, (*Sim).actExpire},
	{1, (*Sim).actNotice},
	{1, (*Sim).actCoordinator},
	{1, (*Sim).actKill},
	{1, (*Sim).actReboot},
	{1, (*Sim).actDisk},
	{1, (*Sim).actHost},
}

// afterwards are drawn too, once in a while, when the store has been restored.
var afterwards = []func(*Sim) bool{(*Sim).actAudit, (*Sim).actOperator, (*Sim).actOperator}

func weigh(list []action) (sum int) {
	for _, a := range list {
		sum += a.weight
	}
	return sum
}

// act lets one thing happen.
func (s *Sim) act() {
	usual := weigh(actions)
	for {
		if s.restored && s.rng.IntN(16) == 0 && pick(s, afterwards)(s) {
			return
		}
		if s.liar.host != nil && s.rng.IntN(64) == 0 && s.actForgive() {
			return
		}
		if s.evictions && s.rng.IntN(64) == 0 && s.actEvict() {
			return
		}
		if s.evictions && s.rng.IntN(48) == 0 && s.actDisturb() {
			return
		}
		if s.fences && s.heals && s.rng.IntN(40) == 0 && s.actDeath() {
			return
		}
		if s.fences && s.rng.IntN(24) == 0 && pick(s, outages)(s) {
			return
		}
		if s.evictsLost && s.rng.IntN(64) == 0 && s.actLose() {
			return
		}
		if s.modes && s.rng.IntN(48) == 0 && s.actMode() {
			return
		}
		if s.edits && s.rng.IntN(24) == 0 && s.actEdit() {
			return
		}
		if s.trees && s.rng.IntN(48) == 0 && s.actTree() {
			return
		}
		if s.lines && s.rng.IntN(32) == 0 && s.actLine() {
			return
		}
		if s.stragglers && s.rng.IntN(24) == 0 && pick(s, oddities)(s) {
			return
		}
		n := s.rng.IntN(usual + s.trouble*weigh(mishaps))
		list := actions
		if n >= usual {
			n, list = (n-usual)/s.trouble, mishaps
		}
		for i := range list {
			if n -= list[i].weight; n < 0 {
				if list[i].act(s) {
					return
				}
				break
			}
		}
	}
}

// mishap is true once in n times where the trouble is medium, more often or
// less where there is more or less, and never once the faults have ended.
func (s *Sim) mishap(n int) bool { return s.faults && s.rng.IntN(2*n) < s.trouble }

func (s *Sim) actServe() bool {
	var fit []int
	for i := range s.requests {
		if s.requests[i].stalled <= s.step || !s.faults {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return false
	}
	i := pick(s, fit)
	r := s.requests[i]
	s.requests = slices.Delete(s.requests, i, i+1)
	s.serve(r)
	return true
}

func (s *Sim) actAnswer() bool {
	if len(s.answers) == 0 {
		return false
	}
	a := takeOut(s, &s.answers)
	s.logf("answer: %s", a.what)
	a.deliver()
	return true
}

func (s *Sim) actDown() bool {
	return s.withStream(func(st *stream) bool { return len(st.down) > 0 }, (*stream).deliverDown)
}

func (s *Sim) actUp() bool {
	return s.withStream(func(st *stream) bool { return len(st.up) > 0 }, (*stream).deliverUp)
}

func (s *Sim) withStream(accept func(*stream) bool, do func(*stream)) bool {
	var fit []*stream
	s.streams = slices.DeleteFunc(s.streams, (*stream).done)
	for _, st := range s.streams {
		if accept(st) && (st.stalled <= s.step || !s.faults) {
			fit = append(fit, st)
		}
	}
	if len(fit) == 0 {
		return false
	}
	do(pick(s, fit))
	return true
}

func (s *Sim) withTerm(accept func(*term) bool, do func(*term)) bool {
	s.terms = slices.DeleteFunc(s.terms, func(t *term) bool { return t.ended })
	var fit []*term
	for _, t := range s.terms {
		if accept == nil || accept(t) {
			fit = append(fit, t)
		}
	}
	if len(fit) == 0 {
		return false
	}
	do(pick(s, fit))
	return true
}

func (s *Sim) actFlush() bool {
	return s.withTerm(func(t *term) bool { return len(t.submitted) > 0 }, func(t *term) { t.flush(1 + s.rng.IntN(len(t.submitted))) })
}

func (s *Sim) actConnect() bool {
	return s.withTerm(nil, func(t *term) {
		h := pick(s, s.hosts)
		if at := t.links[h.node]; h.agent != nil && at.stream == nil && !at.dialing && !at.distrusted {
			t.connect(h)
		}
	})
}

func (s *Sim) actTime() bool {
	d := time.Duration(1+s.rng.IntN(4000)) * time.Millisecond
	s.clock += d
	s.logf("time: %v pass", d)
	if s.rng.IntN(10) == 0 {
		h := pick(s, s.hosts)
		jump := time.Duration(s.rng.IntN(600)) * time.Second
		h.jumped += jump
		s.logf("%s: its clock steps %v ahead", h.node, jump)
	}
	return true
}

// actTimer lets a leader's alarm go off: at any time, for a pause may come
// between. The further it is away, the rarer that is.
func (s *Sim) actTimer() bool {
	return s.withTerm(func(t *term) bool { return !t.wakeAt.IsZero() }, func(t *term) {
		rarity := 2
		switch wait := t.wakeAt.Sub(t.now()); {
		case wait > voteBudget:
			rarity = 48
		case wait > lastBackoff:
			rarity = 6
		}
		if s.rng.IntN(rarity) == 0 {
			t.ring()
		}
	})
}

// lastBackoff is the longest time between attempts of a unit that agents refuse.
const lastBackoff = 2 * time.Second

// actCollect lets a leader do what it does once a second.
func (s *Sim) actCollect() bool { return s.withTerm(nil, (*term).tick) }
