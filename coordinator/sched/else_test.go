package sched_test

import (
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// either gives every unit one piece of evidence.
type either struct{ e *sched.Evidence }

// Try fails (sched.Trial).
func (t either) Try(queue.Key, bool) *sched.Evidence { return t.e }

// Wait is sched.Trial's.
func (either) Wait(string, *sched.Evidence) {}

// A class sleeps on the evidence of its own request and of each alternative: an event
// that helps one of them wakes the class. The request asks for 4 GPUs of the half 1, the
// alternative for 4 GPUs of the half 0, where the node is.
func TestAnEventHelpsAnAlternative(t *testing.T) {
	demand := func(half string) *place.Unit {
		return &place.Unit{
			Members: 1, Request: resource.Request{GPUs: 4, CPU: 1000},
			Constraints: constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"half": half}}),
		}
	}
	for name, c := range map[string]struct {
		own, other sched.Code
		happens    func(*sched.Room, *site)
		free       int
		want       bool
	}{
		"a node has room for the alternative":         {sched.NoPlace, sched.NoPlace, grew, 4, true},
		"a node has too little for the alternative":   {sched.NoPlace, sched.NoPlace, grew, 3, false},
		"the alternative waits for quota, not a node": {sched.NoPlace, sched.OverLimit, grew, 4, false},
		"the request alone waits for quota":           {sched.OverLimit, sched.NoPlace, grew, 4, true},
		"quota of the namespace was freed":            {sched.NoPlace, sched.OverLimit, func(r *sched.Room, _ *site) { r.Freed("a", nil) }, 0, true},
		"quota of a tree was freed":                   {sched.NoPlace, sched.OverTree, func(r *sched.Room, _ *site) { r.Freed("b", []string{"x"}) }, 0, true},
		"quota of another tree was freed":             {sched.NoPlace, sched.OverTree, func(r *sched.Room, _ *site) { r.Freed("b", []string{"z"}) }, 0, false},
		"a charge to the tree of a claim":             {sched.OverTree, sched.Claim, func(r *sched.Room, _ *site) { r.Charged([]string{"x"}) }, 0, true},
		"a time has come":                             {sched.NoPlace, sched.OverTree, func(r *sched.Room, _ *site) { r.Due() }, 0, true},
		"a unit may give way":                         {sched.NoPlace, sched.NoVictims, func(r *sched.Room, n *site) { r.Evictable(1, []*cluster.Node{n.Node}, n.held) }, 4, true},
		"a unit has left":                             {sched.NoPlace, sched.Leaving, func(r *sched.Room, _ *site) { r.Unleft() }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := sched.NewRoom()
			r.Offer(queue.Key{Path: "u"}, sched.Traits{Demand: "either", Namespace: "a", Priority: 5}, demand("1"), demand("0"))
			r.Pass(1, either{&sched.Evidence{Code: c.own, Trees: []string{"x"}, Else: []*sched.Evidence{{Code: c.other, Trees: []string{"x"}}}}})
			if r.Asleep("u") == nil {
				t.Fatal("the class does not sleep")
			}
			c.happens(r, newSite(t, c.free, nil))
			if woken := r.Asleep("u") == nil; woken != c.want {
				t.Errorf("the class is woken: %t, want %t", woken, c.want)
			}
		})
	}
}

func grew(r *sched.Room, n *site) { r.Grew(n.Node, n.held) }

func TestQuotaRefusesAllRequestsOrNone(t *testing.T) {
	for name, c := range map[string]struct {
		e    sched.Evidence
		want bool
	}{
		"the request alone":                {sched.Evidence{Code: sched.OverLimit}, true},
		"both":                             {sched.Evidence{Code: sched.OverLimit, Else: []*sched.Evidence{{Code: sched.OverTree}}}, true},
		"the request and no alternative":   {sched.Evidence{Code: sched.OverLimit, Else: []*sched.Evidence{{Code: sched.NoPlace}}}, false},
		"the alternative, not the request": {sched.Evidence{Code: sched.NoPlace, Else: []*sched.Evidence{{Code: sched.OverLimit}}}, false},
	} {
		if got := c.e.OverQuota(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
