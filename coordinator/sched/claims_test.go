package sched_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
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

const (
	claimTree   = "org"
	claimForest = "every"
)

// claims is a world of one host, on which each unit has room unless the test says
// otherwise: quota decides. A claim takes effect at once, and its victims wait again.
type claims struct {
	tb      rapid.TB
	world   *sched.World
	units   []*sched.Unit // in the order in which a pass tries them
	running map[string][]place.Choice
}

func newClaims(tb rapid.TB, o quota.Options, tree quota.TreeSpec) *claims {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		tb.Fatal(err)
	}
	host, err := fit.NewHostLike(nil, profile.Topology(), profile.Inventory("n1"), fit.Reserved{})
	if err != nil {
		tb.Fatal(err)
	}
	state := cluster.NewState()
	state.Insert(&cluster.Node{ID: "n1", Ready: true, Host: host, Free: host.NewFree()})
	trees := quota.NewManager(o)
	_, failed := trees.AddTree(tree)
	for _, err := range []error{trees.SetMode(quota.Normal), failed, trees.AddForest(claimForest), trees.AddTreeToForest(claimForest, tree.Name)} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return &claims{
		tb: tb, running: map[string][]place.Choice{},
		world: &sched.World{State: state, Limits: quota.New(), Trees: trees, Forest: claimForest, MaxOps: 1000},
	}
}

// add has a unit wait.
func (c *claims) add(path string, priority int32, d quota.Demand) *sched.Unit {
	d.Tree, d.Priority = claimTree, int(priority)
	c.must(c.world.Trees.AddConsumer(quota.ConsumerSpec{ID: path, Demands: []quota.Demand{d}}))
	u := &sched.Unit{
		Key: queue.Key{Priority: priority, Counter: uint64(len(c.units)), Path: path}, Right: sched.Lower,
		Demand:  place.Unit{Members: 1, Request: resource.Request{CPU: 1}},
		Charges: []record.Charge{{Tree: quota.Tree, Group: "x"}, {Tree: claimTree, Group: d.Group, Request: d.Request}},
	}
	c.units = append(c.units, u)
	return u
}

// try decides about a unit that waits, and carries the decision out.
func (c *claims) try(u *sched.Unit) sched.Decision {
	d := c.world.Decide(u)
	if d.Action == sched.Wait {
		return d
	}
	for _, v := range d.Victims {
		c.end(v)
	}
	if d.Claims {
		r, err := c.world.Trees.AllocateForest(claimForest, u.Key.Path)
		if err != nil || !r.OK || len(r.Preempted) > 0 {
			c.tb.Fatalf("%s has evicted %v and is not charged: %+v, %v", u.Key.Path, d.Victims, r, err)
		}
	}
	c.running[u.Key.Path] = d.Plan
	o := &cluster.Occupant{Unit: u.Key.Path, Priority: u.Key.Priority, Nodes: []resource.NodeID{"n1"}, Status: cluster.Evictable, Subject: u.Demand.Subject}
	for _, m := range d.Plan {
		if d.Action == sched.Preempt {
			c.must(c.world.State.Take(m.Node, m.Assignment))
		}
		o.Parts = append(o.Parts, cluster.Part{Node: m.Node.ID, Assignment: m.Assignment})
	}
	c.world.State.SetOccupant(o)
	return d
}

func (c *claims) must(err error) {
	if err != nil {
		c.tb.Fatal(err)
	}
}

// end ends a unit that runs. The unit waits again.
func (c *claims) end(path string) {
	c.world.Trees.DeallocateForest(claimForest, path)
	c.world.State.RemoveOccupant(path)
	for _, m := range c.running[path] {
		c.must(c.world.State.Give(m.Node, m.Assignment))
	}
	delete(c.running, path)
}

// rank is how firmly a unit that runs holds its quota.
type rank struct{ height, priority int }

// potential is the ranks of the units that run, the highest first.
func (c *claims) potential() []rank {
	var all []rank
	for _, u := range c.units {
		if height, _, charged := c.world.Trees.Rank(claimTree, u.Key.Path); charged || c.running[u.Key.Path] != nil {
			all = append(all, rank{height, int(u.Key.Priority)})
		}
	}
	slices.SortFunc(all, func(a, b rank) int { return -compareRanks(a, b) })
	return all
}

func compareRanks(a, b rank) int {
	return cmp.Or(cmp.Compare(b.height, a.height), cmp.Compare(a.priority, b.priority))
}

// settle tries the units that wait, the first first, until no unit can begin. Each
// unit that begins increases the potential, so the loop ends.
func (c *claims) settle() (displaced int) {
	before := c.potential()
	for again := true; again; {
		again = false
		for _, u := range c.units {
			if c.running[u.Key.Path] != nil {
				continue
			}
			d := c.try(u)
			if d.Action == sched.Wait {
				continue
			}
			after := c.potential()
			if slices.CompareFunc(after, before, compareRanks) <= 0 {
				c.tb.Fatalf("%s begins in the place of %v, and the potential falls from %v to %v", u.Key.Path, d.Victims, before, after)
			}
			before, again, displaced = after, true, displaced+len(d.Victims)
		}
	}
	return displaced
}

// TestClaimsComeToAnEnd: on any tree, with any options, the units that wait stop taking
// quota from each other. Departures and arrivals begin anew.
func TestClaimsComeToAnEnd(t *testing.T) {
	displaced := 0
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		c := newClaims(t, quota.Options{
			EvictAtHard: flag("evictAtHard"), Settle: flag("settle"), IgnoreOverdrawn: flag("ignoreOverdrawn"),
			FewestVictims: flag("fewestVictims"), PinnedWithinQuota: flag("pinnedWithinQuota"),
		}, randomTree(t))
		leaves := c.leaves()
		for i := range rapid.IntRange(4, 14).Draw(t, "units") {
			c.add(fmt.Sprintf("u%d", i), int32(rapid.IntRange(0, 3).Draw(t, "priority")), quota.Demand{
				Group: rapid.SampledFrom(leaves).Draw(t, "group"), Request: randomAmounts(t, 3),
				Unpreemptable: rapid.IntRange(0, 9).Draw(t, "unpreemptable") == 0, Type: rapid.IntRange(0, 9).Draw(t, "type") / 9,
			})
		}
		c.units = rapid.Permutation(c.units).Draw(t, "order")
		for range 4 {
			displaced += c.settle()
			for _, u := range c.units {
				if c.running[u.Key.Path] != nil && rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
					c.end(u.Key.Path)
				}
			}
			c.units = rapid.Permutation(c.units).Draw(t, "order")
		}
	})
	if displaced == 0 {
		t.Error("nobody was displaced: the trees leave room for everybody")
	}
}

// TestPlacesAndClaimsComeToAnEnd: units that take places by priority from each other, and
// quota by their standing, stop doing so; units without quota trees among them.
func TestPlacesAndClaimsComeToAnEnd(t *testing.T) {
	displaced := 0
	rapid.Check(t, func(t *rapid.T) {
		c := newClaims(t, quota.Options{Settle: rapid.Bool().Draw(t, "settle"), EvictAtHard: rapid.Bool().Draw(t, "evictAtHard")}, randomTree(t))
		leaves := c.leaves()
		for i := range rapid.IntRange(3, 9).Draw(t, "units") {
			name, priority := fmt.Sprintf("u%d", i), int32(rapid.IntRange(0, 3).Draw(t, "priority"))
			u := c.add(name, priority, quota.Demand{Group: rapid.SampledFrom(leaves).Draw(t, "group"), Request: randomAmounts(t, 3)})
			if rapid.IntRange(0, 5).Draw(t, "in no tree") == 0 {
				u.Charges = u.Charges[:1]
			}
			u.Demand.Request.GPUs = rapid.SampledFrom([]int{0, 2, 4, 8}).Draw(t, "gpus")
		}
		c.units = rapid.Permutation(c.units).Draw(t, "order")
		for range 4 {
			displaced += c.settle()
			for _, u := range c.units {
				if c.running[u.Key.Path] != nil && rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
					c.end(u.Key.Path)
				}
			}
			c.units = rapid.Permutation(c.units).Draw(t, "order")
		}
	})
	if displaced == 0 {
		t.Error("nobody was displaced: there is room for everybody")
	}
}

// TestABorrowerTakesNoPlaceOfAnOwner: three units went round. One preempts the owner of a
// quota for its place, another one borrows the quota and preempts the first, and the owner
// claims its quota back.
func TestABorrowerTakesNoPlaceOfAnOwner(t *testing.T) {
	one := resource.Vector{resource.CPU: 1}
	c := newClaims(t, quota.Options{}, quota.TreeSpec{Name: claimTree, Resources: []resource.Name{resource.CPU}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: resource.Vector{resource.CPU: 2}}, "a": {Parent: "root", Quota: one}, "deep": {Parent: "root", Quota: one}, "b": {Parent: "deep", Quota: one},
		"c": {Parent: "root", Quota: resource.Vector{}},
	}})
	owner := c.add("owner", 1, quota.Demand{Group: "a", Request: one})
	other := c.add("other", 2, quota.Demand{Group: "b", Request: one})
	borrower := c.add("borrower", 3, quota.Demand{Group: "c", Request: one})
	for _, u := range c.units {
		u.Demand.Request.GPUs = 8
	}
	if d := c.try(owner); d.Action != sched.Start {
		t.Fatalf("the owner: %s, %+v", d.Action, d.Evidence)
	}
	if d := c.try(other); d.Action != sched.Preempt || d.Claims || !slices.Equal(d.Victims, []string{"owner"}) {
		t.Fatalf("an owner of higher priority: %s of %v, %+v", d.Action, d.Victims, d.Evidence)
	}
	d := c.try(borrower)
	if d.Action != sched.Wait || d.Evidence.Code != sched.NoVictims || !d.Evidence.Borrows {
		t.Fatalf("a borrower: %s of %v, %+v", d.Action, d.Victims, d.Evidence)
	}
	c.world.Trees.DeallocateForest(claimForest, other.Key.Path)
	if d := c.world.Decide(borrower); d.Action != sched.Wait {
		t.Errorf("a unit that is counted on no tree keeps its place: %s, %+v", d.Action, d.Evidence)
	}
}

// TestABorrowerTakesThePlaceOfABorrower of lower priority that borrows from as far.
func TestABorrowerTakesThePlaceOfABorrower(t *testing.T) {
	one := resource.Vector{resource.CPU: 1}
	tree := quota.TreeSpec{Name: claimTree, Resources: []resource.Name{resource.CPU}, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: resource.Vector{resource.CPU: 5}}, "near": {Parent: "root", Quota: one}, "a": {Parent: "near"}, "b": {Parent: "root"}, "c": {Parent: "root"},
	}}
	for group, preempts := range map[string]bool{"b": true, "a": false} { // from the root, and from its parent
		c := newClaims(t, quota.Options{}, tree)
		victim := c.add("victim", 1, quota.Demand{Group: group, Request: one})
		borrower := c.add("borrower", 2, quota.Demand{Group: "c", Request: one})
		victim.Demand.Request.GPUs, borrower.Demand.Request.GPUs = 8, 8
		if d := c.try(victim); d.Action != sched.Start {
			t.Fatalf("%s, %+v", d.Action, d.Evidence)
		}
		if d := c.try(borrower); (d.Action == sched.Preempt) != preempts {
			t.Errorf("from a unit of %s: %s, %+v", group, d.Action, d.Evidence)
		}
	}
}

// TestAGroupThatBorrowsTakesNoPlaceOfAnOwner: one of two members borrows, and the two start
// together.
func TestAGroupThatBorrowsTakesNoPlaceOfAnOwner(t *testing.T) {
	one := resource.Vector{resource.CPU: 1}
	for own, preempts := range map[int64]bool{1: false, 2: true} { // CPUs of the group's quota
		c := newClaims(t, quota.Options{}, quota.TreeSpec{Name: claimTree, Resources: []resource.Name{resource.CPU}, Nodes: map[string]quota.NodeSpec{
			"root": {Quota: resource.Vector{resource.CPU: 5}}, "a": {Parent: "root", Quota: one}, "b": {Parent: "root", Quota: resource.Vector{resource.CPU: own}},
		}})
		owner := c.add("owner", 1, quota.Demand{Group: "a", Request: one})
		members := []*sched.Unit{c.add("m1", 2, quota.Demand{Group: "b", Request: one}), c.add("m2", 2, quota.Demand{Group: "b", Request: one})}
		owner.Demand.Request.GPUs = 8
		if d := c.try(owner); d.Action != sched.Start {
			t.Fatalf("the owner: %s, %+v", d.Action, d.Evidence)
		}
		members[0].Demand.Request.GPUs, members[1].Demand.Request.GPUs = 4, 4
		d := c.world.DecideGang(members)
		if (d.Action == sched.Preempt) != preempts {
			t.Errorf("with %d CPUs: %s of %v, %+v", own, d.Action, d.Victims, d.Evidence)
		}
		if d.Action == sched.Wait && (d.Evidence.Code != sched.NoVictims || !d.Evidence.Borrows) {
			t.Errorf("it waits by %+v", d.Evidence)
		}
	}
}

// TestAUnitThatBorrowsAModelTakesNoPlaceOfItsOwner: the model that a unit gets, and so the
// quota that it borrows, is known with the place.
func TestAUnitThatBorrowsAModelTakesNoPlaceOfItsOwner(t *testing.T) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	model := resource.GPUOf(profile.Inventory("n1").Devices[0].Model)
	eight := resource.Vector{model: 8000}
	for own, preempts := range map[int64]bool{0: false, 8000: true} {
		c := newClaims(t, quota.Options{}, quota.TreeSpec{Name: claimTree, Resources: []resource.Name{model}, Nodes: map[string]quota.NodeSpec{
			"root": {Quota: resource.Vector{model: 16_000}}, "a": {Parent: "root", Quota: eight}, "b": {Parent: "root", Quota: resource.Vector{model: own}},
		}})
		for i, group := range []string{"a", "b"} {
			c.add(group, int32(i), quota.Demand{Group: group}).Demand.Request.GPUs = 8
		}
		if d := c.try(c.units[0]); d.Action != sched.Start || d.Models[model] != 8000 {
			t.Fatalf("the owner: %s, %+v", d.Action, d.Evidence)
		}
		d := c.world.Decide(c.units[1])
		if (d.Action == sched.Preempt) != preempts {
			t.Errorf("with a quota of %d: %s of %v, %+v", own, d.Action, d.Victims, d.Evidence)
		}
		if d.Action == sched.Wait && (d.Evidence.Code != sched.NoVictims || !d.Evidence.Borrows || len(d.Victims) > 0) {
			t.Errorf("it waits by %+v", d.Evidence)
		}
	}
}

var claimResources = []resource.Name{resource.CPU, resource.GPU}

// randomTree has two levels below its root. A parent may have less than its children.
func randomTree(t *rapid.T) quota.TreeSpec {
	tree := quota.TreeSpec{Name: claimTree, Resources: claimResources, Nodes: map[string]quota.NodeSpec{"root": {Quota: randomAmounts(t, 5)}}}
	for i := range rapid.IntRange(1, 3).Draw(t, "children") {
		child := fmt.Sprintf("n%d", i)
		tree.Nodes[child] = randomNode(t, "root")
		for j := range rapid.IntRange(0, 2).Draw(t, "grandchildren") {
			tree.Nodes[fmt.Sprintf("%s.%d", child, j)] = randomNode(t, child)
		}
	}
	return tree
}

func randomNode(t *rapid.T, parent string) quota.NodeSpec {
	n := quota.NodeSpec{Parent: parent, Hard: rapid.IntRange(0, 4).Draw(t, "hard") == 0, Quota: randomAmounts(t, 4)}
	if rapid.IntRange(0, 5).Draw(t, "limited") == 0 {
		n.Borrowing = randomAmounts(t, 3)
	}
	if rapid.IntRange(0, 5).Draw(t, "lends less") == 0 {
		n.Lending = randomAmounts(t, 3)
	}
	return n
}

func randomAmounts(t *rapid.T, most int64) resource.Vector {
	v := resource.Vector{}
	for _, name := range claimResources {
		v[name] = rapid.Int64Range(0, most).Draw(t, string(name))
	}
	return v
}

// leaves are the groups of the tree.
func (c *claims) leaves() []string {
	nodes, err := c.world.Trees.Nodes(claimTree)
	c.must(err)
	var leaves []string
	for _, n := range nodes {
		if n.Leaf {
			leaves = append(leaves, n.Name)
		}
	}
	return leaves
}

// TestWhoMayClaimFromWhom: a claim takes from units that stand weaker, and from no
// others.
func TestWhoMayClaimFromWhom(t *testing.T) {
	one := resource.Vector{resource.CPU: 1}
	both := resource.Vector{resource.CPU: 1, resource.GPU: 1}
	tree := quota.TreeSpec{Name: claimTree, Resources: claimResources, Nodes: map[string]quota.NodeSpec{
		"root": {Quota: both}, "a": {Parent: "root", Quota: one}, "b": {Parent: "root", Quota: one},
	}}
	cases := map[string]struct {
		running, claimant quota.Demand
		priorities        [2]int32 // of the one that runs, and of the claimant
		begins            bool
	}{
		"an owner takes its quota back from a borrower of higher priority": {
			quota.Demand{Group: "b", Request: both}, quota.Demand{Group: "a", Request: one}, [2]int32{9, 0}, true,
		},
		"an owner of low priority takes the quota of its group back from a borrower of its group": {
			quota.Demand{Group: "a", Request: both}, quota.Demand{Group: "a", Request: one}, [2]int32{9, 0}, true,
		},
		"a unit that would borrow does not evict an owner of its group by priority": {
			quota.Demand{Group: "a", Request: one}, quota.Demand{Group: "a", Request: both}, [2]int32{0, 9}, false,
		},
		"among borrowers the higher priority decides": {
			quota.Demand{Group: "b", Request: both}, quota.Demand{Group: "a", Request: both}, [2]int32{0, 9}, true,
		},
		"a borrower of equal priority stays": {
			quota.Demand{Group: "b", Request: both}, quota.Demand{Group: "a", Request: both}, [2]int32{9, 9}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClaims(t, quota.Options{}, tree)
			if d := c.try(c.add("running", tc.priorities[0], tc.running)); d.Action != sched.Start {
				t.Fatalf("the first unit: %s, %+v", d.Action, d.Evidence)
			}
			d := c.try(c.add("claimant", tc.priorities[1], tc.claimant))
			if begins := d.Action == sched.Preempt; begins != tc.begins {
				t.Errorf("%s, %+v", d.Action, d.Evidence)
			}
		})
	}
}

// A boost may raise a unit above another of its job that holds the quota of both: it stays.
func TestAClaimTakesNothingFromItsOwnJob(t *testing.T) {
	one := resource.Vector{resource.CPU: 1}
	for group, begins := range map[string]bool{"job/a": false, "job/b": true} {
		c := newClaims(t, quota.Options{}, quota.TreeSpec{Name: claimTree, Resources: claimResources, Nodes: map[string]quota.NodeSpec{
			"root": {Quota: one}, "a": {Parent: "root", Quota: one},
		}})
		running, boosted := c.add("running", 0, quota.Demand{Group: "a", Request: one}), c.add("boosted", 9, quota.Demand{Group: "a", Request: one})
		running.Demand.Subject = &constraint.Subject{Namespace: "x", Group: "job/a"}
		boosted.Demand.Subject = &constraint.Subject{Namespace: "x", Group: group}
		if d := c.try(running); d.Action != sched.Start {
			t.Fatalf("%s, %+v", d.Action, d.Evidence)
		}
		if d := c.try(boosted); (d.Action == sched.Preempt) != begins {
			t.Errorf("a unit of %s: %s, %+v", group, d.Action, d.Evidence)
		}
	}
}

// TestAClaimEvictsNoFirmerUnitForAPlace: a unit that borrows takes quota from another
// borrower, and would have to evict an owner, too, for a place.
func TestAClaimEvictsNoFirmerUnitForAPlace(t *testing.T) {
	one := resource.Vector{resource.CPU: 1}
	both := resource.Vector{resource.CPU: 1, resource.GPU: 1}
	for ownQuota, begins := range map[int64]bool{0: true, 1: false} {
		c := newClaims(t, quota.Options{}, quota.TreeSpec{Name: claimTree, Resources: claimResources, Nodes: map[string]quota.NodeSpec{
			"root": {Quota: resource.Vector{resource.CPU: 2, resource.GPU: 1}},
			"a":    {Parent: "root", Quota: resource.Vector{resource.CPU: ownQuota}}, "b": {Parent: "root", Quota: one},
		}})
		running := []*sched.Unit{c.add("borrower", 0, quota.Demand{Group: "b", Request: both}), c.add("other", 0, quota.Demand{Group: "a", Request: one})}
		claimant := c.add("claimant", 9, quota.Demand{Group: "b", Request: both})
		claimant.Demand.Request.GPUs = 8
		for _, u := range running {
			u.Demand.Request.GPUs = 4
			if d := c.try(u); d.Action != sched.Start {
				t.Fatalf("%s: %s, %+v", u.Key.Path, d.Action, d.Evidence)
			}
		}
		if d := c.try(claimant); (d.Action == sched.Preempt) != begins || begins && len(d.Victims) != 2 {
			t.Errorf("the other one's group has %d CPUs: %s of %v, %+v", ownQuota, d.Action, d.Victims, d.Evidence)
		}
	}
}

// TestAClaimLooksAtTheUnitsAsTheyAreNow: Refresh comes first.
func TestAClaimLooksAtTheUnitsAsTheyAreNow(t *testing.T) {
	state := cluster.NewState()
	w := &sched.World{State: state, Refresh: func() { state.SetOccupant(&cluster.Occupant{Unit: "named", Status: cluster.Leaving}) }}
	d := sched.Decision{Evidence: &sched.Evidence{Short: &sched.Shortage{Victims: []string{"named"}}}}
	if w.Claim(&sched.Unit{Right: sched.Lower}, &d) || d.Evidence.NoVictims != "named is leaving already" {
		t.Errorf("%q, want the state of the unit after the refresh", d.Evidence.NoVictims)
	}
}
