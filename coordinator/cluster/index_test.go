package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// indexWorld changes a State by random operations and compares the State's index
// with a scan over all nodes.
type indexWorld struct {
	state *cluster.State
	hosts []*fit.Host
	next  int
	holds []held
	open  []indexMark
}

// indexMark is an open checkpoint, and the assignments held when it was opened.
type indexMark struct {
	mark  cluster.Mark
	holds []held
}

// node draws a node, nil where there is none.
func (w *indexWorld) node(t *rapid.T) *cluster.Node {
	if len(w.state.Nodes()) == 0 {
		return nil
	}
	return rapid.SampledFrom(w.state.Nodes()).Draw(t, "node")
}

func (w *indexWorld) insert(t *rapid.T) {
	w.next++
	id := resource.NodeID(fmt.Sprintf("n%d", w.next*7%31*100+w.next))
	if rapid.IntRange(0, 5).Draw(t, "without a host") == 0 {
		w.state.Insert(&cluster.Node{ID: id})
		return
	}
	w.state.Insert(freeNode(id, rapid.SampledFrom(w.hosts).Draw(t, "host")))
}

// take takes on a node with a host.
func (w *indexWorld) take(t *rapid.T) {
	n := w.node(t)
	if n == nil || n.Host == nil {
		return
	}
	r := resource.Request{CPU: resource.Millicores(rapid.SampledFrom([]int{0, 500, 8000}).Draw(t, "CPU"))}
	if rapid.Bool().Draw(t, "share") {
		r.GPUShare = 300
	} else {
		r.GPUs = rapid.IntRange(0, 3).Draw(t, "GPUs")
	}
	var a resource.Assignment
	if n.Host.Assign(n.Free, r, &a) {
		must(w.state.Take(n, a))
		w.holds = append(w.holds, held{n, a})
	}
}

func (w *indexWorld) give(t *rapid.T) {
	if len(w.holds) > 0 {
		i := rapid.IntRange(0, len(w.holds)-1).Draw(t, "held")
		must(w.state.Give(w.holds[i].node, w.holds[i].assignment))
		w.holds = slices.Delete(slices.Clone(w.holds), i, i+1)
	}
}

// change changes a fact of a node, which no checkpoint can undo.
func (w *indexWorld) change(t *rapid.T) {
	n := w.node(t)
	if n == nil || len(w.open) > 0 {
		return
	}
	yes := rapid.Bool().Draw(t, "yes")
	switch rapid.IntRange(0, 6).Draw(t, "fact") {
	case 0:
		w.state.SetReady(n, yes && n.Host != nil)
	case 1:
		w.state.SetUnschedulable(n, yes)
	case 2:
		w.state.SetSuspect(n, yes)
	case 3:
		w.state.SetTripped(n, yes)
	case 4:
		if n.Host != nil {
			w.state.SetUnhealthy(n, uint64(rapid.IntRange(0, 3).Draw(t, "sick")))
		}
	case 5:
		var taints []constraint.Taint
		if yes {
			taints = []constraint.Taint{{Key: "k", Effect: constraint.NoSchedule}}
		}
		w.state.Relabel(n, map[string]string{"zone": rapid.SampledFrom(zones).Draw(t, "zone"), "name": string(n.ID)}, taints)
	case 6:
		w.holds = slices.DeleteFunc(slices.Clone(w.holds), func(h held) bool { return h.node == n })
		if yes {
			w.state.Remove(n.ID)
		} else {
			w.state.Reset(n, rapid.SampledFrom(w.hosts).Draw(t, "host"), 0)
		}
	}
}

var zones = []string{"a", "b", "c"}

// compare asks for peers and labels.
func (w *indexWorld) compare(t *rapid.T) {
	r := resource.Request{
		CPU:    resource.Millicores(rapid.SampledFrom([]int{0, 500, 60_000, 300_000}).Draw(t, "CPU asked")),
		Memory: resource.Bytes(rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "GiB asked")) << 30,
		GPUs:   rapid.IntRange(0, 9).Draw(t, "GPUs asked"),
	}
	if rapid.Bool().Draw(t, "a share") {
		r.GPUs, r.GPUShare = 0, resource.Milli(rapid.SampledFrom([]int{1, 500, 1000}).Draw(t, "share asked"))
	}
	var want, got []resource.NodeID
	for _, n := range w.state.Nodes() {
		if n.Ready && !n.Unschedulable && n.Host != nil && n.MayFit(&r) {
			want = append(want, n.ID)
		}
	}
	met := map[string]bool{}
	for standing, p := range w.state.Peers(&r) {
		nodes := slices.Concat(p.Runs()...)
		if key := fmt.Sprint(p.Standing, p.Kind(), p.Taints()); met[key] || len(nodes) == 0 {
			t.Fatalf("peers of %+v come twice, or are none: %d", p.Standing, len(nodes))
		} else {
			met[key] = true
		}
		for i, n := range nodes {
			if n.Standing != p.Standing || *standing != p.Standing || n.Labels.Taints() != p.Taints() || n.Kind() != p.Kind() || !n.Kind().Has(n.Host) || i > 0 && nodes[i-1].ID >= n.ID {
				t.Fatalf("%s is a wrong one of the peers, or in a wrong place", n.ID)
			}
			got = append(got, n.ID)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("nodes for %+v (-scan +index):\n%s", r, diff)
	}
	sameRatings(t, w.state, rater{rapid.IntRange(1, 2).Draw(t, "rater")}, &r)
	for _, zone := range zones {
		sameNodes(t, w.state, constraint.Label{Key: "zone", Value: zone})
	}
}

// rater rates by a part of the standing.
type rater struct{ weight int }

func (r rater) Score(s *cluster.Standing, k *cluster.Kind, q *resource.Request) int64 {
	return int64(s.FreeGPU)*int64(r.weight) + int64(s.Parts[0]) + int64(k.Full.CPU) - int64(q.CPU)
}

func (r rater) Doubt(s *cluster.Standing, _ int) int {
	if s.Suspect {
		return r.weight
	}
	return 0
}

// sameRatings compares the ratings that the State remembers with those made anew. The peers
// of a block have the same taints, and no rating of a block is better than its best.
func sameRatings(t interface{ Fatalf(string, ...any) }, s *cluster.State, by rater, r *resource.Request) {
	all := s.Rated(by, r)
	seen := map[*cluster.Peers]bool{}
	for block := range all.Blocks() {
		ratings, peers := all.Block(block)
		best, taints := all.Best(block)
		want := cluster.Rating{}
		for i, p := range peers {
			rating := cluster.Rating{}
			if p != nil && p.MayFit(r) {
				rating = cluster.Rating{Score: by.Score(&p.Standing, p.Kind(), r), Doubt: int32(by.Doubt(&p.Standing, 0)), Room: true}
			}
			if ratings[i] != rating {
				t.Fatalf("slot %d of block %d is rated %+v, want %+v", i, block, ratings[i], rating)
			}
			if p != nil && p.Taints() != taints {
				t.Fatalf("slot %d of block %d has peers with other taints", i, block)
			}
			if rating.Room && (!want.Room || rating.Doubt < want.Doubt || rating.Doubt == want.Doubt && rating.Score > want.Score) {
				want = rating
			}
			seen[p] = true
		}
		if *best != want {
			t.Fatalf("the best of block %d is %+v, want %+v", block, *best, want)
		}
	}
	for _, p := range s.Peers(r) {
		if !seen[p] {
			t.Fatalf("peers of %+v have no slot", p.Standing)
		}
	}
}

// TestOldRatingsMakeRoom: many requests are rated, and the first again.
func TestOldRatingsMakeRoom(t *testing.T) {
	host, s := hostOf(t, "gpu2"), cluster.NewState()
	for i := range 3 {
		s.Insert(freeNode(resource.NodeID(fmt.Sprint("n", i)), host))
	}
	for i := range 3000 {
		r := resource.Request{CPU: resource.Millicores(i % 700)}
		sameRatings(t, s, rater{1}, &r)
		n := s.Nodes()[i%3]
		s.SetSuspect(n, !n.Suspect)
	}
}

// TestRatingsOfManyTaints: nodes of which no two are alike get other taints again and again,
// so that blocks fill, run empty and are used again.
func TestRatingsOfManyTaints(t *testing.T) {
	const nodes = 150
	host, s := hostOf(t, "gpu2"), cluster.NewState()
	for i := range nodes {
		n := freeNode(resource.NodeID(fmt.Sprint("n", i)), host)
		s.Insert(n)
		if err := s.Take(n, resource.Assignment{CPUs: []resource.CPUGrant{{ID: 0, Milli: resource.Millicores(1 + i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 4000 {
		n := s.Nodes()[random.IntN(nodes)]
		var taints []constraint.Taint
		if key := random.IntN(1 + step/200); key > 0 {
			taints = []constraint.Taint{{Key: fmt.Sprint("k", key), Effect: constraint.PreferNoSchedule}}
		}
		s.Relabel(n, nil, taints)
		if step%7 == 0 {
			sameRatings(t, s, rater{1}, &resource.Request{CPU: 500})
		}
	}
	if all := s.Rated(rater{1}, &resource.Request{CPU: 500}); all.Blocks() > nodes {
		t.Errorf("%d blocks for %d nodes", all.Blocks(), nodes)
	}
}

// sameNodes compares the nodes with a label.
func sameNodes(t interface{ Fatalf(string, ...any) }, s *cluster.State, l constraint.Label) {
	var want []*cluster.Node
	for _, n := range s.Nodes() {
		if n.Labels.Values()[l.Key] == l.Value {
			want = append(want, n)
		}
	}
	runs, count := s.Labelled(l)
	if got := slices.Concat(runs...); count != len(want) || !slices.Equal(got, want) {
		t.Fatalf("%d nodes of %d have %v, want %d", len(got), count, l, len(want))
	}
}

func TestTheIndexAgreesWithAScan(t *testing.T) {
	hosts := []*fit.Host{hostOf(t, "gpu2"), hostOf(t, "asym-3131"), hostOf(t, "dgx-a100"), hostOf(t, "gpu2")}
	rapid.Check(t, func(t *rapid.T) {
		w := &indexWorld{state: cluster.NewState(), hosts: hosts}
		for range 6 {
			w.insert(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				if len(w.open) == 0 {
					w.insert(t)
				}
			},
			"take":    w.take,
			"give":    w.give,
			"change":  w.change,
			"change ": w.change,
			"checkpoint": func(*rapid.T) {
				w.open = append(w.open, indexMark{w.state.Checkpoint(), slices.Clone(w.holds)})
			},
			"end": func(t *rapid.T) {
				if len(w.open) == 0 {
					return
				}
				last := w.open[len(w.open)-1]
				w.open = w.open[:len(w.open)-1]
				if rapid.Bool().Draw(t, "keep") {
					w.state.Keep(last.mark)
					return
				}
				w.state.Rollback(last.mark)
				w.holds = last.holds
			},
			"compare": w.compare,
		})
		w.compare(t)
	})
}

// TestLongListsAgreeWithAScan: lists of nodes are cut into runs.
func TestLongListsAgreeWithAScan(t *testing.T) {
	s, lot := cluster.NewState(), rand.New(rand.NewPCG(1, 21))
	zone := func() map[string]string { return map[string]string{"zone": zones[lot.IntN(2)]} }
	for _, i := range lot.Perm(1500) {
		n := &cluster.Node{ID: resource.NodeID(fmt.Sprint("node-", i))}
		s.Insert(n)
		s.Relabel(n, zone(), nil)
	}
	for i := range 4000 {
		n := s.Nodes()[lot.IntN(len(s.Nodes()))]
		if s.Relabel(n, zone(), nil); i%3 == 0 {
			s.Remove(n.ID)
		}
		if i%100 == 0 {
			sameNodes(t, s, constraint.Label{Key: "zone", Value: zones[i%2]})
		}
	}
}

// BenchmarkMove takes and gives a device, and has the index move the node each
// time, among 10,000 equal ones.
func BenchmarkMove(b *testing.B) {
	host, s := hostOf(b, "dgx-a100"), cluster.NewState()
	for i := range 10_000 {
		s.Insert(freeNode(resource.NodeID(fmt.Sprintf("node-%05d", i)), host))
	}
	r := resource.Request{GPUs: 9}
	n := s.Nodes()[5000]
	var a resource.Assignment
	if !host.Assign(n.Free, resource.Request{GPUs: 1}, &a) {
		b.Fatal("no room")
	}
	b.ReportAllocs()
	for b.Loop() {
		must(s.Take(n, a))
		s.Peers(&r)
		must(s.Give(n, a))
		s.Peers(&r)
	}
}
