package quota_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// A laboratory of 8 GPUs is cut down to 4. The borrower goes, and of the
// owners the newest; the oldest is not needed.
func ExampleManager_Overdrawn() {
	m := lab(quota.Options{}, map[string]quota.NodeSpec{
		"all":    {Quota: gpus(8)},
		"vision": {Parent: "all", Quota: gpus(4)},
		"nlp":    {Parent: "all", Quota: gpus(4)},
	})
	arrive(m, "train", "", quota.Demand{Group: "vision", Request: gpus(3), Priority: 5})
	arrive(m, "sweep", "", quota.Demand{Group: "vision", Request: gpus(2), Priority: 5})
	arrive(m, "tune", "", quota.Demand{Group: "nlp", Request: gpus(2)})
	arrive(m, "chat", "", quota.Demand{Group: "nlp", Request: gpus(1)})
	cache, _ := m.Cache("lab")
	if err := cache.SetNode("all", quota.NodeSpec{Quota: gpus(5)}); err != nil {
		panic(err)
	}
	if _, err := m.UpdateTree("lab"); err != nil {
		panic(err)
	}
	r, _ := m.Overdrawn("lab", quota.Ties{})
	fmt.Println("over", r.Over, "end", r.End, "remaining", r.Remaining)
	r, _ = m.Overdrawn("lab", quota.Ties{Leaving: func(id string) bool { return id == "chat" }})
	fmt.Println("with chat on its way:", r.End)
	job := map[string]string{"train": "vision-job", "sweep": "vision-job"}
	r, _ = m.Overdrawn("lab", quota.Ties{Together: func(id string) string { return job[id] }})
	fmt.Println("with train and sweep as one:", r.End)
	// Output:
	// train: on vision
	// sweep: on all
	// tune: on nlp
	// chat: on nlp
	// over [{all map[gpus:3]}] end [{sweep all} {chat all}] remaining []
	// with chat on its way: [{sweep all}]
	// with train and sweep as one: [{sweep all} {train all}]
}

// lowered is a tree under consumers given as "id group amounts priority",
// whose root is then changed.
func lowered(t *testing.T, nodes map[string]quota.NodeSpec, consumers []quota.ConsumerSpec, lower map[string]resource.Vector) *quota.Manager {
	t.Helper()
	m := quota.NewManager(quota.Options{})
	if _, err := m.AddTree(quota.TreeSpec{Name: "lab", Resources: []resource.Name{"cpu", "gpus"}, Nodes: nodes}); err != nil {
		t.Fatal(err)
	}
	if err := m.SetMode(quota.Normal); err != nil {
		t.Fatal(err)
	}
	for _, c := range consumers {
		if err := m.AddConsumer(c); err != nil {
			t.Fatal(err)
		}
		if r, err := m.Allocate("lab", c.ID); err != nil || !r.OK || len(r.Preempted) > 0 {
			t.Fatalf("%s: %+v, %v", c.ID, r, err)
		}
	}
	cache, err := m.Cache("lab")
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range lower {
		s := nodes[name]
		s.Quota = to
		if err := cache.SetNode(name, s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.UpdateTree("lab"); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhoHasToEnd(t *testing.T) {
	both := func(cpu, gpus int64) resource.Vector { return resource.Vector{"cpu": cpu, "gpus": gpus} }
	nodes := map[string]quota.NodeSpec{
		"all": {Quota: both(100, 16)}, "lab": {Parent: "all", Quota: both(100, 8)},
		"x": {Parent: "lab", Quota: both(100, 4)}, "y": {Parent: "lab", Quota: both(100, 4)}, "z": {Parent: "all", Quota: both(100, 8)},
	}
	of := func(id, group string, cpu, gpus int64, priority int) quota.ConsumerSpec {
		return quota.ConsumerSpec{ID: id, Demands: []quota.Demand{{Tree: "lab", Group: group, Request: both(cpu, gpus), Priority: priority}}}
	}
	pinned := func(c quota.ConsumerSpec) quota.ConsumerSpec {
		c.Demands[0].Unpreemptable = true
		return c
	}
	for name, c := range map[string]struct {
		consumers []quota.ConsumerSpec
		lower     map[string]resource.Vector
		ties      quota.Ties
		want      quota.Reclaim
	}{
		"nobody where everything fits": {consumers: []quota.ConsumerSpec{of("a", "x", 1, 4, 0)}},
		"only holders of what is short": {
			consumers: []quota.ConsumerSpec{of("a", "x", 4, 1, 9), of("b", "x", 0, 3, 0)},
			lower:     map[string]resource.Vector{"x": both(3, 4)},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"x", resource.Vector{"cpu": 1}}}, End: []quota.Reclaimed{{"a", "x"}}},
		},
		"a borrower before an owner of lower priority": {
			consumers: []quota.ConsumerSpec{of("home", "x", 0, 4, 9), of("guest", "x", 0, 2, 9), of("low", "y", 0, 2, -1)},
			lower:     map[string]resource.Vector{"lab": both(100, 7)},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"lab", resource.Vector{"gpus": 1}}}, End: []quota.Reclaimed{{"guest", "lab"}}},
		},
		"the lowest priority, then the newest": {
			consumers: []quota.ConsumerSpec{of("old", "x", 0, 1, 0), of("low", "x", 0, 1, -1), of("mid", "x", 0, 1, 0), of("high", "x", 0, 1, 1)},
			lower:     map[string]resource.Vector{"x": both(100, 2)},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"x", resource.Vector{"gpus": 2}}}, End: []quota.Reclaimed{{"low", "x"}, {"mid", "x"}}},
		},
		"the deep node's choice counts above": {
			consumers: []quota.ConsumerSpec{of("a", "x", 0, 4, 0), of("b", "y", 0, 4, 0), of("c", "z", 0, 2, -5)},
			lower:     map[string]resource.Vector{"x": both(100, 3), "all": both(100, 6)},
			want: quota.Reclaim{
				Over: []quota.Overdraft{{"x", resource.Vector{"gpus": 1}}, {"all", resource.Vector{"gpus": 4}}}, End: []quota.Reclaimed{{"a", "x"}},
			},
		},
		"whoever turns out not to be needed stays": {
			consumers: []quota.ConsumerSpec{of("big", "x", 0, 3, 0), of("small", "x", 0, 1, -1)},
			lower:     map[string]resource.Vector{"x": both(100, 1)},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"x", resource.Vector{"gpus": 3}}}, End: []quota.Reclaimed{{"big", "x"}}},
		},
		"an unpreemptable one remains, and the others go": {
			consumers: []quota.ConsumerSpec{pinned(of("stone", "x", 0, 3, -9)), of("sand", "x", 0, 1, 9)},
			lower:     map[string]resource.Vector{"x": both(100, 2)},
			want: quota.Reclaim{
				Over: []quota.Overdraft{{"x", resource.Vector{"gpus": 2}}}, End: []quota.Reclaimed{{"sand", "x"}},
				Remaining: []quota.Overdraft{{"x", resource.Vector{"gpus": 1}}},
			},
		},
		"nobody ends with an unpreemptable one": {
			consumers: []quota.ConsumerSpec{pinned(of("j0", "x", 0, 1, 0)), of("j1", "x", 0, 1, 0), of("k", "x", 0, 1, 9)},
			lower:     map[string]resource.Vector{"x": both(100, 2)},
			ties:      quota.Ties{Together: func(id string) string { return id[:1] }},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"x", resource.Vector{"gpus": 1}}}, End: []quota.Reclaimed{{"k", "x"}}},
		},
		"a job ends whole, on all its nodes": {
			consumers: []quota.ConsumerSpec{of("j0", "x", 0, 4, 0), of("k", "y", 0, 2, 0), of("j1", "x", 0, 2, 0)},
			lower:     map[string]resource.Vector{"lab": both(100, 7)},
			ties:      quota.Ties{Together: func(id string) string { return id[:1] }},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"lab", resource.Vector{"gpus": 1}}}, End: []quota.Reclaimed{{"j1", "lab"}, {"j0", "lab"}}},
		},
		"those on their way are enough": {
			consumers: []quota.ConsumerSpec{of("a", "x", 0, 2, 9), of("b", "x", 0, 2, 0)},
			lower:     map[string]resource.Vector{"x": both(100, 2)},
			ties:      quota.Ties{Leaving: func(id string) bool { return id == "a" }},
			want:      quota.Reclaim{Over: []quota.Overdraft{{"x", resource.Vector{"gpus": 2}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lowered(t, nodes, c.consumers, c.lower).Overdrawn("lab", c.ties)
			if diff := gocmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := quota.NewManager(quota.Options{}).Overdrawn("none", quota.Ties{}); err == nil {
		t.Error("a tree that is not there is overdrawn")
	}
}

// overdraft is by how much n is over its quota of a resource, without those
// who are gone.
func (n *nNode) overdraft(t *nTree, name resource.Name, gone map[*nSeat]bool) int64 {
	over := -n.Quota[name]
	for _, s := range t.seats() {
		if s.node.under(n) && !gone[s] {
			over += s.want[name]
		}
	}
	return over
}

// short names what n is over its quota of, of those that s holds below it.
func (t *nTree) short(n *nNode, s *nSeat, gone map[*nSeat]bool) bool {
	return s.node.under(n) && slices.ContainsFunc(t.resources, func(name resource.Name) bool {
		return s.want[name] > 0 && n.overdraft(t, name, gone) > 0
	})
}

func (t *nTree) deepest() []*nNode {
	var all []*nNode
	var list func(n *nNode)
	list = func(n *nNode) {
		all = append(all, n)
		for _, c := range n.children {
			list(c)
		}
	}
	if t.root != nil {
		list(t.root)
	}
	depth := func(n *nNode) (d int) {
		for ; n.parent != nil; n = n.parent {
			d++
		}
		return d
	}
	slices.SortStableFunc(all, func(a, b *nNode) int { return depth(b) - depth(a) })
	return all
}

// overdrawn is Manager.Overdrawn as one would write it down first. parties are
// the seats that end together.
func (t *nTree) overdrawn(parties [][]*nSeat, gone map[*nSeat]bool) (chosen [][]*nSeat) {
	owner := func(s *nSeat) int {
		if s.group == s.node && len(s.node.children) == 0 {
			return 1
		}
		return 0
	}
	for _, n := range t.deepest() {
		for {
			var first *nSeat
			var party []*nSeat
			for _, p := range parties {
				for _, s := range p {
					if gone[s] || !t.short(n, s, gone) || slices.ContainsFunc(p, func(s *nSeat) bool { return s.pinned }) {
						continue
					}
					if first == nil || cmp.Or(owner(s)-owner(first), s.priority-first.priority, first.placed-s.placed, strings.Compare(s.id, first.id)) < 0 {
						first, party = s, p
					}
				}
			}
			if first == nil {
				break
			}
			chosen = append(chosen, party)
			for _, s := range party {
				gone[s] = true
			}
		}
	}
	for i, p := range slices.Backward(chosen) {
		if t.spared(p, gone) {
			chosen = slices.Delete(chosen, i, i+1)
		} else {
			for _, s := range p {
				gone[s] = true
			}
		}
	}
	return chosen
}

// spared lets a party stay; false means that it would put a node over quota.
func (t *nTree) spared(p []*nSeat, gone map[*nSeat]bool) bool {
	for _, s := range p {
		delete(gone, s)
	}
	for _, s := range p {
		for n := s.node; n != nil; n = n.parent {
			if t.short(n, s, gone) {
				return false
			}
		}
	}
	return true
}

func TestTheChoiceIsTheNaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }, true)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.step()
		}
		for _, tree := range h.o.trees { // lowered
			for _, name := range slices.Sorted(maps.Keys(tree.specs)) {
				if s := tree.specs[name]; h.draw.oneIn(2) {
					s.Quota = h.vector(tree.cached, 4)
					tree.specs[name] = s
					cache, err := h.m.Cache(tree.name)
					h.must(err)
					h.must(cache.SetNode(name, s))
				}
			}
		}
		h.stepUpdate()
		if h.fault != nil {
			t.Fatal(h.fault)
		}
		ties := quota.Ties{}
		jobs, leaving := rapid.IntRange(0, 12).Draw(t, "jobs"), rapid.IntRange(0, 3).Draw(t, "leaving")
		number := func(id string) (n int) {
			_, _ = fmt.Sscanf(id, "c%d", &n)
			return n
		}
		if leaving > 0 {
			ties.Leaving = func(id string) bool { return number(id)%4 == leaving }
		}
		if jobs > 0 {
			ties.Together = func(id string) string {
				if number(id)%3 == 0 {
					return ""
				}
				return fmt.Sprint(number(id) % jobs)
			}
		}
		for _, tree := range h.o.trees {
			agreeOnReclaim(t, h, tree, ties)
		}
	})
}

func agreeOnReclaim(t *rapid.T, h *history, tree *nTree, ties quota.Ties) {
	before := h.m.AppendState(nil)
	got, err := h.m.Overdrawn(tree.name, ties)
	if err != nil || !bytes.Equal(before, h.m.AppendState(nil)) {
		t.Fatalf("%v, or the choice changed something", err)
	}
	gone, parties, named := map[*nSeat]bool{}, [][]*nSeat{}, map[string]int{}
	over := tree.overdrafts(gone)
	for _, s := range tree.seats() {
		name := ""
		if ties.Together != nil {
			name = ties.Together(s.id)
		}
		if ties.Leaving != nil && ties.Leaving(s.id) {
			gone[s] = true
			continue
		}
		at, known := named[name]
		if !known || name == "" {
			at = len(parties)
			parties, named[name] = append(parties, nil), at
		}
		parties[at] = append(parties[at], s)
	}
	var want []string
	chosen := tree.overdrawn(parties, gone)
	for _, p := range chosen {
		for _, s := range p {
			want = append(want, s.id)
		}
	}
	var ids []string
	for _, e := range got.End {
		ids = append(ids, e.Consumer)
	}
	slices.Sort(ids)
	slices.Sort(want)
	if diff := gocmp.Diff(want, ids); diff != "" || !gocmp.Equal(over, got.Over) || !gocmp.Equal(tree.overdrafts(gone), got.Remaining) {
		t.Fatalf("tree %s: (-naive +got):\n%s\n%+v", tree.name, diff, got)
	}
	for _, p := range parties { // what remains over is held by those who must not end
		for _, s := range p {
			for n := s.node; n != nil && !gone[s]; n = n.parent {
				if tree.short(n, s, gone) && !slices.ContainsFunc(p, func(s *nSeat) bool { return s.pinned }) {
					t.Fatalf("%s could end for %s, and does not", s.id, n.name)
				}
			}
		}
	}
	for _, p := range chosen {
		if tree.spared(p, gone) {
			t.Fatalf("%s need not end", p[0].id)
		}
		for _, s := range p {
			gone[s] = true
		}
	}
	// In truth: nobody is over quota by the others' sliding down.
	for _, id := range ids {
		h.m.Deallocate(tree.name, id)
	}
	for _, s := range tree.seats() {
		if ties.Leaving != nil && ties.Leaving(s.id) {
			h.m.Deallocate(tree.name, s.id)
		}
	}
	after, err := h.m.Overdrawn(tree.name, ties)
	if err != nil || len(after.End) > 0 || !gocmp.Equal(after.Over, got.Remaining) || h.fault != nil {
		t.Fatalf("afterwards %+v, %v, %v; before %+v", after, err, h.fault, got)
	}
}

func (t *nTree) overdrafts(gone map[*nSeat]bool) []quota.Overdraft {
	var all []quota.Overdraft
	for _, n := range t.deepest() {
		by := resource.Vector{}
		for _, name := range t.resources {
			if a := n.overdraft(t, name, gone); a > 0 {
				by[name] = a
			}
		}
		if len(by) > 0 {
			all = append(all, quota.Overdraft{Node: n.name, Over: by})
		}
	}
	return all
}
