package inspect

import (
	"fmt"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

const gib = resource.Bytes(1) << 30

// gpuHost has two sockets, each a node of two cores with two threads, and four
// GPUs: two pairs linked by NVLink, one card in MIG mode.
func gpuHost() Report {
	t := &numa.Topology{
		Nodes: []numa.Node{
			{ID: 0, CPUs: bitset.Of(0, 1, 4, 5), Memory: 256 * gib, Hugepages: map[int]int64{2048: 512, 1048576: 0}},
			{ID: 1, CPUs: bitset.Of(2, 3, 6, 7), Memory: 256*gib + 300<<20},
		},
		Distances: [][]int{{10, 21}, {21, 10}},
	}
	for id := range 8 {
		socket := id % 4 / 2
		t.CPUs = append(t.CPUs, numa.CPU{
			ID: id, Socket: socket, Core: id % 2, L3: socket, NUMA: socket, Online: id != 7, Isolated: id == 3,
			Siblings: bitset.Of(id%4, id%4+4),
		})
	}
	t.CPUs[3].Siblings, t.CPUs[7].Siblings = bitset.Of(3), bitset.Of(7)
	t.CPUs[7].Socket, t.CPUs[7].Core, t.CPUs[7].L3 = numa.Unknown, numa.Unknown, numa.Unknown
	const model = "NVIDIA A100-SXM4-80GB"
	inv := &devices.Inventory{
		Driver: "550.54.15",
		Devices: []devices.Device{
			{Index: 0, UUID: "GPU-00000000-0000-0000-0000-000000000000", Model: model, Memory: 80 * gib, PCIBusID: "0000:07:00.0", NUMANode: 0},
			{Index: 1, UUID: "GPU-11111111-1111-1111-1111-111111111111", Model: model, Memory: 80 * gib, PCIBusID: "0000:0f:00.0", NUMANode: 0, Health: devices.Suspect},
			{Index: 2, UUID: "GPU-22222222-2222-2222-2222-222222222222", Model: model, Memory: 80 * gib, PCIBusID: "0000:47:00.0", NUMANode: 1, Health: devices.Tainted},
			{
				Index: 3, UUID: "GPU-33333333-3333-3333-3333-333333333333", Model: model, Memory: 80 * gib, PCIBusID: "0000:4e:00.0", NUMANode: 1,
				MIG: devices.MIG{Enabled: true, Instances: []devices.MIGInstance{
					{UUID: "MIG-44444444-4444-4444-4444-444444444444", Profile: "3g.40gb", Memory: 40 * gib},
					{UUID: "MIG-55555555-5555-5555-5555-555555555555", Profile: "1g.10gb", Memory: 10 * gib},
				}},
			},
		},
	}
	nv, sys, none := devices.NVLink(12), devices.LinkSYS, devices.LinkNone
	inv.Links = [][]devices.Link{
		{none, nv, sys, sys},
		{nv, none, sys, sys},
		{sys, sys, none, devices.LinkPXB},
		{sys, sys, devices.LinkPXB, none},
	}
	host := sysfs.Host{Hostname: "node-7", BootID: "0d8f2c6e-6a0b-4f0e-9d5b-6b1c7c3f2a10", Kernel: "6.1.0-28-amd64"}
	return New(host, t, inv, []string{"sys/devices/system/node/has_cpu: disagrees with the files of nodes 1, which are believed"})
}

// dgx has two sockets of 64 cores in eight nodes, as a DGX A100 has, and eight
// GPUs on one NVSwitch, two to a PCIe switch.
func dgx() Report {
	t := &numa.Topology{}
	for node := range 8 {
		n := numa.Node{ID: node, Memory: 128 * gib, Hugepages: map[int]int64{2048: 0, 1048576: 16}}
		row := make([]int, 8)
		for other := range row {
			switch {
			case other == node:
				row[other] = 10
			case other/4 == node/4:
				row[other] = 12
			default:
				row[other] = 32
			}
		}
		for i := range 16 {
			n.CPUs.Add(16*node + i)
			n.CPUs.Add(16*node + i + 128)
		}
		t.Nodes, t.Distances = append(t.Nodes, n), append(t.Distances, row)
	}
	for id := range 256 {
		core := id % 128
		t.CPUs = append(t.CPUs, numa.CPU{
			ID: id, Socket: core / 64, Core: core % 64, L3: core / 4, NUMA: core / 16, Online: true, Isolated: core == 0,
			Siblings: bitset.Of(core, core+128),
		})
	}
	inv := &devices.Inventory{Driver: "535.129.03", Links: make([][]devices.Link, 8)}
	for i := range 8 {
		inv.Devices = append(inv.Devices, devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-%036d", i), Model: "NVIDIA A100-SXM4-80GB", Memory: 80 * gib,
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", 7+8*i), NUMANode: []int{3, 3, 1, 1, 7, 7, 5, 5}[i],
		})
		inv.Links[i] = make([]devices.Link, 8)
		for j := range 8 {
			if i != j {
				inv.Links[i][j] = devices.NVLink(12)
			}
		}
	}
	return New(sysfs.Host{Hostname: "dgx-1", BootID: "0d8f2c6e-6a0b-4f0e-9d5b-6b1c7c3f2a10", Kernel: "5.15.0-1040-nvidia"}, t, inv, nil)
}

// hybridLaptop has six performance cores of two threads, eight efficiency
// cores and two low-power ones, one of which is offline, and no driver.
func hybridLaptop() Report {
	t := &numa.Topology{Nodes: []numa.Node{{ID: 0, Memory: 31 * gib}}, Distances: [][]int{{10}}}
	for id := range 22 {
		c := numa.CPU{ID: id, Core: id, NUMA: 0, Online: id != 21, Kind: numa.Efficiency, Siblings: bitset.Of(id)}
		switch {
		case id < 12:
			c.Kind, c.Siblings = numa.Performance, bitset.Of(id/2*2, id/2*2+1)
		case id >= 20:
			c.Kind, c.L3 = numa.LowPower, numa.Unknown
		}
		if c.Online {
			t.Nodes[0].CPUs.Add(id)
		} else {
			c.Kind = numa.UnknownKind
		}
		t.CPUs = append(t.CPUs, c)
	}
	return New(sysfs.Host{Hostname: "laptop", Kernel: "6.10.4"}, t, &devices.Inventory{}, nil)
}

// power9 has six GPUs whose memory is that of six NUMA nodes.
func power9() Report {
	t := &numa.Topology{}
	ids := []int{0, 8, 252, 253, 254, 255}
	for i, id := range ids {
		n := numa.Node{ID: id, Memory: 15 * gib, MemoryOnly: i > 1}
		if i < 2 {
			n.Memory, n.Hugepages = 128*gib, map[int]int64{2048: 0, 1048576: 4}
		}
		row := make([]int, len(ids))
		for j := range row {
			row[j] = 80
		}
		row[i] = 10
		if i < 2 {
			row[1-i] = 40
		}
		t.Nodes, t.Distances = append(t.Nodes, n), append(t.Distances, row)
	}
	for id := range 32 {
		socket := id / 16
		at := id
		if socket == 1 {
			at += 72
		}
		t.Nodes[socket].CPUs.Add(at)
		first := at / 4 * 4
		t.CPUs = append(t.CPUs, numa.CPU{
			ID: at, Socket: 8 * socket, Core: at / 4 * 4, L3: id / 8, NUMA: 8 * socket, Online: true,
			Siblings: bitset.Of(first, first+1, first+2, first+3),
		})
	}
	inv := &devices.Inventory{Driver: "418.87.00", Links: make([][]devices.Link, 4)}
	for i := range 4 {
		inv.Devices = append(inv.Devices, devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-%036d", i), Model: "Tesla V100-SXM2-16GB", Memory: 16 * gib,
			PCIBusID: fmt.Sprintf("%04x:0%d:00.0", 4+49*(i/2), 4+i%2), NUMANode: 8 * (i / 2),
		})
		inv.Links[i] = make([]devices.Link, 4)
		for j := range 4 {
			switch {
			case i == j:
			case i/2 == j/2:
				inv.Links[i][j] = devices.NVLink(3)
			default:
				inv.Links[i][j] = devices.LinkSYS
			}
		}
	}
	return New(sysfs.Host{Hostname: "summit-1", Kernel: "4.14.0-49.el7a.ppc64le"}, t, inv, []string{
		"sys/devices/system/node/node0/cpulist: cpus 16-87 are not present; they are left out",
		"sys/devices/system/node/node8/cpulist: cpus 104-175 are not present; they are left out",
	})
}

// wideHost is wider than a terminal in every way: 32 nodes whose CPUs are far
// apart, and 16 GPUs.
func wideHost() Report {
	t := &numa.Topology{}
	for node := range 32 {
		n := numa.Node{ID: node, Memory: gib, Hugepages: map[int]int64{64: 1, 2048: 2, 524288: 3, 16777216: 4}}
		row := make([]int, 32)
		for other := range row {
			row[other] = 10 + 3*max(node-other, other-node)
		}
		for i := range 32 {
			n.CPUs.Add(node + 32*i)
		}
		t.Nodes, t.Distances = append(t.Nodes, n), append(t.Distances, row)
	}
	for id := range 1024 {
		t.CPUs = append(t.CPUs, numa.CPU{
			ID: id, Socket: id % 32, Core: id / 32, L3: id % 32, NUMA: id % 32, Online: true, Isolated: id%7 == 0, Siblings: bitset.Of(id),
		})
	}
	inv := &devices.Inventory{Driver: "550.54.15", Links: make([][]devices.Link, 16)}
	for i := range 16 {
		inv.Devices = append(inv.Devices, devices.Device{
			Index: i, UUID: fmt.Sprintf("GPU-%036d", i), Model: "NVIDIA H100 NVL with a name that nobody would give to a card", Memory: 94 * gib,
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", i), NUMANode: 2 * i, Health: devices.Health(i % 4), MIG: devices.MIG{Enabled: i == 15},
		})
		inv.Links[i] = make([]devices.Link, 16)
		for j := range 16 {
			switch {
			case i == j:
			case i/2 == j/2:
				inv.Links[i][j] = devices.NVLink(18)
			case i/4 == j/4:
				inv.Links[i][j] = devices.LinkPIX
			case i/8 == j/8:
				inv.Links[i][j] = devices.LinkNODE
			default:
				inv.Links[i][j] = devices.LinkSYS
			}
		}
	}
	return New(sysfs.Host{Hostname: "wide", Kernel: "6.1.0"}, t, inv, nil)
}

// plainHost has no NUMA, no GPU and no driver.
func plainHost() Report {
	t := &numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: bitset.Of(0, 1), Memory: 4657991680}}}
	for id := range 2 {
		t.CPUs = append(t.CPUs, numa.CPU{ID: id, Socket: 0, Core: id, L3: numa.Unknown, NUMA: 0, Online: true, Siblings: bitset.Of(id)})
	}
	return New(sysfs.Host{Hostname: "small", Kernel: "6.1.0-28-amd64"}, t, nil, nil)
}

// oddHost has a memory-only node, a CPU without node, a GPU whose node is
// unknown and one whose relation to it is unknown too.
func oddHost() Report {
	t := &numa.Topology{
		Nodes: []numa.Node{
			{ID: 0, CPUs: bitset.Of(0, 1), Memory: 128 * gib},
			{ID: 250, Memory: 15 * gib, MemoryOnly: true},
		},
	}
	for id := range 3 {
		t.CPUs = append(t.CPUs, numa.CPU{ID: id, Socket: id % 2, Core: 0, L3: numa.Unknown, NUMA: 0, Online: true, Siblings: bitset.Of(id)})
	}
	t.CPUs[2].NUMA = numa.Unknown
	inv := &devices.Inventory{
		Devices: []devices.Device{
			{Index: 0, UUID: "GPU-a", Model: "V100\x1b[31m", Memory: 16 * gib, PCIBusID: "0004:04:00.0", NUMANode: 250},
			{Index: 1, UUID: "GPU-b", Model: "V100", Memory: 16 * gib, PCIBusID: "0004:05:00.0", NUMANode: devices.UnknownNode, Health: devices.Probation},
		},
		Links: [][]devices.Link{{devices.LinkNone, devices.LinkNone}, {devices.LinkNone, devices.LinkNone}},
	}
	return New(sysfs.Host{}, t, inv, nil)
}
