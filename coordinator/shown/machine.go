package shown

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Machine is the hardware of a node as the leader has written it (record.HostFacts),
// with its lists of CPUs parsed. It never changes.
type Machine struct {
	numa      []numaNode
	elsewhere bitset.Set // CPUs of none of the nodes
	models    []string
	devices   []record.DeviceFacts
	counts    []resource.CountGrant
}

// numaNode is one NUMA node.
type numaNode struct {
	record.NUMAFacts
	usable bitset.Set
	cores  []coreKind
}

// coreKind is the cores of a node whose threads are at the same distances.
type coreKind struct {
	distances []int // to the further threads
	first     bitset.Set
}

// MachineOf parses the hardware of an observation.
func MachineOf(h *record.HostFacts) (*Machine, error) {
	m := &Machine{models: h.Models, devices: h.Devices, counts: h.Counts}
	var err error
	if m.elsewhere, err = bitset.Parse(h.Elsewhere); err != nil {
		return nil, fmt.Errorf("host.elsewhere: %w", err)
	}
	for i, facts := range h.NUMA {
		n := numaNode{NUMAFacts: facts}
		if n.usable, err = bitset.Parse(facts.Usable); err != nil {
			return nil, fmt.Errorf("host.numa[%d].usable: %w", i, err)
		}
		for distances, first := range facts.Cores {
			k, err := parseCores(distances, first)
			if err != nil {
				return nil, fmt.Errorf("host.numa[%d].cores: %w", i, err)
			}
			n.cores = append(n.cores, k)
		}
		m.numa = append(m.numa, n)
	}
	return m, nil
}

// parseCores parses an entry of record.NUMAFacts.Cores.
func parseCores(distances, first string) (k coreKind, err error) {
	if k.first, err = bitset.Parse(first); err != nil {
		return k, err
	}
	for _, text := range strings.Split(distances, "+")[1:] {
		d, err := strconv.Atoi(text)
		if err != nil || d <= 0 || d >= numa.MaxCPUs {
			return k, fmt.Errorf("%q: the distance %q of two threads is not within 1..%d", distances, text, numa.MaxCPUs-1)
		}
		k.distances = append(k.distances, d)
	}
	return k, nil
}

// free is the part of a machine that nobody holds.
type free struct {
	of     *Machine
	cpus   map[int]resource.Millicores // by CPU; those that are taken in part or whole
	memory []resource.Bytes            // by position of the node
	pages  [][]resource.Bytes          // by position of the node and of the size
	gpus   []resource.Milli            // by device
	mig    []uint16                    // by device: the instances that are free
	counts resource.Vector             // the counted resources
}

// newFree is the empty machine.
func (m *Machine) newFree() *free {
	f := &free{of: m, cpus: map[int]resource.Millicores{}, gpus: make([]resource.Milli, len(m.devices)), mig: make([]uint16, len(m.devices)), counts: resource.Vector{}}
	for _, c := range m.counts {
		f.counts[c.Name] = c.Amount
	}
	for _, n := range m.numa {
		f.memory = append(f.memory, n.Ordinary)
		pages := make([]resource.Bytes, len(n.Pages))
		for i, p := range n.Pages {
			pages[i] = p.Bytes
		}
		f.pages = append(f.pages, pages)
	}
	for i, d := range m.devices {
		if !d.MIG {
			f.gpus[i] = resource.WholeDevice
		}
		for k, g := range d.Instances {
			if resource.ValidMIGProfile(g.Profile) == nil {
				f.mig[i] |= 1 << k
			}
		}
	}
	return f
}

// take subtracts the part of an assignment that the machine has. A card that was lost,
// and pages that were given back, are no part of the machine any more.
func (f *free) take(a resource.Assignment) {
	for _, g := range a.CPUs {
		f.cpus[g.ID] = min(resource.WholeCPU, f.cpus[g.ID]+g.Milli)
	}
	for _, g := range a.Memory {
		if at := f.of.node(g.Node); at >= 0 {
			f.memory[at] = max(0, f.memory[at]-g.Bytes)
		}
	}
	for _, g := range a.Hugepages {
		at := f.of.node(g.Node)
		if at < 0 {
			continue
		}
		for i, p := range f.of.numa[at].Pages {
			if p.Size == g.Size {
				f.pages[at][i] = max(0, f.pages[at][i]-g.Bytes)
			}
		}
	}
	for _, g := range a.GPUs {
		if g.Index >= 0 && g.Index < len(f.gpus) && f.of.devices[g.Index].UUID == g.UUID {
			f.gpus[g.Index] = max(0, f.gpus[g.Index]-g.Milli)
		}
	}
	for _, g := range a.MIG {
		if g.GPU < 0 || g.GPU >= len(f.mig) {
			continue
		}
		if has := f.of.devices[g.GPU].Instances; g.Instance >= 0 && g.Instance < len(has) && has[g.Instance].UUID == g.UUID {
			f.mig[g.GPU] &^= 1 << g.Instance
		}
	}
	f.takeCounts(a.Counts)
}

// takeCounts subtracts counted resources.
func (f *free) takeCounts(grants []resource.CountGrant) {
	for _, g := range grants {
		if have, known := f.counts[g.Name]; known {
			f.counts[g.Name] = max(0, have-g.Amount)
		}
	}
}

// node is the position of a NUMA node by its id, -1 for none.
func (m *Machine) node(id int) int {
	return slices.IndexFunc(m.numa, func(n numaNode) bool { return n.ID == id })
}

// cpuOf is the free part of some CPUs.
func (f *free) cpuOf(cpus bitset.Set) resource.Millicores {
	left := resource.Millicores(cpus.Len()) * resource.WholeCPU
	for id, taken := range f.cpus {
		if cpus.Has(id) {
			left -= taken
		}
	}
	return left
}

// coresOf counts the cores of a node all of whose threads are wholly free.
func (f *free) coresOf(n *numaNode) int {
	count := 0
	for _, k := range n.cores {
		broken := bitset.Set{}
		for id := range f.cpus {
			for _, d := range append([]int{0}, k.distances...) {
				if id >= d && k.first.Has(id-d) {
					broken.Add(id - d)
				}
			}
		}
		count += k.first.Len() - broken.Len()
	}
	return count
}

// vector sums the free resources, by the names of allocatable. Devices that are not to
// be handed out, and their instances, do not count.
func (f *free) vector(healthy func(device int) bool) resource.Vector {
	v := resource.Vector{resource.CPU: int64(f.cpuOf(f.of.elsewhere))}
	for i := range f.of.numa {
		n := &f.of.numa[i]
		v[resource.CPU] += int64(f.cpuOf(n.usable))
		v[resource.Memory] += int64(f.memory[i])
		for k, p := range n.Pages {
			v[resource.Hugepages(p.Size)] += int64(f.pages[i][k])
		}
	}
	for i, d := range f.of.devices {
		if !healthy(i) {
			continue
		}
		v[resource.GPU] += int64(f.gpus[i])
		for k, g := range d.Instances {
			if f.mig[i]&(1<<k) != 0 {
				v[resource.MIG(g.Profile)]++
			}
		}
	}
	for name, amount := range f.counts {
		v[name] += amount
	}
	return v
}

// healthOf is the health of the devices that are not ok, by index.
func healthOf(list []record.ObservedHealth) map[int]Health {
	if len(list) == 0 {
		return nil
	}
	of := make(map[int]Health, len(list))
	for _, h := range list {
		health, err := devices.ParseHealth(h.Health)
		if err != nil { // the record was judged when it was read
			health = devices.Tainted
		}
		of[h.Device] = Health{health, h.Reason}
	}
	return of
}
