package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// partitioned has two GPUs, of which the first is divided.
const partitioned = `{
  "name": "partitioned", "driver": "550.54.15", "threadsPerCore": 2, "coresPerL3": 8,
  "nodes": [{"socket": 0, "cores": 32, "memory": "256Gi"}],
  "gpus": [
    {"model": "NVIDIA A100 80GB PCIe", "memory": "80Gi", "pciBusID": "0000:01:00.0", "numaNode": 0, "path": "rc0", "mig": {"enabled": true, "instances": [
      {"profile": "3g.40gb", "memory": "40Gi"}, {"profile": "2g.20gb", "memory": "20Gi"},
      {"profile": "1g.10gb", "memory": "10Gi"}, {"profile": "1g.10gb", "memory": "10Gi"}
    ]}},
    {"model": "NVIDIA A100 80GB PCIe", "memory": "80Gi", "pciBusID": "0000:41:00.0", "numaNode": 0, "path": "rc1"}
  ]
}`

// hosts are the hosts that worlds are made of. Hosts are immutable.
var hosts = sync.OnceValue(func() []*fit.Host {
	var all []*fit.Host
	for _, name := range []string{"gpu2", "asym-3131", "dgx-a100", "pcie-8x2", "partitioned"} {
		profile, err := fake.Lookup(name)
		if name == "partitioned" {
			profile, err = fake.ParseProfile([]byte(partitioned))
		}
		if err != nil {
			panic(err)
		}
		topology := profile.Topology()
		topology.Nodes[0].Hugepages = map[int]int64{2048: 1024}
		host, err := fit.NewHost(topology, profile.Inventory(name), fit.Reserved{})
		if err != nil {
			panic(err)
		}
		all = append(all, host)
	}
	return all
})

// priority is the preemptors'; those of holders are about it.
const priority = 3

// world is a random cluster and its holders.
type world struct {
	lot     *rand.Rand
	nodes   []*cluster.Node
	holders []preempt.Holder
}

// makeWorld makes the world of a seed: up to six nodes, partly used, some of them
// closed, tainted, suspect or with sick devices.
func makeWorld(seed uint64) *world {
	w := &world{lot: rand.New(rand.NewPCG(seed, 20))}
	all := hosts()
	for i := range 1 + w.lot.IntN(6) {
		host := all[w.lot.IntN(len(all))]
		n := &cluster.Node{ID: resource.NodeID(rune('a' + i)), Ready: true, Host: host, Free: host.NewFree()}
		n.Refresh()
		w.nodes = append(w.nodes, n)
	}
	for i := range w.lot.IntN(20) {
		w.start(fmt.Sprintf("u%02d", i))
	}
	for _, n := range w.nodes {
		if w.oneIn(3) {
			n.Free.Unhealthy = w.lot.Uint64() & w.lot.Uint64() & 0xff
		}
		n.Ready, n.Unschedulable, n.Suspect, n.Tripped = !w.oneIn(10), w.oneIn(10), w.oneIn(10), w.oneIn(10)
		if w.oneIn(8) {
			n.Labels = tainted
		}
		n.Refresh()
	}
	return w
}

func (w *world) oneIn(n int) bool { return w.lot.IntN(n) == 0 }

// start has a holder take a place. A few know parts that their nodes do not.
func (w *world) start(name string) {
	members, ok := oldPlace(w.nodes, place.Unit{Members: 1 + w.lot.IntN(3), Request: w.request()})
	if !ok {
		return
	}
	h := preempt.Holder{Unit: name, Priority: int32(w.lot.IntN(priority + 2)), Started: int64(w.lot.IntN(5)), Pinned: w.oneIn(8)}
	for _, m := range members {
		h.Parts = append(h.Parts, preempt.Part{Node: m.Node.ID, Assignment: m.Assignment})
	}
	if w.oneIn(12) {
		h.Parts = append(h.Parts, preempt.Part{Node: w.nodes[0].ID, Assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 7, Milli: 1000}}}})
	}
	w.holders = append(w.holders, h)
}

// copyNodes copies the nodes, for code that changes them.
func (w *world) copyNodes() []*cluster.Node {
	copies := make([]*cluster.Node, len(w.nodes))
	for i, n := range w.nodes {
		c := *n
		c.Free = n.Free.Clone()
		copies[i] = &c
	}
	return copies
}

func (w *world) unit() place.Unit {
	u := place.Unit{Members: 1 + w.lot.IntN(6), Request: w.request()}
	if w.oneIn(4) {
		u.Avoid = map[resource.NodeID]int{w.nodes[0].ID: 1 + w.lot.IntN(2)}
	}
	return u
}

func (w *world) request() resource.Request {
	r := resource.Request{
		CPU:    []resource.Millicores{500, 1000, 8000, 20_000, 60_000}[w.lot.IntN(5)],
		Memory: []resource.Bytes{0, 1 << 30, 50 << 30, 100 << 30}[w.lot.IntN(4)],
		NUMA:   resource.NUMAPolicy(w.lot.IntN(4)),
	}
	if w.oneIn(4) {
		r.CPU, r.Cores = 0, []int{1, 8, 30}[w.lot.IntN(3)]
	}
	if w.oneIn(8) {
		r.Hugepages, r.HugepageSize = 512<<20, 2<<20
	}
	switch w.lot.IntN(5) {
	case 0:
		r.GPUShare = []resource.Milli{250, 500, 900}[w.lot.IntN(3)]
	case 1, 2:
		r.GPUs = []int{1, 2, 3, 4, 8}[w.lot.IntN(5)]
		r.Link = resource.LinkRequirement(w.lot.IntN(3))
	case 3:
		r.MIG, r.MIGProfile = 1+w.lot.IntN(2), []string{"1g.10gb", "2g.20gb"}[w.lot.IntN(2)]
	}
	return r
}

// tainted are the labels of a node that takes only work which tolerates its taint.
var tainted = new(constraint.Table).Intern(nil, []constraint.Taint{{Key: "k", Effect: "NoSchedule"}})
