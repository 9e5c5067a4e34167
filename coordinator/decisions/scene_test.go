package decisions_test

import (
	"fmt"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// scene is a room whose trials end as the test says.
type scene struct {
	room    *sched.Room
	tracker *decisions.Tracker
	log     []decisions.Record
	fails   map[string]*sched.Evidence // by path; nil: the unit is placed
	held    map[string]decisions.Evidence
	placed  int
}

func newScene() *scene {
	s := &scene{room: sched.NewRoom(), fails: map[string]*sched.Evidence{}, held: map[string]decisions.Evidence{}}
	s.tracker = decisions.NewTracker(7, s.room, s, func(r decisions.Record) bool { s.log = append(s.log, r); return false })
	return s
}

// offer lets a unit that wants some GPUs wait.
func (s *scene) offer(k queue.Key, gpus int) {
	s.offerDemand(k, place.Unit{Members: 1, Request: resource.Request{GPUs: gpus}})
}

func (s *scene) offerDemand(k queue.Key, d place.Unit) {
	t := sched.Traits{Demand: fmt.Sprint(d.Members, d.Request, d.Constraints.Key()), Namespace: "ns", Priority: k.Priority}
	if d.Topology != nil {
		t.Relation = "joins " + d.Subject.Group
	}
	s.room.Offer(k, t, &d)
}

// hold keeps a unit from being tried.
func (s *scene) hold(k queue.Key, e decisions.Evidence) {
	s.held[k.Path] = e
	s.room.Hold(k)
}

// fail has a unit fail from now on.
func (s *scene) fail(k queue.Key, e sched.Evidence) { s.fails[k.Path] = &e }

func (s *scene) pass() { s.room.Pass(1000, s) }

// place places a unit, whatever the room says.
func (s *scene) place(k queue.Key, tx string, victims ...decisions.Victim) {
	p := decisions.Placement{Key: k, Tx: resource.TxID(tx), Kind: decisions.Plain, Victims: victims}
	if victims != nil {
		p.Kind = decisions.Preemption
	}
	s.tracker.Placed(p)
	s.room.Remove(k)
}

// Try is sched.Trial's.
func (s *scene) Try(k queue.Key, _ bool) *sched.Evidence {
	if e := s.fails[k.Path]; e != nil {
		return e
	}
	s.placed++
	s.place(k, fmt.Sprint("t", s.placed))
	return nil
}

// Wait is sched.Trial's.
func (s *scene) Wait(string, *sched.Evidence) {}

// Held is decisions.Words'.
func (s *scene) Held(path string) decisions.Evidence { return s.held[path] }

// Asleep is decisions.Words'.
func (s *scene) Asleep(c *sched.Class, e *sched.Evidence) (string, func() string) {
	return "", func() string { return fmt.Sprintf("want %d GPUs", c.Demand().Request.GPUs) }
}

// broken are the rules that a scene has broken.
func (s *scene) broken() (rules []decisions.Rule) {
	for _, v := range check(s.log).Violations {
		rules = append(rules, v.Rule)
	}
	return rules
}
