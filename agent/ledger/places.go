package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// places maps the devices, CPUs and memory that assignments name to their
// places on a host, and marks those that the host hands out. It never changes.
type places struct {
	host      *fit.Host
	full      *fit.Free // the host with nothing taken
	gpus      map[string]int
	instances map[string]place
	sizes     []resource.Bytes // of huge pages, ascending
}

// place is a MIG instance's, as positions in the inventory.
type place struct{ gpu, instance int }

func newPlaces(host *fit.Host) *places {
	p := &places{host: host, full: host.NewFree(), gpus: map[string]int{}, instances: map[string]place{}, sizes: host.PageSizes()}
	for i, d := range host.Inventory().Devices {
		p.gpus[d.UUID] = i
		for k, m := range d.MIG.Instances {
			p.instances[m.UUID] = place{i, k}
		}
	}
	return p
}

func (p *places) hasCPU(id int) bool {
	cpus := p.host.Topology().CPUs
	at, ok := slices.BinarySearchFunc(cpus, id, func(have numa.CPU, id int) int { return cmp.Compare(have.ID, id) })
	return ok && p.full.CPU[at] == resource.WholeCPU
}

// hasGPU reports whether the GPU is at this index and not in MIG mode.
func (p *places) hasGPU(index int, uuid string) bool {
	list := p.host.Inventory().Devices
	return index < len(list) && list[index].UUID == uuid && p.full.GPU[index] > 0
}

func (p *places) hasMIG(uuid string) bool {
	at, ok := p.instances[uuid]
	return ok && p.full.MIG[at.gpu]&(1<<at.instance) != 0
}

// memory is the free memory of a node in f, 0 where the node is not there.
func (p *places) memory(f *fit.Free, node int) resource.Bytes {
	if at := p.host.Topology().NodeIndex(node); at >= 0 {
		return f.Memory[at]
	}
	return 0
}

// pages is the number of free pages of a pool in f, 0 where the pool is not
// there.
func (p *places) pages(f *fit.Free, node int, size resource.Bytes) resource.Bytes {
	if at := p.host.Topology().NodeIndex(node); at >= 0 {
		return p.host.HugepagesOn(f, at, size)
	}
	return 0
}

// freeInstances appends the instances of a device that f has free.
func (p *places) freeInstances(f *fit.Free, uuid string, list []resource.MIGGrant) []resource.MIGGrant {
	at, ok := p.gpus[uuid]
	if !ok {
		return list
	}
	for k, m := range p.host.Inventory().Devices[at].MIG.Instances {
		if f.MIG[at]&(1<<k) != 0 {
			list = append(list, resource.MIGGrant{GPU: at, Instance: k, UUID: m.UUID, Profile: m.Profile})
		}
	}
	return list
}

// pools lists the free huge pages in f of the node at a position.
func (p *places) pools(f *fit.Free, node int) []PoolFree {
	var list []PoolFree
	for _, size := range p.sizes {
		if p.host.HugepagesOn(p.full, node, size) > 0 {
			list = append(list, PoolFree{size, p.host.HugepagesOn(f, node, size)})
		}
	}
	return list
}

// reindex returns the members with the indices that their GPUs and MIG
// instances have on this host. Those that are gone are numbered behind all that
// are there, in ascending order of UUID; so the numbers follow from the host
// and the member alone. The argument is returned where nothing moved.
func (p *places) reindex(members []Holding) []Holding {
	var changed []Holding
	for i := range members {
		if !p.moved(&members[i].Assignment) {
			continue
		}
		if changed == nil {
			changed = slices.Clone(members)
		}
		changed[i].Assignment = p.renumbered(members[i].Assignment)
	}
	if changed == nil {
		return members
	}
	return changed
}

// moved reports whether a GPU or instance is not at the assignment's place.
func (p *places) moved(a *resource.Assignment) bool {
	list := p.host.Inventory().Devices
	for _, g := range a.GPUs {
		if g.Index >= len(list) || list[g.Index].UUID != g.UUID {
			return true
		}
	}
	for _, g := range a.MIG {
		if g.GPU >= len(list) || g.Instance >= len(list[g.GPU].MIG.Instances) {
			return true
		}
		if have := &list[g.GPU].MIG.Instances[g.Instance]; have.UUID != g.UUID || have.Profile != g.Profile {
			return true
		}
	}
	return false
}

// renumbered returns the assignment with this host's indices.
func (p *places) renumbered(a resource.Assignment) resource.Assignment {
	a.GPUs, a.MIG = slices.Clone(a.GPUs), slices.Clone(a.MIG)
	slices.SortFunc(a.GPUs, func(x, y resource.GPUGrant) int { return strings.Compare(x.UUID, y.UUID) })
	gone := len(p.host.Inventory().Devices)
	for i := range a.GPUs {
		at, ok := p.gpus[a.GPUs[i].UUID]
		if !ok {
			at = gone
			gone++
		}
		a.GPUs[i].Index = at
	}
	slices.SortFunc(a.GPUs, func(x, y resource.GPUGrant) int { return cmp.Compare(x.Index, y.Index) })
	slices.SortFunc(a.MIG, func(x, y resource.MIGGrant) int { return strings.Compare(x.UUID, y.UUID) })
	next := place{len(p.host.Inventory().Devices), 0}
	for i := range a.MIG {
		at, ok := p.instances[a.MIG[i].UUID]
		if ok {
			// A newer driver may call the same profile by another name.
			a.MIG[i].Profile = p.host.Inventory().Devices[at.gpu].MIG.Instances[at.instance].Profile
		} else {
			at = next
			if next.instance++; next.instance == devices.MaxMIGInstances {
				next = place{next.gpu + 1, 0}
			}
		}
		a.MIG[i].GPU, a.MIG[i].Instance = at.gpu, at.instance
	}
	slices.SortFunc(a.MIG, func(x, y resource.MIGGrant) int {
		return cmp.Or(cmp.Compare(x.GPU, y.GPU), cmp.Compare(x.Instance, y.Instance))
	})
	return a
}
