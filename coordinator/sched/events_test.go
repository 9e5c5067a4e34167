package sched_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// asleep are classes that sleep, by the reasons of which each has one; each wants
// four GPUs for a unit of priority 5 in the namespace a, and its trees are x and y.
var asleep = map[string]sched.Code{
	"no place": sched.NoPlace, "no victims": sched.NoVictims, "leaving": sched.Leaving,
	"over limit": sched.OverLimit, "over tree": sched.OverTree, "claim": sched.Claim, "would borrow": sched.NoVictims,
}

// trials gives each unit the evidence that its name stands for.
type trials struct{}

// Try fails (sched.Trial).
func (trials) Try(k queue.Key, _ bool) *sched.Evidence {
	return &sched.Evidence{Code: asleep[k.Path], Trees: []string{"x", "y"}, Borrows: k.Path == "would borrow"}
}

// Wait is sched.Trial's.
func (trials) Wait(string, *sched.Evidence) {}

// sleepers is a room in which all of asleep sleep, for nodes whose label half is 0.
func sleepers(t *testing.T) *sched.Room {
	t.Helper()
	r := sched.NewRoom()
	demand := place.Unit{Members: 1, Request: resource.Request{GPUs: 4, CPU: 1000}}
	demand.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"half": "0"}})
	for name := range asleep {
		r.Offer(queue.Key{Path: name}, sched.Traits{Demand: name, Namespace: "a", Priority: 5}, &demand)
	}
	if r.Pass(len(asleep), trials{}) || r.Busy() {
		t.Fatal("the classes do not sleep")
	}
	return r
}

// wokenOf names the classes that are awake, ascending.
func wokenOf(r *sched.Room) string {
	var names []string
	for name := range asleep {
		if r.Asleep(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// site is a node with units on it, their GPUs by priority.
type site struct {
	*cluster.Node
	state *cluster.State
	units map[int64]int
}

// held sums what units on the node hold (sched.Held).
func (s *site) held(_ *cluster.Node, below int64) (sum cluster.Amounts) {
	for priority, gpus := range s.units {
		if priority < below {
			sum.GPU += resource.Milli(gpus) * resource.WholeDevice
		}
	}
	return sum
}

// newSite is a node of 8 GPUs whose label half is 0, of which so many GPUs are free.
func newSite(t *testing.T, free int, units map[int64]int) *site {
	t.Helper()
	w := newWorld(t, 1, nil)
	s := &site{Node: w.state.Nodes()[0], state: w.state, units: units}
	if free < 8 {
		if _, ok := place.Place(w.state, place.Unit{Members: 1, Request: resource.Request{GPUs: 8 - free}}); !ok {
			t.Fatal("no room for those that are there")
		}
	}
	return s
}

// TestTheClassesThatEachEventWakes: by the reasons for which they sleep.
func TestTheClassesThatEachEventWakes(t *testing.T) {
	grew := func(r *sched.Room, s *site) { r.Grew(s.Node, s.held) }
	givesWay := func(priority int32) func(*sched.Room, *site) {
		return func(r *sched.Room, s *site) { r.Evictable(priority, []*cluster.Node{s.Node}, s.held) }
	}
	type units = map[int64]int
	for name, c := range map[string]struct {
		free  int   // GPUs of the node
		units units // on it
		event func(*sched.Room, *site)
		wakes string
	}{
		"E1: a node with room":                             {4, nil, grew, "claim, leaving, no place, no victims, would borrow"},
		"E1: with less room than they want":                {3, nil, grew, ""},
		"E1: a full one, of units below":                   {0, units{4: 8}, grew, "claim, leaving, no victims, would borrow"},
		"E1: a full one, of units of the same priority":    {0, units{5: 8}, grew, "claim"},
		"E1: room for them beside nobody below":            {2, units{4: 2}, grew, "claim, leaving, no victims, would borrow"},
		"E1: too little room for them beside nobody below": {2, units{4: 1, 5: 5}, grew, "claim"},
		"E1: too little room beside nobody at all":         {2, units{9: 1}, grew, ""},
		"E1: a cordoned one":                               {8, nil, func(r *sched.Room, s *site) { s.state.SetUnschedulable(s.Node, true); grew(r, s) }, ""},
		"E1: one without a stream":                         {8, nil, func(r *sched.Room, s *site) { s.state.SetReady(s.Node, false); grew(r, s) }, ""},
		"E1: one without a host":                           {8, nil, func(r *sched.Room, _ *site) { r.Grew(&cluster.Node{Ready: true}, nil) }, ""},
		"E1: one with other labels": {8, nil, func(r *sched.Room, s *site) {
			s.Labels = new(constraint.Table).Intern(map[string]string{"half": "1"}, nil)
			grew(r, s)
		}, ""},
		"E2: of the namespace":                   {0, nil, func(r *sched.Room, _ *site) { r.Freed("a", nil) }, "over limit"},
		"E2: of another namespace":               {8, nil, func(r *sched.Room, _ *site) { r.Freed("b", nil) }, ""},
		"E2: of a tree":                          {0, nil, func(r *sched.Room, _ *site) { r.Freed("b", []string{"w", "y"}) }, "claim, over tree, would borrow"},
		"E2: of another tree":                    {8, nil, func(r *sched.Room, _ *site) { r.Freed("b", []string{"w"}) }, ""},
		"E2: of the namespace and a tree":        {0, nil, func(r *sched.Room, _ *site) { r.Freed("a", []string{"x"}) }, "claim, over limit, over tree, would borrow"},
		"E2: a charge has begun":                 {8, nil, func(r *sched.Room, _ *site) { r.Charged([]string{"y"}) }, "claim"},
		"E2: of another tree, a charge":          {8, nil, func(r *sched.Room, _ *site) { r.Charged([]string{"w"}) }, ""},
		"E2: a charge has moved others":          {8, nil, func(r *sched.Room, _ *site) { r.Moved([]string{"y"}) }, "claim, over tree, would borrow"},
		"E2: of another tree, and moved others":  {8, nil, func(r *sched.Room, _ *site) { r.Moved([]string{"w"}) }, "would borrow"},
		"E3: of a unit below":                    {0, units{4: 8}, givesWay(4), "claim, leaving, no victims, would borrow"},
		"E3: of a unit of the same priority":     {0, units{4: 4, 5: 4}, givesWay(5), "claim"},
		"E3: of a unit above":                    {8, nil, givesWay(6), "claim"},
		"E3: where they do not fit all the same": {2, units{4: 1, 5: 5}, givesWay(4), "claim"},
		"E3: of a unit whose node is gone":       {8, nil, func(r *sched.Room, _ *site) { r.Evictable(4, nil, nil) }, "claim"},
		"E4: a unit has left":                    {0, nil, func(r *sched.Room, _ *site) { r.Unleft() }, "claim, leaving"},
		"E5: a time has come":                    {0, nil, func(r *sched.Room, _ *site) { r.Due() }, "claim, over tree"},
		"a rare change":                          {0, nil, func(r *sched.Room, _ *site) { r.All() }, "claim, leaving, no place, no victims, over limit, over tree, would borrow"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := sleepers(t), newSite(t, c.free, c.units)
			if c.event(r, s); wokenOf(r) != c.wakes {
				t.Errorf("wakes %q, want %q", wokenOf(r), c.wakes)
			}
		})
	}
}

// TestWhoWaitsForOthers: as long as they sleep, and are there.
func TestWhoWaitsForOthers(t *testing.T) {
	for name, wait := range map[string]bool{"no place": false, "no victims": true, "leaving": true, "over limit": false, "over tree": false, "claim": true} {
		for end, f := range map[string]func(*sched.Room){
			"woken": func(r *sched.Room) { r.All() },
			"gone":  func(r *sched.Room) { r.Remove(queue.Key{Path: name}) },
			"held":  func(r *sched.Room) { r.Hold(queue.Key{Path: name}) },
		} {
			r := sched.NewRoom()
			r.Offer(queue.Key{Path: name}, sched.Traits{}, &place.Unit{})
			if r.Pass(1, trials{}); r.AwaitsOthers() != wait {
				t.Errorf("%s: waits %t", name, !wait)
			}
			if f(r); r.AwaitsOthers() {
				t.Errorf("%s: waits though it is %s", name, end)
			}
		}
	}
}
