package digest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

const gib resource.Bytes = 1 << 30

// machine is a host under test; twin is the same built a second time, as the
// coordinator does.
type machine struct {
	name       string
	host, twin *fit.Host
}

func newMachine(t testing.TB, name string, topology *numa.Topology, inventory *devices.Inventory, reserved fit.Reserved) machine {
	t.Helper()
	host, err := fit.NewHost(topology, inventory, reserved)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	twin, err := fit.NewHostLike(host, topology, inventory, reserved)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return machine{name: name, host: host, twin: twin}
}

// machines are every built-in profile, as it is and partitioned with pools of
// huge pages, and random ones: small, of more than 16 GPUs, of more than 16
// nodes.
func machines(t testing.TB, r *rand.Rand) []machine {
	var all []machine
	for _, name := range fake.Names() {
		profile, err := fake.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newMachine(t, name, profile.Topology(), profile.Inventory("n"), fit.Reserved{CPUs: bitset.Of(0), Memory: gib}))
		topology, inventory := profile.Topology(), profile.Inventory("n")
		addPools(r, topology, gib)
		partition(r, inventory)
		all = append(all, newMachine(t, name+", partitioned", topology, inventory, fit.Reserved{}))
	}
	for i := range 40 {
		all = append(all, randomMachine(t, r, fmt.Sprintf("small %d", i), 1+r.IntN(4), r.IntN(9)))
	}
	for i, gpus := range []int{17, 18, 20, 20, 24, 24, 33, 64} {
		all = append(all, randomMachine(t, r, fmt.Sprintf("%d GPUs, number %d", gpus, i), 1+r.IntN(4), gpus))
	}
	for i, nodes := range []int{17, 18, 18, 20, 20, 24, 24, 40} {
		all = append(all, randomMachine(t, r, fmt.Sprintf("%d nodes, number %d", nodes, i), nodes, 4+8*(i%4)))
	}
	return all
}

// addPools turns some memory of some nodes into huge pages.
func addPools(r *rand.Rand, topology *numa.Topology, unit resource.Bytes) {
	for i := range topology.Nodes {
		n := &topology.Nodes[i]
		switch r.IntN(4) {
		case 0:
			n.Hugepages = map[int]int64{2048: r.Int64N(int64(8*unit)/(2<<20) + 1)}
		case 1:
			n.Hugepages = map[int]int64{2048: r.Int64N(int64(4*unit)/(2<<20) + 1), 1 << 20: r.Int64N(5)}
		case 2:
			n.Hugepages = map[int]int64{64: r.Int64N(1000), 2048: 0}
		}
	}
}

// partition puts some devices in MIG mode, with the vendor's usual mixes and
// some unusual ones.
func partition(r *rand.Rand, inventory *devices.Inventory) {
	mixes := [][]int{{1, 1, 1, 1, 1, 1, 1}, {3, 2, 1, 1}, {3, 3}, {2, 2, 2, 1}, {7}, {1, 2, 3}, {4, 3}, {}}
	for i := range inventory.Devices {
		d := &inventory.Devices[i]
		d.MIG = devices.MIG{Enabled: r.IntN(3) > 0}
		if !d.MIG.Enabled {
			continue
		}
		for k, g := range mixes[r.IntN(len(mixes))] {
			instance := devices.MIGInstance{UUID: fmt.Sprintf("MIG-%d-%d", i, k), Profile: fmt.Sprintf("%dg.%dgb", g, 10*g), Memory: resource.Bytes(10*g) * gib}
			if r.IntN(8) == 0 {
				instance.Memory -= gib
			}
			d.MIG.Instances = append(d.MIG.Instances, instance)
		}
	}
}

// randomMachine has cores of one or two threads, CPUs that are offline or
// isolated or of no node, memory-only nodes and sparse node numbers.
func randomMachine(t testing.TB, r *rand.Rand, name string, nodes, gpus int) machine {
	topology, next, step := &numa.Topology{}, 0, 1+r.IntN(3)
	for n := range nodes {
		node := numa.Node{ID: n * step, Memory: resource.Bytes(r.IntN(64)) * gib, MemoryOnly: nodes > 2 && r.IntN(6) == 0}
		cores := 1 + r.IntN(8)
		if node.MemoryOnly {
			cores = 0
		}
		for c := range cores {
			var siblings bitset.Set
			threads := 1 + r.IntN(2)
			for i := range threads {
				siblings.Add(next + i)
			}
			for range threads {
				cpu := numa.CPU{
					ID: next, Core: c, L3: n*8 + c/3, NUMA: node.ID, Kind: numa.CoreKind(r.IntN(3)), Siblings: siblings,
					Online: r.IntN(16) > 0, Isolated: r.IntN(16) == 0,
				}
				if r.IntN(64) == 0 {
					cpu.NUMA = numa.Unknown
				} else {
					node.CPUs.Add(next)
				}
				topology.CPUs = append(topology.CPUs, cpu)
				next++
			}
		}
		topology.Nodes = append(topology.Nodes, node)
	}
	addPools(r, topology, gib)
	inventory := &devices.Inventory{}
	island := 1 << r.IntN(4)
	for i := range gpus {
		d := devices.Device{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: []string{"A", "B"}[r.IntN(8)/7], Memory: 80 * gib, NUMANode: step * (i * nodes / gpus)}
		if r.IntN(16) == 0 {
			d.NUMANode = devices.UnknownNode
		}
		links := make([]devices.Link, gpus)
		for j := range links {
			switch {
			case i == j:
			case i/island == j/island:
				links[j] = devices.NVLink(12)
			default:
				links[j] = devices.LinkSYS
			}
		}
		inventory.Devices, inventory.Links = append(inventory.Devices, d), append(inventory.Links, links)
	}
	if r.IntN(2) == 0 {
		partition(r, inventory)
	}
	return newMachine(t, name, topology, inventory, fit.Reserved{})
}

// ask draws a request that such a host may well grant.
func ask(r *rand.Rand, h *fit.Host) resource.Request {
	few := func(most int) int { return 1 + r.IntN(1+r.IntN(most)) }
	req := resource.Request{NUMA: resource.NUMAPolicy(r.IntN(4))}
	switch r.IntN(4) {
	case 0:
		req.CPU = resource.Millicores(few(16000))
	case 1:
		req.CPU = resource.Millicores(few(8)) * resource.WholeCPU
	case 2:
		req.Cores = few(10)
	}
	if r.IntN(2) == 0 {
		req.Memory = resource.Bytes(few(48)) * gib
	}
	if sizes := h.PageSizes(); len(sizes) > 0 && r.IntN(3) == 0 {
		req.HugepageSize = sizes[r.IntN(len(sizes))]
		req.Hugepages = req.HugepageSize * resource.Bytes(few(int(6*gib/req.HugepageSize)))
	}
	kind := r.IntN(4)
	profiles := h.MIGProfiles()
	switch {
	case kind == 0 && len(profiles) > 0:
		req.MIG, req.MIGProfile = few(8), profiles[r.IntN(len(profiles))]
		req.GPUMemory = resource.Bytes(r.IntN(3)) * 10 * gib
	case kind <= 1 && len(h.Inventory().Devices) > 0:
		req.GPUs = few(min(20, len(h.Inventory().Devices)))
		req.Link = []resource.LinkRequirement{resource.LinkAny, resource.LinkAny, resource.LinkNVLink}[r.IntN(3)]
	case kind == 2:
		req.GPUShare = resource.Milli(few(999))
	case req.CPU == 0 && req.Cores == 0 && req.Memory == 0 && req.Hugepages == 0:
		req.CPU = resource.Millicores(few(4000))
	}
	if req.GPUs > 0 && r.IntN(4) == 0 {
		req.GPUModel = "A"
	}
	return req
}
