package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// gangWorld is a few hosts with units of lower or higher priority, some of which are
// gangs, and a limit of GPUs.
type gangWorld struct {
	*sched.World
	free  []int
	limit int // -1 for none
}

func drawGangWorld(t *rapid.T) *gangWorld {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	host, err := fit.NewHost(profile.Topology(), profile.Inventory("n"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	w := &gangWorld{World: &sched.World{State: cluster.NewState(), Limits: quota.New(), Trees: quota.NewManager(quota.Options{}), Forest: "every", MaxOps: 1000}, limit: -1}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		n := &cluster.Node{ID: resource.NodeID(rune('a' + i)), Host: host, Free: host.NewFree(), Ready: true}
		w.State.Insert(n)
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "running") {
		gpus := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "held")
		plan, ok := place.Place(w.State, place.Unit{Members: 1, Request: resource.Request{GPUs: gpus, CPU: 1000, NUMA: resource.NUMANone}})
		if !ok {
			continue
		}
		o := &cluster.Occupant{
			Unit: fmt.Sprintf("u%d", i), Priority: int32(rapid.IntRange(0, 6).Draw(t, "priority")), Nodes: []resource.NodeID{plan[0].Node.ID},
			Parts: []cluster.Part{{Node: plan[0].Node.ID, Assignment: plan[0].Assignment}}, Started: int64(i),
			Status: rapid.SampledFrom([]cluster.Status{cluster.Evictable, cluster.Evictable, cluster.Evictable, cluster.Starting}).Draw(t, "status"),
		}
		if o.Gang = rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(t, "gang"); o.Gang != "" {
			o.Priority = 2 // of all members of a group
		}
		w.State.SetOccupant(o)
	}
	for _, n := range w.State.Nodes() {
		w.free = append(w.free, n.WholeGPUs)
	}
	if rapid.Bool().Draw(t, "limited") {
		w.limit = rapid.IntRange(0, 24).Draw(t, "limit")
		w.Limits.SetLimit(quota.Limit{Group: "ns", Name: "q", Hard: resource.Vector{resource.GPU: int64(w.limit) * 1000}})
	}
	return w
}

func drawGang(t *rapid.T) (units []*sched.Unit, wants []int) {
	for i := range rapid.IntRange(2, 4).Draw(t, "members") {
		gpus := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus")
		r := resource.Request{GPUs: gpus, CPU: 1000, NUMA: resource.NUMANone}
		units = append(units, &sched.Unit{
			Key: queue.Key{Priority: 5, Path: fmt.Sprintf("ns/alloc/m%d/0", i)}, Demand: place.Unit{Members: 1, Request: r}, Alike: fmt.Sprint(gpus),
			Right: sched.Lower, Charge: quota.Charge{Group: "ns", Request: r.Vector(), Members: 1}, Charges: []record.Charge{{Tree: quota.Tree, Group: "ns"}},
		})
		wants = append(wants, gpus)
	}
	return units, wants
}

// TestAGangStartsWholeOrNotAtAll compares decisions about groups with an oracle that
// tries all ways to put members on nodes, and all sets of victims.
func TestAGangStartsWholeOrNotAtAll(t *testing.T) {
	seen := map[sched.Action]int{}
	gangsEnded := 0
	check := func(t *rapid.T) {
		w := drawGangWorld(t)
		units, wants := drawGang(t)
		sum := 0
		for _, n := range wants {
			sum += n
		}
		d := w.DecideGang(units)
		seen[d.Action]++
		w.unchangedUnless(t, d.Action == sched.Start, sum)
		if w.limit >= 0 && sum > w.limit {
			if d.Action != sched.Wait || d.Evidence.Code != sched.OverLimit {
				t.Fatalf("%d GPUs with a limit of %d: %s, %+v", sum, w.limit, d.Action, d.Evidence)
			}
			return
		}
		switch fits := packs(w.free, wants); {
		case fits != (d.Action == sched.Start):
			t.Fatalf("members of %v GPUs on %v free: %s, the oracle says %t", wants, w.free, d.Action, fits)
		case d.Action == sched.Preempt:
			gangsEnded += w.verifyVictims(t, d.Victims, wants)
		case d.Action == sched.Wait && w.clears(w.holders(), wants):
			t.Fatalf("members of %v GPUs wait, and %v would make room: %+v", wants, w.holders(), d.Evidence)
		}
		if d.Action == sched.Wait {
			return
		}
		for i, plan := range d.Plans {
			if len(plan) != 1 || plan[0].Index != 0 || len(plan[0].Assignment.GPUs) != wants[i] {
				t.Fatalf("unit %d of %d GPUs: %+v", i, wants[i], plan)
			}
		}
	}
	actions := []sched.Action{sched.Wait, sched.Start, sched.Preempt}
	all := func() bool {
		return gangsEnded > 0 && !slices.ContainsFunc(actions, func(a sched.Action) bool { return seen[a] == 0 })
	}
	for round := 0; round == 0 || round < 10 && !all(); round++ { // one round may draw no gang that gives way
		rapid.Check(t, check)
	}
	if !all() {
		t.Errorf("actions %v, %d gangs gave way: want some of each", seen, gangsEnded)
	}
}

// unchangedUnless checks that the free GPUs have shrunk by a sum, or not at all.
func (w *gangWorld) unchangedUnless(t *rapid.T, started bool, sum int) {
	before, after := 0, 0
	for i, n := range w.State.Nodes() {
		before, after = before+w.free[i], after+n.WholeGPUs
	}
	if want := map[bool]int{true: before - sum, false: before}[started]; after != want {
		t.Fatalf("%d GPUs are free, want %d", after, want)
	}
	if err := w.Limits.Check(); err != nil {
		t.Fatal(err)
	}
	if used := w.Limits.Used("ns", "q"); used[resource.GPU] != 0 {
		t.Fatalf("%v is charged to the limit by a trial", used)
	}
}

// holders are the sets of units that end together and may: of lower priority, with all
// their mates.
func (w *gangWorld) holders() [][]*cluster.Occupant {
	byGang, may := map[string][]*cluster.Occupant{}, map[string]bool{}
	for o := range w.State.Occupants() {
		key := o.Gang
		if key == "" {
			key = "alone " + o.Unit
		}
		if byGang[key] == nil {
			may[key] = true
		}
		byGang[key] = append(byGang[key], o)
		may[key] = may[key] && o.Status == cluster.Evictable && o.Priority < 5
	}
	var sets [][]*cluster.Occupant
	for key, set := range byGang {
		if may[key] {
			sets = append(sets, set)
		}
	}
	return sets
}

// clears reports whether the end of all these makes room.
func (w *gangWorld) clears(sets [][]*cluster.Occupant, wants []int) bool {
	free := slices.Clone(w.free)
	for _, set := range sets {
		for _, o := range set {
			at := slices.IndexFunc(w.State.Nodes(), func(n *cluster.Node) bool { return n.ID == o.Nodes[0] })
			free[at] += len(o.Parts[0].Assignment.GPUs)
		}
	}
	return packs(free, wants)
}

// verifyVictims checks that victims may give way, are whole, make room, and that none
// is superfluous. It counts the gangs among them.
func (w *gangWorld) verifyVictims(t *rapid.T, victims []string, wants []int) (gangs int) {
	var chosen [][]*cluster.Occupant
	known := 0
	for _, set := range w.holders() {
		in := 0
		for _, o := range set {
			if slices.Contains(victims, o.Unit) {
				in++
			}
		}
		if in != 0 && in != len(set) {
			t.Fatalf("%d of %d units of gang %s give way", in, len(set), set[0].Gang)
		}
		if known += in; in > 0 {
			chosen = append(chosen, set)
		}
		if in > 1 {
			gangs++
		}
	}
	if known != len(victims) {
		t.Fatalf("%d of the victims %v may give way", known, victims)
	}
	if !w.clears(chosen, wants) {
		t.Fatalf("the victims %v make no room for %v", victims, wants)
	}
	for i := range chosen {
		if w.clears(slices.Delete(slices.Clone(chosen), i, i+1), wants) {
			t.Fatalf("%s is a superfluous victim for %v: %v", chosen[i][0].Unit, wants, victims)
		}
	}
	return gangs
}

// packs tries all ways to put members on nodes.
func packs(free, wants []int) bool {
	if len(wants) == 0 {
		return true
	}
	for i := range free {
		if free[i] < wants[0] {
			continue
		}
		left := slices.Clone(free)
		left[i] -= wants[0]
		if packs(left, wants[1:]) {
			return true
		}
	}
	return false
}

// TestAGangWakesForEachDemand: the units of a gang are one class. Room for the smallest
// of them wakes it, whichever was offered first.
func TestAGangWakesForEachDemand(t *testing.T) {
	for name, c := range map[string]struct {
		gpus  [2]int // of the units, in the order in which they are offered
		gang  string
		wakes bool
	}{
		"a gang, the larger first":       {[2]int{4, 1}, "g", true},
		"a gang, the smaller first":      {[2]int{1, 4}, "g", true},
		"a gang too large for the node":  {[2]int{4, 3}, "g", false},
		"no gang: the first has no room": {[2]int{4, 4}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := sched.NewRoom()
			for i, gpus := range c.gpus {
				demand := place.Unit{Members: 1, Request: resource.Request{GPUs: gpus, CPU: 1000}}
				r.Offer(queue.Key{Path: []string{"no place", "no place too"}[i]}, sched.Traits{Demand: "d", Gang: c.gang, Namespace: "a"}, &demand)
			}
			r.Pass(1, gangTrial{})
			s := newSite(t, 2, nil)
			r.Grew(s.Node, s.held)
			if r.Busy() != c.wakes {
				t.Errorf("awake %t, want %t", r.Busy(), c.wakes)
			}
		})
	}
}

// gangTrial finds no place.
type gangTrial struct{}

// Try fails (sched.Trial).
func (gangTrial) Try(queue.Key, bool) *sched.Evidence { return &sched.Evidence{Code: sched.NoPlace} }

// Wait is sched.Trial's.
func (gangTrial) Wait(string, *sched.Evidence) {}
