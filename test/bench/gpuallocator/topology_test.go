package gpuallocator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

const gib resource.Bytes = 1 << 30

// pair is how two GPUs are connected: the PCIe relation and, beside it, a
// number of NVLinks. A topology may leave the relation out.
type pair struct {
	pcie    devices.Link // LinkNone where not told
	nvlinks int
}

// link is the pair in Muster's words.
func (p pair) link() devices.Link {
	if p.nvlinks > 0 {
		return devices.NVLink(p.nvlinks).Over(p.pcie)
	}
	return p.pcie
}

// topology is a host's GPUs. Its links are a table in the words of
// `nvidia-smi topo -m`, with the PCIe relation behind a "+" where there is
// NVLink too.
type topology struct {
	name  string
	nodes []int // of each GPU
	table string
}

// pairs reads the table.
func (p topology) pairs(t testing.TB) [][]pair {
	t.Helper()
	var rows [][]pair
	for i, line := range strings.Split(strings.TrimSpace(p.table), "\n") {
		var row []pair
		for j, field := range strings.Fields(line) {
			var at pair
			for word := range strings.SplitSeq(field, "+") {
				link, err := devices.ParseLink(word)
				if err != nil {
					t.Fatalf("%s, GPUs %d and %d: %v", p.name, i, j, err)
				}
				if n := link.NVLinks(); n > 0 {
					at.nvlinks = n
				} else {
					at.pcie = link
				}
			}
			row = append(row, at)
		}
		if len(row) != len(p.nodes) {
			t.Fatalf("%s: row %d has %d columns for %d GPUs", p.name, i, len(row), len(p.nodes))
		}
		rows = append(rows, row)
	}
	return rows
}

// own are the nodes of the library's tests (gpuallocator/common_test.go);
// TestTopologiesAreTheLibrarysOwn holds them against it. The NUMA node of a
// GPU is its CPU: "CrossCPU" is SYS.
func own() []topology {
	return []topology{
		{"4xRTX8000", []int{0, 0, 1, 1}, `
			X    NODE SYS  NV2
			NODE X    NV2  SYS
			SYS  NV2  X    NODE
			NV2  SYS  NODE X`},
		{"DGX1Pascal", []int{0, 0, 0, 0, 1, 1, 1, 1}, `
			X       NV1+PHB NV1+PIX NV1+PHB NV1+SYS SYS     SYS     SYS
			NV1+PHB X       NV1+PHB NV1+PIX SYS     NV1+SYS SYS     SYS
			NV1+PIX NV1+PHB X       NV1+PHB SYS     SYS     NV1+SYS SYS
			NV1+PHB NV1+PIX NV1+PHB X       SYS     SYS     SYS     NV1+SYS
			NV1+SYS SYS     SYS     SYS     X       NV1+PHB NV1+PIX NV1+PHB
			SYS     NV1+SYS SYS     SYS     NV1+PHB X       NV1+PHB NV1+PIX
			SYS     SYS     NV1+SYS SYS     NV1+PIX NV1+PHB X       NV1+PHB
			SYS     SYS     SYS     NV1+SYS NV1+PHB NV1+PIX NV1+PHB X`},
		{"DGX1Volta", []int{0, 0, 0, 0, 1, 1, 1, 1}, `
			X       NV1+PIX NV1+PHB NV2+PHB NV2+SYS SYS     SYS     SYS
			NV1+PIX X       NV2+PHB NV1+PHB SYS     NV2+SYS SYS     SYS
			NV1+PHB NV2+PHB X       NV2+PIX SYS     SYS     NV1+SYS SYS
			NV2+PHB NV1+PHB NV2+PIX X       SYS     SYS     SYS     NV1+SYS
			NV2+SYS SYS     SYS     SYS     X       NV1+PIX NV1+PHB NV2+PHB
			SYS     NV2+SYS SYS     SYS     NV1+PIX X       NV2+PHB NV1+PHB
			SYS     SYS     NV1+SYS SYS     NV1+PHB NV2+PHB X       NV2+PIX
			SYS     SYS     SYS     NV1+SYS NV2+PHB NV1+PHB NV2+PIX X`},
	}
}

// host is the topology as Muster sees it: two nodes of 64 cores with two
// threads each, and of 1 TiB.
func (p topology) host(t testing.TB) *fit.Host {
	t.Helper()
	inv := &devices.Inventory{}
	for i, row := range p.pairs(t) {
		inv.Devices = append(inv.Devices, devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: "GPU", Memory: 32 * gib, NUMANode: p.nodes[i],
		})
		links := make([]devices.Link, len(row))
		for j, at := range row {
			links[j] = at.link()
		}
		inv.Links = append(inv.Links, links)
	}
	h, err := fit.NewHost(processors(), inv, fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// processors are two nodes of 64 cores with two threads each, in L3 groups of
// eight cores, numbered as Linux does on x86.
func processors() *numa.Topology {
	const nodes, cores, perL3 = 2, 64, 8
	t := &numa.Topology{Distances: [][]int{{10, 21}, {21, 10}}}
	for n := range nodes {
		t.Nodes = append(t.Nodes, numa.Node{ID: n, Memory: 1024 * gib})
	}
	for id := range 2 * nodes * cores {
		core := id % (nodes * cores)
		n := core / cores
		t.CPUs = append(t.CPUs, numa.CPU{
			ID: id, Socket: n, Core: core % cores, L3: core / perL3, NUMA: n, Online: true,
			Siblings: bitset.Of(core, core+nodes*cores),
		})
		t.Nodes[n].CPUs.Add(id)
	}
	return t
}
