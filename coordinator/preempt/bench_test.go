package preempt_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// crowd fills n hosts of 8 GPUs with one-GPU units of three priorities.
func crowd(tb testing.TB, n int) ([]*cluster.Node, []preempt.Holder) {
	tb.Helper()
	return crowdOf(tb, n, func(host, gpu int) int32 { return int32((host + gpu) % 3) })
}

// crowdOf is crowd with priorities by host and GPU.
func crowdOf(tb testing.TB, n int, priority func(host, gpu int) int32) ([]*cluster.Node, []preempt.Holder) {
	tb.Helper()
	nodes := hostsOf(tb, "dgx-a100", n)
	holders := make([]preempt.Holder, 0, 8*n)
	for i := range nodes {
		for j := range 8 {
			k := len(holders)
			h, ok := start(nodes[i:i+1], fmt.Sprintf("ns/u%05d/0", k), priority(i, j), int64(k*7919%10_007), 1, oneGPU)
			if !ok {
				tb.Fatalf("%s is full too early", nodes[i].ID)
			}
			holders = append(holders, h)
		}
	}
	return nodes, holders
}

var (
	oneGPU    = resource.Request{GPUs: 1, CPU: 8000, Memory: 64 * gib}
	eightGPUs = resource.Request{GPUs: 8, CPU: 64000, Memory: 512 * gib}
)

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{100, 1250} { // 800 and 10,000 running units
		nodes, holders := crowd(b, n)
		state := cluster.NewState(nodes...)
		for _, bench := range []struct {
			name    string
			unit    place.Unit
			victims int
		}{
			{"1-gpu", place.Unit{Members: 1, Request: oneGPU}, 1},
			{"8-gpu", place.Unit{Members: 1, Request: eightGPUs}, 8},
			{"2-numa", place.Unit{Members: 1, Request: resource.Request{GPUs: 2, CPU: 4000, NUMA: resource.NUMASingleNode}}, 2},
			{"refused-by-fit", place.Unit{Members: 1, Request: resource.Request{GPUs: 6, CPU: 4000, NUMA: resource.NUMASingleNode}}, -1},
			{"gang-8x1", place.Unit{Members: 8, Request: oneGPU}, 8},
			{"gang-8x8", place.Unit{Members: 8, Request: eightGPUs}, 64},
			{"gang-64x8", place.Unit{Members: 64, Request: eightGPUs}, 512},
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", bench.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					plan, ok := preempt.Find(state, bench.unit, 9, holders)
					if ok != (bench.victims >= 0) || ok && len(plan.Victims) != bench.victims {
						b.Fatalf("found: %t with %d victims, want %d", ok, len(plan.Victims), bench.victims)
					}
				}
			})
		}
	}
}

// BenchmarkFindInDomains finds victims for gangs in one rack of 10 hosts, among 10,000 running
// units on 1,250 hosts: where each unit may give way; where nine may, so that all 512 sets of
// them are candidates; and where no rack has enough.
func BenchmarkFindInDomains(b *testing.B) {
	const hosts, rack = 1250, 10
	for name, c := range map[string]struct {
		members, victims int // victims -1: there are none
		lower            func(host, gpu int) bool
	}{
		"all": {8, 64, func(int, int) bool { return true }},
		// The last rack has eight on one host, of which six are needed, and one elsewhere.
		"512-sets": {1, 6, func(host, gpu int) bool { return host == hosts-1 || host == hosts-2 && gpu == 0 }},
		"none":     {2, -1, func(host, gpu int) bool { return host%rack == 0 }},
	} {
		b.Run(name, func(b *testing.B) {
			nodes, holders := crowdOf(b, hosts, func(host, gpu int) int32 {
				if c.lower(host, gpu) {
					return int32((host + gpu) % 3)
				}
				return 9
			})
			state := cluster.NewState(nodes...)
			for i, n := range state.Nodes() {
				state.Relabel(n, map[string]string{"rack": fmt.Sprint(i / rack)}, nil)
			}
			request := eightGPUs
			if c.victims == 6 {
				request = resource.Request{GPUs: 6, CPU: 48000, Memory: 384 * gib}
			}
			unit := place.Unit{Members: c.members, Request: request, Topology: &topology.Rules{Levels: []topology.Level{{Key: "rack", Required: true}}}}
			b.ReportAllocs()
			for b.Loop() {
				plan, ok := preempt.Find(state, unit, 9, holders)
				if ok != (c.victims >= 0) || ok && len(plan.Victims) != c.victims {
					b.Fatalf("found: %t with %d victims, want %d", ok, len(plan.Victims), c.victims)
				}
			}
		})
	}
}
