package gpuallocator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"

	"github.com/musterd/muster/resource"
)

// islands is n GPUs in two islands of NVLink, one on each node.
func islands(n int) topology {
	p := topology{name: fmt.Sprintf("TwoIslands%d", n)}
	var table strings.Builder
	for i := range n {
		p.nodes = append(p.nodes, i/(n/2))
		for j := range n {
			switch {
			case i == j:
				table.WriteString(" X")
			case i/(n/2) == j/(n/2):
				table.WriteString(" NV12+NODE")
			default:
				table.WriteString(" SYS")
			}
		}
		table.WriteString("\n")
	}
	p.table = table.String()
	return p
}

// question is k GPUs of an empty host.
type question struct {
	topology
	k int
}

// questions are powers of two, as jobs ask for. Of 16 the library needs
// seconds for some sizes.
func questions() []question {
	var all []question
	for _, p := range append(own(), islands(8), islands(16)) {
		for k := 1; k <= len(p.nodes); k *= 2 {
			all = append(all, question{p, k})
		}
	}
	return all
}

func (q question) name() string {
	return fmt.Sprintf("%s/%d-of-%d", q.topology.name, q.k, len(q.nodes))
}

// BenchmarkMuster chooses GPUs, CPUs and memory.
func BenchmarkMuster(b *testing.B) {
	for _, q := range questions() {
		b.Run(q.name(), func(b *testing.B) {
			h := q.host(b)
			f, r := h.NewFree(), request(q.k, resource.NUMABestEffort)
			var a resource.Assignment
			b.ReportAllocs()
			for b.Loop() {
				if !h.Assign(f, r, &a) {
					b.Fatal("refused")
				}
			}
		})
	}
}

// BenchmarkGPUAllocator chooses GPUs.
func BenchmarkGPUAllocator(b *testing.B) {
	for _, q := range questions() {
		b.Run(q.name(), func(b *testing.B) {
			list, policy := q.library(b), gpuallocator.NewBestEffortPolicy()
			b.ReportAllocs()
			for b.Loop() {
				if len(policy.Allocate(list, nil, q.k)) != q.k {
					b.Fatal("refused")
				}
			}
		})
	}
}
