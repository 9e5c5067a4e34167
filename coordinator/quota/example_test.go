package quota_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

func gpus(n int64) resource.Vector { return resource.Vector{"gpus": n} }

// lab is a manager in normal mode with one tree.
func lab(o quota.Options, nodes map[string]quota.NodeSpec) *quota.Manager {
	m := quota.NewManager(o)
	if _, err := m.AddTree(quota.TreeSpec{Name: "lab", Resources: []resource.Name{"gpus"}, Nodes: nodes}); err != nil {
		panic(err)
	}
	if err := m.SetMode(quota.Normal); err != nil {
		panic(err)
	}
	return m
}

// arrive registers a consumer and says what became of it.
func arrive(m *quota.Manager, id, owner string, d quota.Demand) {
	d.Tree = "lab"
	if err := m.AddConsumer(quota.ConsumerSpec{ID: id, Owner: owner, Demands: []quota.Demand{d}}); err != nil {
		panic(err)
	}
	r, err := m.Allocate("lab", id)
	switch {
	case err != nil:
		fmt.Println(err)
	case !r.OK:
		fmt.Printf("%s: %v\n", id, r.Refusal)
	case len(r.Preempted) > 0:
		fmt.Printf("%s: on %s, evicts %s\n", id, r.Placed[0].Node, strings.Join(r.Preempted, " "))
	default:
		fmt.Printf("%s: on %s\n", id, r.Placed[0].Node)
	}
}

// Two teams share a laboratory. What nlp leaves unused, vision may borrow,
// until nlp claims it back.
func Example() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{
		"all":    {Quota: gpus(8)},
		"vision": {Parent: "all", Quota: gpus(4)},
		"nlp":    {Parent: "all", Quota: gpus(4)},
	})
	arrive(m, "train", "", quota.Demand{Group: "vision", Request: gpus(4)})
	arrive(m, "sweep", "", quota.Demand{Group: "vision", Request: gpus(3)})
	arrive(m, "huge", "", quota.Demand{Group: "nlp", Request: gpus(5)})
	sweep, _ := m.Consumer("sweep")
	fmt.Println("sweep borrows from", sweep.Placements[0].BorrowsFrom, "and may be claimed back by", sweep.Placements[0].ReclaimableBy)
	arrive(m, "tune", "", quota.Demand{Group: "nlp", Request: gpus(2)})
	// Output:
	// train: on vision
	// sweep: on all
	// huge: over quota: tree lab, node all: gpus: want 5, have 1
	// sweep borrows from [nlp] and may be claimed back by [nlp]
	// tune: on nlp, evicts sweep
}

// An owner below a hard inner node has a right to its quota, and cannot use
// it, since there its sharers cannot be pushed up.
func ExampleOptions_evictAtHard() {
	for _, on := range []bool{false, true} {
		m := lab(quota.Options{EvictAtHard: on}, map[string]quota.NodeSpec{
			"all":  {Quota: gpus(4)},
			"dept": {Parent: "all", Quota: gpus(2), Hard: true},
			"a":    {Parent: "dept", Quota: gpus(1)},
			"b":    {Parent: "dept", Quota: gpus(1)},
		})
		fmt.Println("EvictAtHard", on)
		arrive(m, "a1", "", quota.Demand{Group: "a", Request: gpus(1)})
		arrive(m, "a2", "", quota.Demand{Group: "a", Request: gpus(1)})
		arrive(m, "b1", "", quota.Demand{Group: "b", Request: gpus(1)})
	}
	// Output:
	// EvictAtHard false
	// a1: on a
	// a2: on dept
	// b1: over quota: tree lab, node dept: gpus: want 1, have 0
	// EvictAtHard true
	// a1: on a
	// a2: on dept
	// b1: on b, evicts a2
}

// A departure makes room on two levels, and the sharer at the root moves down
// one of them, or both.
func ExampleOptions_settle() {
	for _, on := range []bool{false, true} {
		m := lab(quota.Options{Settle: on}, map[string]quota.NodeSpec{
			"all":  {Quota: gpus(4)},
			"dept": {Parent: "all", Quota: gpus(2)},
			"team": {Parent: "dept", Quota: gpus(2)},
		})
		fmt.Println("Settle", on)
		arrive(m, "first", "", quota.Demand{Group: "team", Request: gpus(2)})
		arrive(m, "second", "", quota.Demand{Group: "team", Request: gpus(2)})
		m.Deallocate("lab", "first")
		second, _ := m.Consumer("second")
		fmt.Println("first leaves, second is on", second.Placements[0].Node)
	}
	// Output:
	// Settle false
	// first: on team
	// second: on all
	// first leaves, second is on dept
	// Settle true
	// first: on team
	// second: on all
	// first leaves, second is on team
}

// A node that was forced over quota in one resource turns away everybody, or
// those who ask for that resource.
func ExampleOptions_ignoreOverdrawn() {
	for _, on := range []bool{false, true} {
		m := quota.NewManager(quota.Options{IgnoreOverdrawn: on})
		if _, err := m.AddTree(quota.TreeSpec{Name: "lab", Resources: []resource.Name{"disks", "gpus"}, Nodes: map[string]quota.NodeSpec{
			"all": {Quota: resource.Vector{"disks": 4, "gpus": 1}},
		}}); err != nil {
			panic(err)
		}
		fmt.Println("IgnoreOverdrawn", on)
		arrive(m, "forced", "", quota.Demand{Group: "all", Request: gpus(2)}) // in maintenance
		if err := m.SetMode(quota.Normal); err != nil {
			panic(err)
		}
		arrive(m, "backup", "", quota.Demand{Group: "all", Request: resource.Vector{"disks": 1}})
	}
	// Output:
	// IgnoreOverdrawn false
	// forced: on all
	// backup: over quota: tree lab, node all: gpus: want 0, have -1
	// IgnoreOverdrawn true
	// forced: on all
	// backup: on all
}

// Who has to go: the oldest until it fits, or the least important, and nobody
// in vain.
func ExampleOptions_fewestVictims() {
	for _, on := range []bool{false, true} {
		m := lab(quota.Options{FewestVictims: on}, map[string]quota.NodeSpec{"all": {Quota: gpus(4)}})
		fmt.Println("FewestVictims", on)
		arrive(m, "old", "", quota.Demand{Group: "all", Request: gpus(1), Priority: 3})
		arrive(m, "low", "", quota.Demand{Group: "all", Request: gpus(1)})
		arrive(m, "mid", "", quota.Demand{Group: "all", Request: gpus(2), Priority: 1})
		arrive(m, "new", "", quota.Demand{Group: "all", Request: gpus(2), Priority: 5})
	}
	// Output:
	// FewestVictims false
	// old: on all
	// low: on all
	// mid: on all
	// new: on all, evicts old low
	// FewestVictims true
	// old: on all
	// low: on all
	// mid: on all
	// new: on all, evicts mid
}

// A consumer that cannot be evicted should not borrow, for its lender would
// never get it back.
func ExampleOptions_pinnedWithinQuota() {
	for _, on := range []bool{false, true} {
		m := lab(quota.Options{PinnedWithinQuota: on}, map[string]quota.NodeSpec{
			"all": {Quota: gpus(2)},
			"a":   {Parent: "all", Quota: gpus(1)},
			"b":   {Parent: "all", Quota: gpus(1)},
		})
		fmt.Println("PinnedWithinQuota", on)
		arrive(m, "a1", "", quota.Demand{Group: "a", Request: gpus(1)})
		arrive(m, "a2", "", quota.Demand{Group: "a", Request: gpus(1), Unpreemptable: true})
		arrive(m, "b1", "", quota.Demand{Group: "b", Request: gpus(1)})
	}
	// Output:
	// PinnedWithinQuota false
	// a1: on a
	// a2: on all
	// b1: over quota: tree lab, node all: gpus: want 1, have 0
	// PinnedWithinQuota true
	// a1: on a
	// a2: over quota: tree lab, node a: gpus: want 1, have 0
	// b1: on b
}

// Whoever has just started is left alone for a while.
func ExampleOptions_minRunTime() {
	m := lab(quota.Options{MinRunTime: time.Hour}, map[string]quota.NodeSpec{"all": {Quota: gpus(1)}})
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m.SetNow(start)
	arrive(m, "low", "", quota.Demand{Group: "all", Request: gpus(1)})
	m.SetNow(start.Add(59 * time.Minute))
	arrive(m, "early", "", quota.Demand{Group: "all", Request: gpus(1), Priority: 1})
	m.SetNow(start.Add(time.Hour))
	arrive(m, "late", "", quota.Demand{Group: "all", Request: gpus(1), Priority: 1})
	// Output:
	// low: on all
	// early: over quota: tree lab, node all: gpus: want 1, have 0
	// late: on all, evicts low
}

// A soft node that borrows no more than it is allowed to.
func ExampleNodeSpec_borrowing() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{
		"all": {Quota: gpus(8)},
		"a":   {Parent: "all", Quota: gpus(2), Borrowing: gpus(1)},
	})
	arrive(m, "a1", "", quota.Demand{Group: "a", Request: gpus(2)})
	arrive(m, "a2", "", quota.Demand{Group: "a", Request: gpus(1)})
	arrive(m, "a3", "", quota.Demand{Group: "a", Request: gpus(1)})
	// Output:
	// a1: on a
	// a2: on all
	// a3: over the borrowing limit: tree lab, node a: gpus: want 1, have 0
}

// A node that lends no more than it wants to: the rest is free when it comes.
func ExampleNodeSpec_lending() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{
		"all": {Quota: gpus(4)},
		"a":   {Parent: "all", Quota: gpus(1)},
		"b":   {Parent: "all", Quota: gpus(3), Lending: gpus(1)},
	})
	arrive(m, "a1", "", quota.Demand{Group: "a", Request: gpus(1)})
	arrive(m, "a2", "", quota.Demand{Group: "a", Request: gpus(1)})
	arrive(m, "a3", "", quota.Demand{Group: "a", Request: gpus(1)})
	arrive(m, "b1", "", quota.Demand{Group: "b", Request: gpus(2)})
	// Output:
	// a1: on a
	// a2: on all
	// a3: over quota: tree lab, node all: gpus: want 1, have 0
	// b1: on b
}

// A cap counts what is borrowed too.
func ExampleNodeSpec_cap() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{
		"all": {Quota: gpus(8)},
		"a":   {Parent: "all", Quota: gpus(2), Cap: gpus(3)},
	})
	arrive(m, "a1", "", quota.Demand{Group: "a", Request: gpus(2)})
	arrive(m, "a2", "", quota.Demand{Group: "a", Request: gpus(2)})
	// Output:
	// a1: on a
	// a2: over cap: tree lab, node a: gpus: want 2, have 1
}

// One owner does not take all of a group.
func ExampleNodeSpec_perOwner() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{
		"all": {Quota: gpus(8)},
		"a":   {Parent: "all", Quota: gpus(4), PerOwner: gpus(2)},
	})
	arrive(m, "a1", "ann", quota.Demand{Group: "a", Request: gpus(2)})
	arrive(m, "a2", "ann", quota.Demand{Group: "a", Request: gpus(1)})
	arrive(m, "b1", "bob", quota.Demand{Group: "a", Request: gpus(2)})
	// Output:
	// a1: on a
	// a2: over the owner's limit: tree lab, node a: gpus: want 1, have 0
	// b1: on a
}

// A checkpoint takes back several calls at once: would the owner fit if the two
// sharers ended?
func ExampleManager_Checkpoint() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{"all": {Quota: gpus(3)}, "a": {Parent: "all"}, "b": {Parent: "all", Quota: gpus(3)}})
	for _, id := range []string{"x", "y", "z"} {
		arrive(m, id, "", quota.Demand{Group: "a", Request: gpus(1)})
	}
	if err := m.AddConsumer(quota.ConsumerSpec{ID: "owner", Demands: []quota.Demand{{Tree: "lab", Group: "b", Request: gpus(2)}}}); err != nil {
		panic(err)
	}
	mark := m.Checkpoint()
	m.Deallocate("lab", "x")
	m.Deallocate("lab", "y")
	r, err := m.Allocate("lab", "owner")
	fmt.Println(r.OK, r.Preempted, err)
	fmt.Println(m.Rollback(mark), m.IsAllocated("lab", "x"), m.IsAllocated("lab", "y"), m.IsAllocated("lab", "owner"))
	// Output:
	// x: on all
	// y: on all
	// z: on all
	// true [] <nil>
	// <nil> true true false
}

// A try shows who would have to go, and the undo is as if nothing had been.
func ExampleManager_TryAllocate() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{"all": {Quota: gpus(2)}})
	arrive(m, "low", "", quota.Demand{Group: "all", Request: gpus(2)})
	if err := m.AddConsumer(quota.ConsumerSpec{ID: "high", Demands: []quota.Demand{{Tree: "lab", Group: "all", Request: gpus(1), Priority: 1}}}); err != nil {
		panic(err)
	}
	r, err := m.TryAllocate("lab", "high")
	fmt.Println(r.OK, r.Preempted, err)
	fmt.Println(m.UndoAllocate("lab", "high"), m.IsAllocated("lab", "low"), m.IsAllocated("lab", "high"))
	// Output:
	// low: on all
	// true [low] <nil>
	// <nil> true false
}
