package sched

import (
	"container/heap"

	"github.com/musterd/muster/coordinator/queue"
)

// Trial is the question of a pass to the leader.
type Trial interface {
	// Try admits and places a unit, or begins a preemption for it. It returns nil
	// where the unit needs no other trial now: then it has left the room or its
	// class, by Remove, Hold or Offer. backstop: no event has woken the class.
	Try(k queue.Key, backstop bool) *Evidence
	// Wait lets a unit share the evidence of its class: it may be stored, refused,
	// or simply wait. It may remove or hold the unit.
	Wait(path string, e *Evidence)
}

// Pass tries at most so many units, lets those that have joined a sleeping class
// share its evidence, and reports whether classes are left to be tried. A class
// that a trial wakes takes its place in the order at once; the class that is tried
// itself is left for the next pass then.
func (r *Room) Pass(most int, t Trial) (more bool) {
	defer r.endPass()
	for len(r.woken) > 0 && most > 0 {
		most--
		c := r.woken[0]
		k := c.head
		r.tried = c
		r.trials++
		e := t.Try(k, c.backstop)
		switch {
		case e == nil && r.class[k.Path] == c:
			panic("sched: " + k.Path + " was tried without evidence and is still offered")
		case e == nil || c.awake == 0: // placed; or the trial has emptied the class
			continue
		}
		heap.Remove(&r.woken, c.awake-1)
		r.setEvidence(c, e, false)
		if r.observer != nil {
			r.observer.Slept(c, e)
		}
		r.share(c, t)
	}
	for len(r.joined) > 0 {
		c := r.joined[0]
		r.joined = r.joined[1:]
		r.share(c, t)
	}
	return len(r.woken) > 0 || r.again != nil
}

// endPass wakes the class that was woken by its own trial.
func (r *Room) endPass() {
	r.tried = nil
	for _, c := range r.again {
		if r.classes[c.Traits] == c {
			r.wake(c, false)
		}
	}
	r.again = nil
}

// share lets the units that have joined a sleeping class share its evidence.
func (r *Room) share(c *Class, t Trial) {
	for len(c.fresh) > 0 && c.evidence != nil {
		path := c.fresh[0]
		c.fresh = c.fresh[1:]
		if r.class[path] == c {
			t.Wait(path, c.evidence)
		}
	}
}
