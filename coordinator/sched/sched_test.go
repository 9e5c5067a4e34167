package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// TestTheRoomDecidesAsAnExhaustivePass: two worlds see the same happen. One tries
// every unit at every pass, the other one only those that an event may help. Both
// begin the same units at the same passes, and the backstop finds nobody.
func TestTheRoomDecidesAsAnExhaustivePass(t *testing.T) {
	var tries, all int
	for seed := range uint64(300) {
		a, b := newWorld(t, 4, sched.NewRoom()), newWorld(t, 4, nil)
		random := rand.New(rand.NewPCG(seed, 0))
		for step := range 60 {
			act(random, step, a, b)
			for random.IntN(4) == 0 {
				act(random, step+1000, a, b)
			}
			got, want := a.pass(t), b.pass(t)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: the room begins %v, an exhaustive pass %v", seed, step, got, want)
			}
		}
		for range 3 {
			a.room.Backstop(3)
			a.pass(t)
		}
		if len(a.missed) > 0 {
			t.Fatalf("seed %d: only the backstop finds room for %v", seed, a.missed)
		}
		tries, all = tries+a.tries, all+b.tries
	}
	if tries > all/2 {
		t.Errorf("%d tries, an exhaustive pass makes %d: the events wake too much", tries, all)
	}
}

// act has the same happen in both worlds.
func act(random *rand.Rand, step int, worlds ...*world) {
	kind, pick, more := random.IntN(10), random.IntN(1<<20), random.IntN(1<<20)
	for _, w := range worlds {
		switch {
		case kind < 5:
			w.submit(randomUnit(step, pick, more))
		case kind < 7 && len(w.running) > 0:
			w.end(sorted(w.running)[pick%len(w.running)])
		case kind == 7 && len(w.waiting) > 0:
			w.withdraw(w.waiting[pick%len(w.waiting)])
		case kind == 8 && len(w.running) > 0:
			u := sorted(w.running)[pick%len(w.running)]
			if u.busy {
				w.settle(u)
			} else {
				u.busy = true
			}
		case kind == 9 && pick%2 == 0:
			w.setLimit(fmt.Sprint("ns", more%2), 8+more%24)
		case kind == 9:
			n := w.state.Nodes()[more%4]
			w.setClosed(n, !n.Unschedulable)
		}
	}
}

// sorted lists units by path: the worlds may have begun them in another order.
func sorted(units []*unit) []*unit {
	return slices.SortedFunc(slices.Values(units), func(a, b *unit) int { return queue.Compare(a.key, b.key) })
}

func randomUnit(step, pick, more int) *unit {
	u := &unit{
		key:       queue.Key{Priority: int32(pick % 3), Epoch: 1, Counter: uint64(step), Path: fmt.Sprintf("u%04d-%d", step, more)},
		namespace: fmt.Sprint("ns", more%2),
		demand:    place.Unit{Members: 1 + pick/3%2*(more%3), Request: resource.Request{GPUs: 1 + pick/7%8, CPU: resource.Millicores(1000 * (1 + more%4))}},
	}
	if pick%5 == 0 {
		u.demand.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"half": fmt.Sprint(more % 2)}})
	}
	if more%3 == 0 {
		u.right = sched.Lower
	}
	return u
}

func key(priority int32, counter uint64) queue.Key {
	return queue.Key{Priority: priority, Epoch: 1, Counter: counter, Path: fmt.Sprint("u", counter)}
}

// TestOneUnitIsTriedForItsClass: a thousand equal units without a place cost one
// search, and so does each event that might help them.
func TestOneUnitIsTriedForItsClass(t *testing.T) {
	w := newWorld(t, 1, sched.NewRoom())
	demand := place.Unit{Members: 1, Request: resource.Request{GPUs: 8}}
	for i := range 1000 {
		w.submit(&unit{key: key(0, uint64(i)), demand: demand})
	}
	for _, want := range []int{2, 2} { // the first is placed, the second fails for all
		w.tries = 0
		if w.pass(t); w.tries != want {
			t.Errorf("%d tries, want %d", w.tries, want)
		}
		w.end(w.running[0])
	}
	w.pass(t)
	w.tries = 0
	w.submit(&unit{key: key(0, 5000), demand: demand})
	if w.pass(t); w.tries != 0 || w.room.EvidenceOf("u5000") == nil {
		t.Errorf("a newcomer in a class that sleeps: %d tries, evidence %v", w.tries, w.room.EvidenceOf("u5000"))
	}
}

// TestAWokenClassKeepsItsPlaceInTheOrder: classes are tried by their first units,
// also when a unit joins or leaves at the front.
func TestAWokenClassKeepsItsPlaceInTheOrder(t *testing.T) {
	w := newWorld(t, 1, sched.NewRoom())
	whole := place.Unit{Members: 1, Request: resource.Request{GPUs: 8}}
	seven := place.Unit{Members: 1, Request: resource.Request{GPUs: 7}}
	w.submit(&unit{key: key(0, 2), demand: whole})
	w.submit(&unit{key: key(0, 3), demand: seven})
	first := &unit{key: key(0, 1), demand: seven}
	w.submit(first)
	w.withdraw(first)
	if began := w.pass(t); !slices.Equal(began, []string{"u2"}) {
		t.Errorf("%v begin, want u2", began)
	}
	w.submit(&unit{key: key(1, 9), demand: seven})
	w.end(w.running[0])
	if began := w.pass(t); !slices.Equal(began, []string{"u9"}) {
		t.Errorf("%v begin, want u9", began)
	}
}

// TestAHeldUnitIsInTheOrderAndNotTried until it is offered.
func TestAHeldUnitIsInTheOrderAndNotTried(t *testing.T) {
	w := newWorld(t, 1, sched.NewRoom())
	u := &unit{key: key(0, 1), demand: place.Unit{Members: 1, Request: resource.Request{GPUs: 1}}}
	w.submit(u)
	w.room.Hold(u.key)
	if began := w.pass(t); began != nil || w.room.Order().Position(u.key) != 1 {
		t.Errorf("%v begin, position %d", began, w.room.Order().Position(u.key))
	}
	w.room.Offer(u.key, u.traits(), &u.demand)
	if began := w.pass(t); !slices.Equal(began, []string{"u1"}) || w.room.Order().Len() != 0 {
		t.Errorf("%v begin, %d in the order", began, w.room.Order().Len())
	}
}
