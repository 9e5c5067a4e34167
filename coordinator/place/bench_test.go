package place_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

const gib = resource.Bytes(1) << 30

// dgx returns views of n equal hosts of 8 GPUs. Their score tables are shared,
// as the leader shares them.
func dgx(tb testing.TB, n int) []*cluster.Node {
	tb.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		tb.Fatal(err)
	}
	topology := profile.Topology()
	var like *fit.Host
	nodes := make([]*cluster.Node, n)
	for i := range nodes {
		id := fmt.Sprintf("node-%05d", i)
		host, err := fit.NewHostLike(like, topology, profile.Inventory(id), fit.Reserved{})
		if err != nil {
			tb.Fatal(err)
		}
		like = host
		nodes[i] = &cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree()}
		nodes[i].Refresh()
	}
	return nodes
}

var (
	oneGPU    = resource.Request{GPUs: 1, CPU: 8000, Memory: 64 * gib}
	eightGPUs = resource.Request{GPUs: 8, CPU: 64000, Memory: 512 * gib}
)

// wear takes a little on each node, on no two the same, and i%7 devices.
func wear(tb testing.TB, nodes []*cluster.Node) {
	for i, n := range nodes {
		r := resource.Request{GPUs: i % 7, CPU: resource.Millicores(1000 + i)}
		if _, ok := place.Place(cluster.NewState(n), place.Unit{Members: 1, Request: r}); !ok {
			tb.Fatalf("%s is full too early", n.ID)
		}
	}
}

// fill takes single devices of each node.
func fill(gpus int) func(testing.TB, []*cluster.Node) {
	return func(_ testing.TB, nodes []*cluster.Node) {
		for _, n := range nodes {
			use(n, gpus)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	none := func(testing.TB, []*cluster.Node) {}
	oneEach := resource.Request{GPUs: 4, CPU: 4000, NUMA: resource.NUMASingleNode}
	for _, n := range []int{1000, 10_000} {
		for _, bench := range []struct {
			name    string
			unit    place.Unit
			prepare func(testing.TB, []*cluster.Node)
			want    bool
		}{
			{"1-gpu", place.Unit{Members: 1, Request: oneGPU}, none, true},
			{"gang-8x8", place.Unit{Members: 8, Request: eightGPUs}, none, true},
			{"gang-64x8", place.Unit{Members: 64, Request: eightGPUs}, none, true},
			{"infeasible", place.Unit{Members: 1, Request: eightGPUs}, fill(1), false},
			{"refused-by-fit", place.Unit{Members: 1, Request: oneEach}, none, false},
			{"avoid", place.Unit{Members: 1, Request: oneGPU, Avoid: map[resource.NodeID]int{"node-00000": 1}}, none, true},
			{"worn-1-gpu", place.Unit{Members: 1, Request: oneGPU}, wear, true},
			{"worn-gang-64x1", place.Unit{Members: 64, Request: oneGPU}, wear, true},
			{"worn-infeasible", place.Unit{Members: 1, Request: resource.Request{GPUs: 7, CPU: 255_500}}, wear, false},
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", bench.name, n), func(b *testing.B) {
				nodes := dgx(b, n)
				bench.prepare(b, nodes)
				benchmarkPlace(b, nodes, bench.unit, bench.want)
			})
		}
	}
}

// benchmarkPlace places a unit and rolls back. The first place, which has the
// State index its nodes, is not measured.
func benchmarkPlace(b *testing.B, nodes []*cluster.Node, u place.Unit, want bool) {
	state := cluster.NewState(nodes...)
	ask := func() {
		mark := state.Checkpoint()
		if _, ok := place.Place(state, u); ok != want {
			b.Fatalf("placed: %t, want %t", ok, want)
		}
		state.Rollback(mark)
	}
	ask()
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}
