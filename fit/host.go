package fit

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// MaxGPUs is the most devices of one host.
const MaxGPUs = devices.MaxDevices

// Reserved has the resources that a host keeps for its system; they are not allocatable.
type Reserved struct {
	// CPUs are kernel CPU numbers; each must exist on the host.
	CPUs bitset.Set
	// Memory is taken from the ordinary NUMA nodes in proportion to their
	// sizes.
	Memory resource.Bytes
}

// Host is the unchanging facts of one host and the score tables made from
// them. It may be used by any number of goroutines.
type Host struct {
	layout
	topology  *numa.Topology
	inventory *devices.Inventory
	reserved  Reserved

	fullCPU    []resource.Millicores // by domain
	fullCores  []int32               // by domain: cores all of whose threads are usable
	fullMemory []resource.Bytes      // by position in Topology.Nodes
	pages      pageTable
	partitions partitionTable
	counts     countTable
	everywhere uint64 // all domains

	models     []resource.Name // by device: under which quotas count it
	bonds      [][]bond        // by device
	peers      [2]peers        // by switchPeers and nvlinkPeers
	links      *linkTable      // nil on hosts of more than maxExact devices
	whole      uint64          // devices not in MIG mode
	gpuDomain  [MaxGPUs]int8
	domainGPUs []uint64     // by domain: its devices, without the unaligned
	unaligned  uint64       // devices that count as on every node
	slots      []int8       // the domains that have devices
	slotsOf    [2][256]slot // by low and high byte of a set of at most maxExact devices
}

// slot is a set of domains with devices, as positions in Host.slots.
type slot uint16

// NewHost builds the tables of one host. It refuses a topology or inventory
// that breaks its own invariants, reserved CPUs that do not exist, more
// reserved memory than there is, huge pages that cannot be, and hosts beyond
// numa.MaxPageSizes sizes of huge pages. On a host of more than MaxNodes ordinary
// NUMA nodes it leaves nodes out (LeftOut). It keeps t and inv, which must not
// change afterwards.
func NewHost(t *numa.Topology, inv *devices.Inventory, reserved Reserved) (*Host, error) {
	return NewHostLike(nil, t, inv, reserved)
}

// NewHostLike is NewHost for a host that may be of the same kind as another:
// where the links and NUMA nodes of the devices compare alike, the score
// tables (up to 400 kB) are shared. like may be nil.
func NewHostLike(like *Host, t *numa.Topology, inv *devices.Inventory, reserved Reserved) (*Host, error) {
	if t == nil || inv == nil {
		return nil, errors.New("fit: a host needs a topology and an inventory, one is nil")
	}
	if err := errors.Join(t.Validate(), inv.Validate()); err != nil {
		return nil, err
	}
	for id := range reserved.CPUs.All() {
		if _, ok := t.CPU(id); !ok {
			return nil, fmt.Errorf("fit: reserved cpu %d does not exist on this host", id)
		}
	}
	l := newLayout(t, reserved.CPUs)
	reserved.CPUs = reserved.CPUs.Clone()
	h := &Host{layout: l, topology: t, inventory: inv, reserved: reserved, everywhere: 1<<len(l.domains) - 1, counts: countTable{pods: -1}}
	var err error
	if h.pages, err = newPageTable(t, &l); err != nil {
		return nil, err
	}
	if h.fullMemory, err = memoryAfter(h.pages.ordinaryMemory(t, &l), reserved.Memory); err != nil {
		return nil, err
	}
	for _, d := range h.domains {
		h.fullCPU = append(h.fullCPU, resource.Millicores(d.cpus.to-d.cpus.from)*resource.WholeCPU)
		cores := int32(0)
		for _, c := range h.cores[d.cores.from:d.cores.to] {
			if c.whole() {
				cores++
			}
		}
		h.fullCores = append(h.fullCores, cores)
	}
	h.models = modelsOf(inv)
	h.partitions = newPartitionTable(inv)
	h.placeGPUs()
	switch {
	case len(inv.Devices) > maxExact:
	case like != nil && like.links.serves(h.bonds):
		h.links = like.links
	default:
		h.links = newLinkTable(h.bonds)
	}
	return h, nil
}

// memoryAfter is the rest of the ordinary memory of each node once
// reserved is taken: proportionally, rounded down, the last bytes from the
// first nodes that have them.
func memoryAfter(ordinary []resource.Bytes, reserved resource.Bytes) ([]resource.Bytes, error) {
	var total uint64
	for _, memory := range ordinary {
		total += uint64(memory)
	}
	if reserved < 0 || uint64(reserved) > total {
		return nil, fmt.Errorf("fit: reserved memory of %d bytes is outside 0..%d, the host's ordinary memory", reserved, total)
	}
	left := reserved
	free := make([]resource.Bytes, len(ordinary))
	for i, memory := range ordinary {
		if memory == 0 {
			continue
		}
		high, low := bits.Mul64(uint64(reserved), uint64(memory))
		part, _ := bits.Div64(high, low, total)
		free[i] = memory - resource.Bytes(part)
		left -= resource.Bytes(part)
	}
	for i := range free {
		part := min(left, free[i])
		free[i] -= part
		left -= part
	}
	return free, nil
}

// placeGPUs notes which devices are handed out, which domain each is in and
// what bonds them.
func (h *Host) placeGPUs() {
	h.domainGPUs = make([]uint64, len(h.domains))
	for i, d := range h.inventory.Devices {
		if !d.MIG.Enabled {
			h.whole |= 1 << i
		}
		h.gpuDomain[i] = -1
		if n := h.topology.NodeIndex(d.NUMANode); n != numa.Unknown {
			h.gpuDomain[i] = int8(h.domainOf[n])
		}
		if h.gpuDomain[i] < 0 {
			h.unaligned |= 1 << i
			continue
		}
		h.domainGPUs[h.gpuDomain[i]] |= 1 << i
	}
	for i, links := range h.inventory.Links {
		row := make([]bond, len(links))
		for j, l := range links {
			row[j] = worthOf(l) << bondLink
			if i != j && h.gpuDomain[i] >= 0 && h.gpuDomain[i] == h.gpuDomain[j] {
				row[j]++
			}
		}
		h.bonds = append(h.bonds, row)
		h.peers[switchPeers][i] = peersOf(links, devices.LinkPIX)
		h.peers[nvlinkPeers][i] = peersOf(links, devices.NVLink(1))
	}
	for d, gpus := range h.domainGPUs {
		if gpus == 0 {
			continue
		}
		at := len(h.slots)
		h.slots = append(h.slots, int8(d))
		if len(h.inventory.Devices) > maxExact {
			continue
		}
		for b := range 256 {
			if gpus&uint64(b) != 0 {
				h.slotsOf[0][b] |= 1 << at
			}
			if gpus>>8&uint64(b) != 0 {
				h.slotsOf[1][b] |= 1 << at
			}
		}
	}
}

// Topology returns the processors and memory the host was built from.
func (h *Host) Topology() *numa.Topology { return h.topology }

// Inventory returns the devices the host was built from.
func (h *Host) Inventory() *devices.Inventory { return h.inventory }

// Reserved returns the resources that are kept for the system.
func (h *Host) Reserved() Reserved {
	return Reserved{CPUs: h.reserved.CPUs.Clone(), Memory: h.reserved.Memory}
}

// Allocatable returns all that can be handed out on the empty host: usable
// CPUs and ordinary memory without the reserved part, huge pages by size, counted resources, every
// device that is not in MIG mode and MIG instances by profile, of
// devices of any health. Whole cores are a view of the CPUs and not counted beside
// them.
func (h *Host) Allocatable() resource.Vector {
	v := resource.Vector{}
	for _, c := range h.fullCPU {
		count(v, resource.CPU, int64(c))
	}
	for _, m := range h.fullMemory {
		count(v, resource.Memory, int64(m))
	}
	count(v, resource.GPU, int64(bits.OnesCount64(h.whole))*int64(resource.WholeDevice))
	h.pages.count(v, h.pages.full)
	h.partitions.count(v, h.partitions.full, 0)
	for i, name := range h.counts.names {
		count(v, name, h.counts.full[i])
	}
	return v
}

// count adds an amount to a vector and leaves zeros out.
func count(v resource.Vector, name resource.Name, amount int64) {
	if amount > 0 {
		v[name] += amount
	}
}

// domainsOf returns the domains of a set of devices.
func (h *Host) domainsOf(gpus uint64) uint64 {
	var set uint64
	for rest := gpus &^ h.unaligned; rest != 0; rest &= rest - 1 {
		set |= 1 << h.gpuDomain[bits.TrailingZeros64(rest)]
	}
	return set
}

// gpusOf returns the devices on a set of domains, the unaligned included.
func (h *Host) gpusOf(domains uint64) uint64 {
	gpus := h.unaligned
	for ; domains != 0; domains &= domains - 1 {
		gpus |= h.domainGPUs[bits.TrailingZeros64(domains)]
	}
	return gpus
}
