package fit

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// maxSlices is the most GPU slices that the instances of one device can name:
// a profile starts with one digit.
const maxSlices = 9 * devices.MaxMIGInstances

// partitionTable is the MIG instances of a host. It is immutable.
//
// Invariant: full is by device the instances that are handed out, as Free.MIG;
// of splits it by profile: of[p][i] are the instances of profiles[p] on device
// i. slices is how many GPU slices an instance of profiles[p] takes.
type partitionTable struct {
	profiles []string // ascending
	names    []resource.Name
	slices   []int
	of       [][]uint16
	full     []uint16
	devices  uint64 // those with instances
}

// newPartitionTable collects the instances whose profile a request can name.
func newPartitionTable(inv *devices.Inventory) partitionTable {
	p := partitionTable{full: make([]uint16, len(inv.Devices))}
	for i, d := range inv.Devices {
		for k, instance := range d.MIG.Instances {
			if resource.ValidMIGProfile(instance.Profile) == nil {
				p.full[i] |= 1 << k
				p.devices |= 1 << i
				p.profiles = append(p.profiles, instance.Profile)
			}
		}
	}
	slices.Sort(p.profiles)
	p.profiles = slices.Compact(p.profiles)
	for _, profile := range p.profiles {
		of := make([]uint16, len(inv.Devices))
		for i, d := range inv.Devices {
			for k, instance := range d.MIG.Instances {
				if instance.Profile == profile {
					of[i] |= 1 << k
				}
			}
		}
		p.of = append(p.of, of)
		p.names = append(p.names, resource.MIG(profile))
		p.slices = append(p.slices, devices.MIGInstance{Profile: profile}.Slices())
	}
	return p
}

// profile returns the position of a profile, or -1.
func (p *partitionTable) profile(name string) int {
	at, found := slices.BinarySearch(p.profiles, name)
	if !found {
		return -1
	}
	return at
}

// slicesOf counts the GPU slices of a set of instances of one device.
func (p *partitionTable) slicesOf(device int, instances uint16) int {
	sum := 0
	for at, of := range p.of {
		sum += p.slices[at] * bits.OnesCount16(of[device]&instances)
	}
	return sum
}

// count adds the free instances, shaped as Free.MIG, of the healthy devices to
// a vector.
func (p *partitionTable) count(v resource.Vector, free []uint16, unhealthy uint64) {
	for rest := p.devices &^ unhealthy; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		for at, of := range p.of {
			count(v, p.names[at], int64(bits.OnesCount16(of[i]&free[i])))
		}
	}
}

// MIGProfiles lists the profiles of the host's MIG instances in ascending
// order.
func (h *Host) MIGProfiles() []string { return slices.Clone(h.partitions.profiles) }

// FreeMIG counts the instances of a profile on healthy devices still to be handed
// out. Free instances on other devices are part of the withheld amount.
func (h *Host) FreeMIG(f *Free, profile string) int {
	h.own(f)
	at := h.partitions.profile(profile)
	if at < 0 {
		return 0
	}
	n, all := 0, 0
	for rest := h.partitions.devices; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		free := bits.OnesCount16(h.partitions.of[at][i] & f.MIG[i])
		if all += free; f.Unhealthy&(1<<i) == 0 {
			n += free
		}
	}
	return min(n, int(f.open(h.partitions.names[at], int64(all))))
}

// FreeSlices counts the GPU slices of the free MIG instances of one device,
// of any health.
func (h *Host) FreeSlices(f *Free, gpu int) int {
	h.own(f)
	return h.partitions.slicesOf(gpu, f.MIG[gpu])
}

// matchingMIG returns those of the given instances of a device that satisfy
// the profile, model and memory of a request.
func (h *Host) matchingMIG(req *resource.Request, profile, device int, instances uint16) uint16 {
	if profile < 0 {
		return 0
	}
	d := &h.inventory.Devices[device]
	instances &= h.partitions.of[profile][device]
	if req.GPUModel != "" && req.GPUModel != d.Model {
		return 0
	}
	if req.GPUMemory > 0 {
		for rest := instances; rest != 0; rest &= rest - 1 {
			k := bits.TrailingZeros16(rest)
			if d.MIG.Instances[k].Memory < req.GPUMemory {
				instances &^= 1 << k
			}
		}
	}
	return instances
}

// countMIG counts by device the instances that satisfy a request, with any
// number of them free.
func (h *Host) countMIG(req *resource.Request, count *[MaxGPUs]uint8) {
	profile := h.partitions.profile(req.MIGProfile)
	for i, full := range h.partitions.full {
		count[i] = uint8(bits.OnesCount16(h.matchingMIG(req, profile, i, full)))
	}
}

// wellFormedMIG is wellFormed for MIG instances.
func (h *Host) wellFormedMIG(grants []resource.MIGGrant) error {
	for i := range grants {
		g := &grants[i]
		if g.GPU < 0 || g.GPU >= len(h.inventory.Devices) {
			return fmt.Errorf("MIG instance %d of GPU %d (%s): this host has %d GPUs", g.Instance, g.GPU, g.UUID, len(h.inventory.Devices))
		}
		instances := h.inventory.Devices[g.GPU].MIG.Instances
		if g.Instance < 0 || g.Instance >= len(instances) {
			return fmt.Errorf("MIG instance %d of GPU %d (%s): that GPU has %d instances", g.Instance, g.GPU, g.UUID, len(instances))
		}
		instance := &instances[g.Instance]
		switch {
		case g.UUID != instance.UUID:
			return fmt.Errorf("MIG instance %d of GPU %d: it is %s, not %q", g.Instance, g.GPU, instance.UUID, g.UUID)
		case g.Profile != instance.Profile:
			return fmt.Errorf("MIG instance %d of GPU %d (%s): it is of profile %q, not %q", g.Instance, g.GPU, g.UUID, instance.Profile, g.Profile)
		case i > 0 && (grants[i-1].GPU > g.GPU || grants[i-1].GPU == g.GPU && grants[i-1].Instance >= g.Instance):
			return fmt.Errorf("MIG instance %d of GPU %d: listed after instance %d of GPU %d, want ascending order", g.Instance, g.GPU, grants[i-1].Instance, grants[i-1].GPU)
		case h.partitions.full[g.GPU]&(1<<g.Instance) == 0:
			return fmt.Errorf("MIG instance %d of GPU %d (%s): profile %q is none that is handed out", g.Instance, g.GPU, g.UUID, g.Profile)
		}
	}
	return nil
}

// takeMIG reports why grants that are well-formed cannot be taken.
func (h *Host) takeMIG(f *Free, grants []resource.MIGGrant) error {
	for i := range grants {
		if g := &grants[i]; f.MIG[g.GPU]&(1<<g.Instance) == 0 {
			return fmt.Errorf("take MIG instance %d of GPU %d (%s): it is held", g.Instance, g.GPU, g.UUID)
		}
	}
	return nil
}

// giveMIG reports why grants that are well-formed cannot be given.
func (h *Host) giveMIG(f *Free, grants []resource.MIGGrant) error {
	for i := range grants {
		if g := &grants[i]; f.MIG[g.GPU]&(1<<g.Instance) != 0 {
			return fmt.Errorf("give MIG instance %d of GPU %d (%s): it is free already", g.Instance, g.GPU, g.UUID)
		}
	}
	return nil
}

// checkMIG is Check for MIG instances.
func (h *Host) checkMIG(f *Free) error {
	for i, free := range f.MIG {
		if extra := free &^ h.partitions.full[i]; extra != 0 {
			return fmt.Errorf("fit: GPU %d has MIG instances %#x free, which are none of its %#x", i, extra, h.partitions.full[i])
		}
	}
	return nil
}
