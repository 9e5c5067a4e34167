package wire

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// ToHost builds the message.
func ToHost(h grant.Host) *musterv1.Host {
	return &musterv1.Host{
		Hostname: h.Hostname, Topology: ToTopology(h.Topology), Inventory: ToInventory(h.Inventory),
		ReservedCpus: h.ReservedCPUs.String(), ReservedMemory: int64(h.ReservedMemory), Labels: maps.Clone(h.Labels), Counts: toCounts(h.Counts),
	}
}

// FromHost reads the message and validates its topology and inventory.
func FromHost(m *musterv1.Host) (grant.Host, error) {
	if m == nil {
		return grant.Host{}, fmt.Errorf("host: missing")
	}
	topology, err := FromTopology(m.GetTopology())
	if err != nil {
		return grant.Host{}, fmt.Errorf("host.%w", err)
	}
	inventory, err := FromInventory(m.GetInventory())
	if err != nil {
		return grant.Host{}, fmt.Errorf("host.%w", err)
	}
	reserved, err := bitset.Parse(m.GetReservedCpus())
	if err != nil {
		return grant.Host{}, fmt.Errorf("host.reserved_cpus: %w", err)
	}
	if m.GetReservedMemory() < 0 || m.GetReservedMemory() > int64(resource.MaxMemory) {
		return grant.Host{}, fmt.Errorf("host.reserved_memory: %d bytes is outside 0..%d", m.GetReservedMemory(), resource.MaxMemory)
	}
	h := grant.Host{
		Hostname: m.GetHostname(), Topology: topology, Inventory: inventory,
		ReservedCPUs: reserved, ReservedMemory: resource.Bytes(m.GetReservedMemory()),
	}
	if len(m.GetLabels()) > 0 {
		h.Labels = maps.Clone(m.GetLabels())
	}
	if h.Counts, err = fromHostCounts(m.GetCounts()); err != nil {
		return grant.Host{}, fmt.Errorf("host.%w", err)
	}
	return h, nil
}

func toCounts(counts []grant.Count) []*musterv1.HostCount {
	var ms []*musterv1.HostCount
	for _, c := range counts {
		ms = append(ms, &musterv1.HostCount{Name: string(c.Name), Amount: c.Amount, Kind: c.Kind, Unit: c.Unit})
	}
	return ms
}

func fromHostCounts(ms []*musterv1.HostCount) ([]grant.Count, error) {
	var counts []grant.Count
	for _, m := range ms {
		counts = append(counts, grant.Count{Name: resource.Name(m.GetName()), Amount: m.GetAmount(), Kind: m.GetKind(), Unit: m.GetUnit()})
	}
	if err := grant.CheckCounts(counts); err != nil {
		return nil, err
	}
	return counts, nil
}

// ToTopology builds the message; nil becomes an empty one.
func ToTopology(t *numa.Topology) *musterv1.Topology {
	m := &musterv1.Topology{}
	if t == nil {
		return m
	}
	for _, n := range t.Nodes {
		node := &musterv1.NUMANode{Id: int32(n.ID), Cpus: n.CPUs.String(), Memory: int64(n.Memory), MemoryOnly: n.MemoryOnly}
		for size, count := range n.Hugepages {
			if node.Hugepages == nil {
				node.Hugepages = make(map[int32]int64, len(n.Hugepages))
			}
			node.Hugepages[int32(size)] = count
		}
		m.Nodes = append(m.Nodes, node)
	}
	for _, c := range t.CPUs {
		m.Cpus = append(m.Cpus, &musterv1.CPU{
			Id: int32(c.ID), Socket: int32(c.Socket), Core: int32(c.Core), L3: int32(c.L3), Numa: int32(c.NUMA),
			Kind: uint32(c.Kind), Online: c.Online, Isolated: c.Isolated, Siblings: c.Siblings.String(),
		})
	}
	for _, row := range t.Distances {
		for _, d := range row {
			m.Distances = append(m.Distances, int32(d))
		}
	}
	return m
}

// FromTopology reads the message and applies numa.Topology.Validate.
func FromTopology(m *musterv1.Topology) (*numa.Topology, error) {
	if len(m.GetNodes()) > numa.MaxNodes {
		return nil, fmt.Errorf("topology.nodes: %d, more than %d", len(m.GetNodes()), numa.MaxNodes)
	}
	if len(m.GetCpus()) > numa.MaxCPUs {
		return nil, fmt.Errorf("topology.cpus: %d, more than %d", len(m.GetCpus()), numa.MaxCPUs)
	}
	t := &numa.Topology{}
	for i, n := range m.GetNodes() {
		node, err := fromNode(n)
		if err != nil {
			return nil, fmt.Errorf("topology.nodes[%d].%w", i, err)
		}
		t.Nodes = append(t.Nodes, node)
	}
	for i, c := range m.GetCpus() {
		cpu, err := fromCPU(c)
		if err != nil {
			return nil, fmt.Errorf("topology.cpus[%d].%w", i, err)
		}
		t.CPUs = append(t.CPUs, cpu)
	}
	if d := m.GetDistances(); len(d) > 0 {
		n := len(t.Nodes)
		if len(d) != n*n {
			return nil, fmt.Errorf("topology.distances: %d entries for %d nodes, want %d", len(d), n, n*n)
		}
		for row := range n {
			line := make([]int, n)
			for col := range line {
				if line[col] = int(d[row*n+col]); line[col] < 0 {
					return nil, fmt.Errorf("topology.distances[%d]: %d is negative", row*n+col, line[col])
				}
			}
			t.Distances = append(t.Distances, line)
		}
	}
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return t, nil
}

func fromNode(m *musterv1.NUMANode) (numa.Node, error) {
	cpus, err := bitset.Parse(m.GetCpus())
	if err != nil {
		return numa.Node{}, fmt.Errorf("cpus: %w", err)
	}
	if m.GetId() < 0 || m.GetId() > numa.MaxNodeID {
		return numa.Node{}, fmt.Errorf("id: %d is outside 0..%d", m.GetId(), numa.MaxNodeID)
	}
	if m.GetMemory() < 0 || m.GetMemory() > int64(resource.MaxMemory) {
		return numa.Node{}, fmt.Errorf("memory: %d bytes is outside 0..%d", m.GetMemory(), resource.MaxMemory)
	}
	n := numa.Node{ID: int(m.GetId()), CPUs: cpus, Memory: resource.Bytes(m.GetMemory()), MemoryOnly: m.GetMemoryOnly()}
	for _, size := range slices.Sorted(maps.Keys(m.GetHugepages())) {
		count, page := m.GetHugepages()[size], resource.Bytes(size)<<10
		if page <= 0 || page > resource.MaxHugepageSize {
			return numa.Node{}, fmt.Errorf("hugepages[%d]: want a page size of 1..%d kB", size, resource.MaxHugepageSize>>10)
		}
		if most := int64(resource.MaxMemory / page); count < 0 || count > most {
			return numa.Node{}, fmt.Errorf("hugepages[%d]: %d pages is outside 0..%d", size, count, most)
		}
		if n.Hugepages == nil {
			n.Hugepages = make(map[int]int64, len(m.GetHugepages()))
		}
		n.Hugepages[int(size)] = count
	}
	return n, nil
}

func fromCPU(m *musterv1.CPU) (numa.CPU, error) {
	if m.GetId() < 0 || m.GetId() >= numa.MaxCPUs {
		return numa.CPU{}, fmt.Errorf("id: %d is outside 0..%d", m.GetId(), numa.MaxCPUs-1)
	}
	for _, f := range [...]struct {
		name  string
		value int32
	}{{"socket", m.GetSocket()}, {"core", m.GetCore()}, {"l3", m.GetL3()}, {"numa", m.GetNuma()}} {
		if f.value < numa.Unknown {
			return numa.CPU{}, fmt.Errorf("%s: %d; want -1 (unknown) or greater", f.name, f.value)
		}
	}
	if m.GetKind() > uint32(numa.LowPower) {
		return numa.CPU{}, fmt.Errorf("kind: %d is no kind of core", m.GetKind())
	}
	siblings, err := bitset.Parse(m.GetSiblings())
	if err != nil {
		return numa.CPU{}, fmt.Errorf("siblings: %w", err)
	}
	if n := siblings.Len(); n > numa.MaxSiblings { // 8,192 lists of all CPUs are no small set
		return numa.CPU{}, fmt.Errorf("siblings: %d, more than %d", n, numa.MaxSiblings)
	}
	return numa.CPU{
		ID: int(m.GetId()), Socket: int(m.GetSocket()), Core: int(m.GetCore()), L3: int(m.GetL3()), NUMA: int(m.GetNuma()),
		Kind: numa.CoreKind(m.GetKind()), Online: m.GetOnline(), Isolated: m.GetIsolated(), Siblings: siblings,
	}, nil
}

// ToInventory builds the message; nil becomes an empty one.
func ToInventory(inv *devices.Inventory) *musterv1.Inventory {
	m := &musterv1.Inventory{}
	if inv == nil {
		return m
	}
	m.Driver = inv.Driver
	for _, d := range inv.Devices {
		device := &musterv1.Device{
			Uuid: d.UUID, Model: d.Model, Memory: int64(d.Memory), PciBusId: d.PCIBusID,
			NumaNode: int32(d.NUMANode), MigEnabled: d.MIG.Enabled, Health: d.Health.String(), Clique: d.Clique,
		}
		for _, g := range d.MIG.Instances {
			device.MigInstances = append(device.MigInstances, &musterv1.MIGInstance{Uuid: g.UUID, Profile: g.Profile, Memory: int64(g.Memory)})
		}
		m.Devices = append(m.Devices, device)
	}
	for _, row := range inv.Links {
		for _, l := range row {
			m.Connections = append(m.Connections, byte(l))
		}
	}
	return m
}

// FromInventory reads the message and applies devices.Inventory.Validate.
func FromInventory(m *musterv1.Inventory) (*devices.Inventory, error) {
	n := len(m.GetDevices())
	if n > devices.MaxDevices {
		return nil, fmt.Errorf("inventory.devices: %d, more than %d", n, devices.MaxDevices)
	}
	field, links := "connections", m.GetConnections()
	if links == nil && n > 0 {
		field, links = "links", linksOfVersion1(m.GetLinks())
	}
	if len(links) != n*n {
		return nil, fmt.Errorf("inventory.%s: %d entries for %d devices, want %d", field, len(links), n, n*n)
	}
	inv := &devices.Inventory{Driver: m.GetDriver()}
	for i, d := range m.GetDevices() {
		health, err := devices.ParseHealth(d.GetHealth())
		if err != nil {
			return nil, fmt.Errorf("inventory.devices[%d].health: %w", i, err)
		}
		if d.GetNumaNode() < devices.UnknownNode {
			return nil, fmt.Errorf("inventory.devices[%d].numa_node: %d; want -1 (unknown) or greater", i, d.GetNumaNode())
		}
		device := devices.Device{
			Index: i, UUID: d.GetUuid(), Model: d.GetModel(), Memory: resource.Bytes(d.GetMemory()),
			PCIBusID: d.GetPciBusId(), NUMANode: int(d.GetNumaNode()), Health: health,
			Clique: d.GetClique(), MIG: devices.MIG{Enabled: d.GetMigEnabled()},
		}
		for _, g := range d.GetMigInstances() {
			device.MIG.Instances = append(device.MIG.Instances, devices.MIGInstance{
				UUID: g.GetUuid(), Profile: g.GetProfile(), Memory: resource.Bytes(g.GetMemory()),
			})
		}
		inv.Devices = append(inv.Devices, device)
	}
	for row := range n {
		line := make([]devices.Link, n)
		for col := range line {
			line[col] = devices.Link(links[row*n+col])
			if !line[col].Valid() {
				return nil, fmt.Errorf("inventory.%s[%d]: %d is no link class", field, row*n+col, line[col])
			}
		}
		inv.Links = append(inv.Links, line)
	}
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return inv, nil
}

// linksOfVersion1 returns links that an older agent sent as devices.Link
// numbers them now. Numbers out of range stay so.
func linksOfVersion1(old []byte) []byte {
	links := make([]byte, len(old))
	for i, b := range old {
		links[i] = b
		switch n := int(b) - int(devices.LinkPIX); {
		case n > devices.MaxNVLinks:
			links[i] = max(b, byte(devices.NVLink(devices.MaxNVLinks).Over(devices.LinkPIX))+1)
		case n > 0:
			links[i] = byte(devices.NVLink(n))
		}
	}
	return links
}
