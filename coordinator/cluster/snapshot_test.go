package cluster_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// TestASnapshotStaysAsItWas changes a State and a fork of it at random: neither sees
// the other's changes, and a later fork of the snapshot sees none.
func TestASnapshotStaysAsItWas(t *testing.T) {
	gpu2, asym := hostOf(t, "gpu2"), hostOf(t, "asym-3131")
	rapid.Check(t, func(t *rapid.T) {
		w := indexWorld{state: &cluster.State{}, hosts: []*fit.Host{gpu2, asym}}
		change := func(t *rapid.T, w *indexWorld) {
			rapid.SampledFrom([]func(*rapid.T){w.take, w.take, w.give, w.change}).Draw(t, "change")(t)
		}
		for range rapid.IntRange(1, 6).Draw(t, "nodes") {
			w.insert(t)
		}
		for i := range rapid.IntRange(0, 10).Draw(t, "before") {
			change(t, &w)
			w.state.SetOccupant(&cluster.Occupant{Unit: fmt.Sprintf("u%d", i%4), Priority: int32(i)})
		}
		want, nodes := picturesOf(w.state), len(w.state.Nodes())
		snapshot := w.state.Snapshot()
		fork := indexWorld{state: snapshot.Fork(), hosts: w.hosts}
		for _, n := range fork.state.Nodes() {
			for _, h := range w.holds {
				if h.node.ID == n.ID {
					fork.holds = append(fork.holds, held{n, h.assignment})
				}
			}
		}
		compareForks(t, "a fork", fork.state, want)
		for range rapid.IntRange(0, 10).Draw(t, "after") {
			if rapid.Bool().Draw(t, "on the fork") {
				before := picturesOf(w.state)
				change(t, &fork)
				fork.compare(t)
				compareForks(t, "the State beside a fork", w.state, before)
				continue
			}
			before := picturesOf(fork.state)
			change(t, &w)
			w.state.SetOccupant(&cluster.Occupant{Unit: "u1", Priority: 99})
			w.compare(t)
			compareForks(t, "a fork beside the State", fork.state, before)
		}
		if snapshot.Len() != nodes {
			t.Fatalf("the snapshot has %d nodes, it had %d", snapshot.Len(), nodes)
		}
		compareForks(t, "a later fork", snapshot.Fork(), want)
	})
}

// picturesOf prints all that scheduling reads of a State.
func picturesOf(s *cluster.State) []string {
	var lines []string
	for _, n := range s.Nodes() {
		line := fmt.Sprint(n.ID, n.Labels.Values(), n.Labels.Keepers(), n.Unschedulable, n.Ready, n.Closed, n.Standing)
		if n.Host != nil {
			line += fmt.Sprint(n.Free.Unhealthy, n.Host.FreeVector(n.Free), n.Free.GPU, n.Free.CPU)
			if err := n.Host.Check(n.Free); err != nil {
				line += err.Error()
			}
		}
		lines = append(lines, line)
	}
	var units []string
	for o := range s.Occupants() {
		units = append(units, fmt.Sprint(*o, s.Occupant(o.Unit) == o))
	}
	slices.Sort(units)
	return append(lines, units...)
}

func compareForks(t *rapid.T, what string, s *cluster.State, want []string) {
	t.Helper()
	if got := picturesOf(s); !slices.Equal(got, want) {
		t.Fatalf("%s has\n%q\nwant\n%q", what, got, want)
	}
}

// TestForksAreReadBesideTheState is for the race detector: forks are made, searched
// and changed while their State is.
func TestForksAreReadBesideTheState(t *testing.T) {
	host := hostOf(t, "gpu2")
	s := cluster.NewState(freeNode("a", host), freeNode("b", host), freeNode("c", host))
	s.Relabel(s.Node("a"), map[string]string{"zone": "x"}, []constraint.Taint{{Key: "k", Effect: constraint.NoSchedule}})
	var readers sync.WaitGroup
	r := resource.Request{CPU: 1500, GPUs: 1}
	churn := func(s *cluster.State) {
		for _, n := range s.Nodes() {
			var a resource.Assignment
			if s.Assign(n, &r, &a) {
				must(s.Take(n, a))
				must(s.Give(n, a))
			}
			for range s.Peers(&r) {
			}
			s.SetOccupant(&cluster.Occupant{Unit: "u", Nodes: []resource.NodeID{n.ID}})
		}
		s.Relabel(s.Node("b"), map[string]string{"zone": "y"}, nil)
		s.Relabel(s.Node("b"), nil, nil)
	}
	for range 20 {
		snapshot := s.Snapshot()
		readers.Go(func() { churn(snapshot.Fork()) })
		readers.Go(func() { churn(snapshot.Fork()) })
		churn(s)
	}
	readers.Wait()
}

// BenchmarkSnapshot is what the owner of a State pays for a snapshot, and its reader
// for a fork.
func BenchmarkSnapshot(b *testing.B) {
	host := hostOf(panics{}, "dgx-a100")
	for _, size := range []int{1000, 5000, 10_000} {
		nodes := make([]*cluster.Node, size)
		for i := range nodes {
			nodes[i] = freeNode(resource.NodeID(fmt.Sprintf("n%05d", i)), host)
		}
		s := cluster.NewState(nodes...)
		for i, n := range nodes {
			s.Relabel(n, map[string]string{"name": string(n.ID), "zone": fmt.Sprint(i % 8), "model": "a100"}, nil)
			for k := range 8 {
				s.SetOccupant(&cluster.Occupant{Unit: fmt.Sprintf("u%d-%d", i, k), Nodes: []resource.NodeID{n.ID}})
			}
		}
		b.Run(fmt.Sprintf("take/nodes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Snapshot()
			}
		})
		snapshot := s.Snapshot()
		b.Run(fmt.Sprintf("fork/nodes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				snapshot.Fork()
			}
		})
		b.Run(fmt.Sprintf("first-change/nodes=%d", size), func(b *testing.B) {
			var a resource.Assignment
			r := resource.Request{GPUs: 1}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%size == 0 {
					b.StopTimer()
					s.Snapshot()
					b.StartTimer()
				}
				s.Assign(s.Nodes()[i%size], &r, &a)
			}
		})
	}
}
