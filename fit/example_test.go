package fit_test

import (
	"fmt"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// Two GPUs, with CPUs and memory beside them, on a host whose GPUs are linked
// in pairs; then a request that finds no pair any more.
func Example() {
	s := shape{nodes: 2, cores: 4, threads: 2, memory: 64 << 30, gpuNodes: []int{0, 0, 1, 1}, link: islands(2)}
	host, err := fit.NewHost(s.topology(), s.inventory(), fit.Reserved{})
	if err != nil {
		fmt.Println(err)
		return
	}
	free := host.NewFree()
	one := resource.Request{GPUs: 1, CPU: 2000}
	pair := resource.Request{GPUs: 2, CPU: 4000, Memory: 16 << 30, Link: resource.LinkNVLink}

	var a resource.Assignment
	for _, req := range []resource.Request{one, pair, pair} {
		if !host.Assign(free, req, &a) {
			for _, reason := range host.Explain(free, req) {
				fmt.Println(reason)
			}
			continue
		}
		fmt.Printf("GPUs %s, CPUs %s, memory %+v\n", gpuSet(a), a.CPUSet(), a.Memory)
		if err := host.Take(free, a); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(host.Inventory().Link(0, 1), devices.LinkSYS < devices.NVLink(1))
	// Output:
	// GPUs 0, CPUs 0,8, memory []
	// GPUs 2-3, CPUs 4-5,12-13, memory [{Node:1 Bytes:17179869184}]
	// Insufficient nvidia.com/gpu: want 2, have 1: 4 of 4 GPUs match and are healthy, 1 of them can take this request
	// NV12 true
}
