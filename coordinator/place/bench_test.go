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

func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		for _, bench := range []struct {
			name string
			unit place.Unit
			full int // GPUs taken on each node beforehand
			want bool
		}{
			{"1-gpu", place.Unit{Members: 1, Request: oneGPU}, 0, true},
			{"gang-8x8", place.Unit{Members: 8, Request: eightGPUs}, 0, true},
			{"gang-64x8", place.Unit{Members: 64, Request: eightGPUs}, 0, true},
			{"infeasible", place.Unit{Members: 1, Request: eightGPUs}, 1, false},
			{"refused-by-fit", place.Unit{Members: 1, Request: resource.Request{GPUs: 4, CPU: 4000, NUMA: resource.NUMASingleNode}}, 0, false},
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", bench.name, n), func(b *testing.B) {
				nodes := dgx(b, n)
				state := cluster.NewState(nodes...)
				if bench.full > 0 {
					for i := range nodes {
						if _, ok := place.Place(cluster.NewState(nodes[i]), place.Unit{Members: bench.full, Request: oneGPU}); !ok {
							b.Fatalf("%s is full too early", nodes[i].ID)
						}
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					mark := state.Checkpoint()
					_, ok := place.Place(state, bench.unit)
					if ok != bench.want {
						b.Fatalf("placed: %t, want %t", ok, bench.want)
					}
					state.Rollback(mark)
				}
			})
		}
	}
}
