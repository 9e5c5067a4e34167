package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
)

// script is a trial in which every unit fails, and that keeps a list of all that
// the room asks for.
type script struct {
	asked []string
	try   func(path string) // at each trial
}

// Try fails (sched.Trial).
func (s *script) Try(k queue.Key, backstop bool) *sched.Evidence {
	line := "try " + k.Path
	if backstop {
		line += " for the backstop"
	}
	s.asked = append(s.asked, line)
	if s.try != nil {
		s.try(k.Path)
	}
	return &sched.Evidence{Code: sched.OverLimit}
}

// Wait notes which unit shares evidence (sched.Trial).
func (s *script) Wait(path string, e *sched.Evidence) {
	if e == nil {
		path += " without evidence"
	}
	s.asked = append(s.asked, path+" waits")
}

// check compares what the room has asked for since the last check.
func (s *script) check(t *testing.T, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
	s.asked = nil
}

// offer puts a unit into a room, in the class of a demand.
func offer(r *sched.Room, counter uint64, demand string) queue.Key {
	k := key(0, counter)
	r.Offer(k, sched.Traits{Demand: demand}, &place.Unit{})
	return k
}

// TestEachUnitSharesTheEvidenceOnce: after the trial of its class, or when it joins
// the class later, unless it has left.
func TestEachUnitSharesTheEvidenceOnce(t *testing.T) {
	r, s := sched.NewRoom(), &script{}
	offer(r, 2, "a")
	gone := offer(r, 3, "a")
	offer(r, 1, "a")
	r.Remove(gone)
	r.Pass(9, s)
	s.check(t, "a class fails", "try u1", "u2 waits", "u1 waits")
	r.Pass(9, s)
	s.check(t, "nothing has happened")
	offer(r, 0, "a")
	held := offer(r, 4, "a")
	offer(r, 5, "a")
	r.Hold(held)
	r.Pass(9, s)
	s.check(t, "three join, one of them is held", "u0 waits", "u5 waits")
	r.Offer(held, sched.Traits{Demand: "a"}, &place.Unit{})
	r.Pass(9, s)
	s.check(t, "it is offered again", "u4 waits")
	offer(r, 1, "a")
	r.Pass(9, s)
	s.check(t, "one is offered that is there")
	offer(r, 6, "a")
	r.All()
	r.Pass(0, s)
	s.check(t, "one joins a class that is woken then, and nobody is tried")
	r.Pass(9, s)
	s.check(t, "the class is tried", "try u0", "u6 waits")
}

// TestEvidenceIsOfSleep: a class that is awake has none, and its units know why they
// failed last.
func TestEvidenceIsOfSleep(t *testing.T) {
	r, s := sched.NewRoom(), &script{}
	u := offer(r, 1, "a")
	if r.Asleep(u.Path) != nil || r.EvidenceOf(u.Path) != nil {
		t.Error("it has evidence before it is tried")
	}
	if r.Pass(9, s); r.Asleep(u.Path) == nil || r.EvidenceOf(u.Path) == nil {
		t.Error("it has no evidence though it sleeps")
	}
	if r.All(); r.Asleep(u.Path) != nil || r.EvidenceOf(u.Path) == nil {
		t.Errorf("woken: asleep for %v, failed for %v", r.Asleep(u.Path), r.EvidenceOf(u.Path))
	}
}

// TestAPassGoesByTheFirstUnits of the classes as they are when it comes to them.
func TestAPassGoesByTheFirstUnits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *sched.Room)
		want   []string
	}{
		"as they came":              {func(*sched.Room) {}, []string{"try u1", "try u3", "try u5"}},
		"an earlier one joins":      {func(r *sched.Room) { offer(r, 2, "c") }, []string{"try u1", "try u2", "try u3"}},
		"the first of all joins":    {func(r *sched.Room) { offer(r, 0, "c") }, []string{"try u0", "try u1", "try u3"}},
		"a later one joins":         {func(r *sched.Room) { offer(r, 6, "a") }, []string{"try u1", "try u3", "try u5"}},
		"the first of one leaves":   {func(r *sched.Room) { r.Remove(key(0, 1)) }, []string{"try u3", "try u5", "try u9"}},
		"the second of one leaves":  {func(r *sched.Room) { r.Remove(key(0, 9)) }, []string{"try u1", "try u3", "try u5"}},
		"the only one of one goes":  {func(r *sched.Room) { r.Remove(key(0, 3)) }, []string{"try u1", "try u5"}},
		"one changes its class":     {func(r *sched.Room) { offer(r, 1, "c") }, []string{"try u1", "try u3", "try u9"}},
		"the same is offered again": {func(r *sched.Room) { offer(r, 1, "a") }, []string{"try u1", "try u3", "try u5"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := sched.NewRoom(), &script{}
			for counter, demand := range map[uint64]string{1: "a", 9: "a", 3: "b", 5: "c"} {
				offer(r, counter, demand)
			}
			c.change(r)
			r.Pass(9, s)
			s.asked = slices.DeleteFunc(s.asked, func(line string) bool { return line[:3] != "try" })
			s.check(t, "the pass", c.want...)
		})
	}
}

// TestAPassEndsAfterSoManyTrials, and the rest is tried by the next.
func TestAPassEndsAfterSoManyTrials(t *testing.T) {
	r, s := sched.NewRoom(), &script{}
	for i := range uint64(3) {
		offer(r, i, fmt.Sprint(i))
	}
	if !r.Pass(2, s) || !r.Busy() {
		t.Error("nothing is left to do")
	}
	s.check(t, "a pass of two", "try u0", "u0 waits", "try u1", "u1 waits")
	if r.Pass(2, s) || r.Busy() {
		t.Error("something is left to do")
	}
	s.check(t, "the next", "try u2", "u2 waits")
}

// TestAClassThatItsOwnTrialWokeIsTriedOnceMore by the next pass: it may have failed
// before that event.
func TestAClassThatItsOwnTrialWokeIsTriedOnceMore(t *testing.T) {
	r := sched.NewRoom()
	u := offer(r, 1, "a")
	s := &script{}
	s.try = func(string) {
		if s.try = nil; r.Asleep(u.Path) == nil {
			r.Freed("another", nil)
			r.Freed("another", nil)
		}
	}
	if !r.Pass(9, s) || !r.Busy() {
		t.Error("it sleeps")
	}
	s.check(t, "the first pass", "try u1", "u1 waits")
	if r.Pass(9, s) || r.Busy() {
		t.Error("it does not sleep")
	}
	s.check(t, "the second pass", "try u1")
	offer(r, 2, "b")
	s.try = func(string) { r.Freed("", nil) } // wakes a, which goes first, and b itself
	r.Pass(2, s)
	s.check(t, "another's trial", "try u2", "u2 waits", "try u1")
}

// TestTheBackstopTriesEachClassInTurn: all of them in so many calls, and says that
// nothing else has woken them.
func TestTheBackstopTriesEachClassInTurn(t *testing.T) {
	r, s := sched.NewRoom(), &script{}
	for i := range uint64(5) {
		offer(r, i, fmt.Sprint(i))
	}
	r.Pass(9, s)
	s.asked = nil
	for i, want := range [][]string{{"0", "1"}, {"2", "3"}, {"4"}, {"0", "1"}} {
		r.Backstop(3)
		r.Pass(9, s)
		var lines []string
		for _, u := range want {
			lines = append(lines, "try u"+u+" for the backstop")
		}
		s.check(t, fmt.Sprint("call ", i+1), lines...)
	}
	r.All()
	r.Backstop(3)
	r.Pass(9, s)
	s.check(t, "an event, then the backstop", "try u0", "try u1", "try u2", "try u3", "try u4")
	r.Backstop(3)
	r.Freed("", nil)
	r.Pass(9, s)
	s.check(t, "the backstop, then an event", "try u0", "try u1", "try u2", "try u3", "try u4")
	for range 2 {
		r.Remove(key(0, 2)) // while it is its turn
		r.Backstop(1)
	}
	r.Pass(9, s)
	s.check(t, "one has left", "try u0 for the backstop", "try u1 for the backstop", "try u3 for the backstop", "try u4 for the backstop")
}
