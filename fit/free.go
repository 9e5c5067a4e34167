package fit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// Free has the free resources of a host. The value is owned by one goroutine; get it from
// Host.NewFree, for the zero value is of no host. Amounts change through
// Host.Take and Host.Give alone, while Unhealthy, ClosedCounts and Withheld may be set at will.
//
// Invariant (verified by Host.Check): every amount is within 0..full, that of
// huge pages a multiple of their size; domainMilli and domainWhole are the
// millicores and the count of wholly free CPUs per domain; coreWhole and
// groupWhole count wholly free CPUs per core and L3 group; domainCores and
// groupCores count intact cores, all of whose threads are wholly free, and
// groupIntact counts the CPUs of these. Between calls the scratch fields are
// all zero.
type Free struct {
	// CPU is by position in Topology.CPUs; 0 where not usable or reserved.
	CPU []resource.Millicores
	// Memory is ordinary memory by position in Topology.Nodes; 0 for memory-only
	// nodes.
	Memory []resource.Bytes
	// Hugepages is memory in free huge pages: for each position in
	// Topology.Nodes one amount for each of Host.PageSizes, in their order.
	Hugepages []resource.Bytes
	// GPU is by device index; 0 for devices in MIG mode.
	GPU []resource.Milli
	// MIG has, by device index, bit i set where instance i is free; 0 for
	// devices that are not in MIG mode.
	MIG []uint16
	// Counts are the counted resources, in the order of their names.
	Counts []int64
	// ClosedCounts has bit i set where the counted resource i takes no new work; see
	// Host.ClosedBits.
	ClosedCounts uint32
	// Unhealthy has bit i set where device i takes no new work. The parts that it
	// has granted already may still be taken and given back.
	Unhealthy uint64
	// Withheld is the part of the free amounts that takes no new work.
	Withheld Withheld

	domainMilli []resource.Millicores
	domainWhole []int32
	domainCores []int32
	coreWhole   []int32
	groupWhole  []int32
	groupIntact []int32
	groupCores  []int32

	scratch scratch
}

// scratch has the picks of Assign so far.
type scratch struct {
	picked      []uint64 // set of positions in Topology.CPUs
	amount      []int16  // by position: the millicores picked
	coreTaken   []int32  // wholly free CPUs picked, by core
	groupTaken  []int32  // the same by L3 group
	groupBroken []int32  // CPUs of intact cores picked from, by L3 group
}

// NewFree returns the empty host: all of Allocatable is free, and devices are
// unhealthy as the inventory says.
func (h *Host) NewFree() *Free {
	f := &Free{
		CPU:         make([]resource.Millicores, len(h.topology.CPUs)),
		Memory:      slices.Clone(h.fullMemory),
		Hugepages:   slices.Clone(h.pages.full),
		GPU:         make([]resource.Milli, len(h.inventory.Devices)),
		MIG:         slices.Clone(h.partitions.full),
		Counts:      slices.Clone(h.counts.full),
		domainMilli: make([]resource.Millicores, len(h.domains)),
		domainWhole: make([]int32, len(h.domains)),
		domainCores: make([]int32, len(h.domains)),
		coreWhole:   make([]int32, len(h.cores)),
		groupWhole:  make([]int32, len(h.groups)),
		groupIntact: make([]int32, len(h.groups)),
		groupCores:  make([]int32, len(h.groups)),
	}
	f.scratch = newScratch(f)
	for i, d := range h.inventory.Devices {
		if h.whole&(1<<i) != 0 {
			f.GPU[i] = resource.WholeDevice
		}
		if !d.Health.Allocatable() {
			f.Unhealthy |= 1 << i
		}
	}
	for _, p := range h.order {
		h.setCPU(f, p, resource.WholeCPU)
	}
	return f
}

func newScratch(f *Free) scratch {
	return scratch{
		picked:      make([]uint64, (len(f.CPU)+63)/64),
		amount:      make([]int16, len(f.CPU)),
		coreTaken:   make([]int32, len(f.coreWhole)),
		groupTaken:  make([]int32, len(f.groupWhole)),
		groupBroken: make([]int32, len(f.groupWhole)),
	}
}

// Equal reports whether the same is free, and the same devices are unhealthy.
func (f *Free) Equal(o *Free) bool {
	return f.Unhealthy == o.Unhealthy && f.Withheld == o.Withheld && slices.Equal(f.CPU, o.CPU) && slices.Equal(f.Memory, o.Memory) &&
		slices.Equal(f.Hugepages, o.Hugepages) && slices.Equal(f.GPU, o.GPU) && slices.Equal(f.MIG, o.MIG) &&
		f.ClosedCounts == o.ClosedCounts && slices.Equal(f.Counts, o.Counts)
}

// setCPU sets the free part of one usable CPU and keeps the counts.
func (h *Host) setCPU(f *Free, position int32, now resource.Millicores) {
	was := f.CPU[position]
	f.CPU[position] = now
	at := h.coreOf[position]
	c := &h.cores[at]
	f.domainMilli[c.domain] += now - was
	var change int32
	switch {
	case now == was:
		return
	case now == resource.WholeCPU:
		change = 1
	case was == resource.WholeCPU:
		change = -1
	default:
		return
	}
	if f.coreWhole[at] == c.full {
		f.groupIntact[c.group] -= c.full
		f.groupCores[c.group]--
		f.domainCores[c.domain]--
	}
	f.coreWhole[at] += change
	f.groupWhole[c.group] += change
	f.domainWhole[c.domain] += change
	if f.coreWhole[at] == c.full {
		f.groupIntact[c.group] += c.full
		f.groupCores[c.group]++
		f.domainCores[c.domain]++
	}
}

// Clone returns an independent copy.
func (f *Free) Clone() *Free {
	c := &Free{}
	c.CopyFrom(f)
	return c
}

// CopyFrom makes f equal to src. It allocates nothing where f was of the same
// host before.
func (f *Free) CopyFrom(src *Free) {
	f.CPU = append(f.CPU[:0], src.CPU...)
	f.Memory = append(f.Memory[:0], src.Memory...)
	f.Hugepages = append(f.Hugepages[:0], src.Hugepages...)
	f.GPU = append(f.GPU[:0], src.GPU...)
	f.MIG = append(f.MIG[:0], src.MIG...)
	f.Counts = append(f.Counts[:0], src.Counts...)
	f.Unhealthy, f.ClosedCounts, f.Withheld = src.Unhealthy, src.ClosedCounts, src.Withheld
	f.domainMilli = append(f.domainMilli[:0], src.domainMilli...)
	f.domainWhole = append(f.domainWhole[:0], src.domainWhole...)
	f.domainCores = append(f.domainCores[:0], src.domainCores...)
	f.coreWhole = append(f.coreWhole[:0], src.coreWhole...)
	f.groupWhole = append(f.groupWhole[:0], src.groupWhole...)
	f.groupIntact = append(f.groupIntact[:0], src.groupIntact...)
	f.groupCores = append(f.groupCores[:0], src.groupCores...)
	if len(f.scratch.amount) != len(f.CPU) || len(f.scratch.coreTaken) != len(f.coreWhole) || len(f.scratch.groupTaken) != len(f.groupWhole) {
		f.scratch = newScratch(f)
	}
}

// FreeVector returns the sums of the resources that may still be handed out, by the names of
// Allocatable. Unhealthy devices, their instances and the withheld part do not count.
func (h *Host) FreeVector(f *Free) resource.Vector {
	h.own(f)
	v := resource.Vector{}
	count(v, resource.CPU, int64(f.OpenCPU()))
	count(v, resource.Memory, int64(f.OpenMemory()))
	for i, m := range f.GPU {
		if f.Unhealthy&(1<<i) == 0 {
			count(v, resource.GPU, int64(m))
		}
	}
	h.pages.count(v, f.Hugepages)
	h.partitions.count(v, f.MIG, f.Unhealthy)
	for i, name := range h.counts.names {
		if f.ClosedCounts&(1<<i) == 0 {
			count(v, name, f.Counts[i])
		}
	}
	for name := range f.Withheld.Rest.All() {
		if v[name] > 0 {
			v[name] = f.openAmount(h, name)
		}
	}
	return v
}

// FreeCPU returns the millicores free on the node at the given position in
// Topology.Nodes, 0 for memory-only nodes.
func (h *Host) FreeCPU(f *Free, node int) resource.Millicores {
	h.own(f)
	if d := h.domainOf[node]; d >= 0 {
		return f.domainMilli[d]
	}
	return 0
}

// WholeFreeCores counts the physical cores of the node at the given position
// in Topology.Nodes all of whose threads are wholly free.
func (h *Host) WholeFreeCores(f *Free, node int) int {
	h.own(f)
	if d := h.domainOf[node]; d >= 0 {
		return int(f.domainCores[d])
	}
	return 0
}

// FreeCores counts the physical cores of the host all of whose threads are
// wholly free: the most that a request for whole cores can get.
func (h *Host) FreeCores(f *Free) int {
	h.own(f)
	n := 0
	for _, cores := range f.domainCores {
		n += int(cores)
	}
	return n
}

// own panics unless f has the shape of this host: it is another host's, or the
// zero value.
func (h *Host) own(f *Free) {
	if len(f.CPU) != len(h.topology.CPUs) || len(f.Memory) != len(h.fullMemory) || len(f.GPU) != len(h.inventory.Devices) ||
		len(f.Hugepages) != len(h.pages.full) || len(f.MIG) != len(f.GPU) || len(f.Counts) != len(h.counts.full) ||
		len(f.coreWhole) != len(h.cores) || len(f.groupWhole) != len(h.groups) || len(f.domainMilli) != len(h.domains) {
		panic(fmt.Sprintf("fit: Free of %d CPUs, %d nodes, %d GPUs used on a host of %d, %d, %d",
			len(f.CPU), len(f.Memory), len(f.GPU), len(h.topology.CPUs), len(h.fullMemory), len(h.inventory.Devices)))
	}
}

// Check verifies the invariant of f and names the first breach.
func (h *Host) Check(f *Free) error {
	h.own(f)
	want := h.NewFree()
	for i, m := range f.CPU {
		if m < 0 || m > want.CPU[i] {
			return fmt.Errorf("fit: cpu %d has %d millicores free of %d", h.topology.CPUs[i].ID, m, want.CPU[i])
		}
	}
	for i, m := range f.Memory {
		if m < 0 || m > want.Memory[i] {
			return fmt.Errorf("fit: node %d has %d bytes free of %d", h.topology.Nodes[i].ID, m, want.Memory[i])
		}
	}
	for i, m := range f.GPU {
		if m < 0 || m > want.GPU[i] {
			return fmt.Errorf("fit: GPU %d has %d milli free of %d", i, m, want.GPU[i])
		}
	}
	if err := cmp.Or(h.checkPages(f), h.checkMIG(f), h.checkCounts(f)); err != nil {
		return err
	}
	for _, p := range h.order {
		h.setCPU(want, p, f.CPU[p])
	}
	for _, counts := range []struct {
		name      string
		have, sum []int32
	}{
		{"domainWhole", f.domainWhole, want.domainWhole},
		{"domainCores", f.domainCores, want.domainCores},
		{"coreWhole", f.coreWhole, want.coreWhole},
		{"groupWhole", f.groupWhole, want.groupWhole},
		{"groupIntact", f.groupIntact, want.groupIntact},
		{"groupCores", f.groupCores, want.groupCores},
		{"coreTaken", f.scratch.coreTaken, want.scratch.coreTaken},
		{"groupTaken", f.scratch.groupTaken, want.scratch.groupTaken},
		{"groupBroken", f.scratch.groupBroken, want.scratch.groupBroken},
	} {
		if !slices.Equal(counts.have, counts.sum) {
			return fmt.Errorf("fit: %s is %v, the CPUs say %v", counts.name, counts.have, counts.sum)
		}
	}
	if !slices.Equal(f.domainMilli, want.domainMilli) {
		return fmt.Errorf("fit: domainMilli is %v, the CPUs say %v", f.domainMilli, want.domainMilli)
	}
	if !slices.Equal(f.scratch.picked, want.scratch.picked) || !slices.Equal(f.scratch.amount, want.scratch.amount) {
		return fmt.Errorf("fit: scratch is left with CPUs picked: %x", f.scratch.picked)
	}
	return nil
}

// heal has every device take work, as while its host is healthy.
func (f *Free) heal() { f.Unhealthy, f.ClosedCounts, f.Withheld = 0, 0, Withheld{} }
