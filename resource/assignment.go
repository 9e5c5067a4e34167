package resource

import (
	"slices"

	"github.com/musterd/muster/resource/bitset"
)

// Assignment is the exact set of resources that a member holds on a host.
//
// Invariant: CPUs ascend by ID, Memory by Node, Hugepages by Node and Size,
// GPUs by Index, MIG by GPU and Instance; every amount is positive; no CPU,
// node, page size of a node, GPU or instance appears twice; Bytes of a
// HugepageGrant is a multiple of its Size. Counts ascend by Name.
type Assignment struct {
	CPUs      []CPUGrant      `json:"cpus,omitempty"`
	Memory    []MemoryGrant   `json:"memory,omitempty"`
	Hugepages []HugepageGrant `json:"hugepages,omitempty"`
	GPUs      []GPUGrant      `json:"gpus,omitempty"`
	MIG       []MIGGrant      `json:"mig,omitempty"`
	Counts    []CountGrant    `json:"counts,omitempty"`
}

// CPUGrant is a logical CPU, whole (1000) or in part.
type CPUGrant struct {
	ID    int        `json:"id"` // the kernel's CPU number
	Milli Millicores `json:"milli"`
}

// MemoryGrant is memory of one NUMA node.
type MemoryGrant struct {
	Node  int   `json:"node"` // the kernel's node number
	Bytes Bytes `json:"bytes"`
}

// HugepageGrant is memory in huge pages of one size on one NUMA node.
type HugepageGrant struct {
	Node  int   `json:"node"` // the kernel's node number
	Size  Bytes `json:"size"` // of one page
	Bytes Bytes `json:"bytes"`
}

// GPUGrant is a GPU, whole (1000) or a share of it.
type GPUGrant struct {
	Index int    `json:"index"` // position in the inventory
	UUID  string `json:"uuid"`
	Milli Milli  `json:"milli"`
}

// MIGGrant is one MIG instance; they are held whole.
type MIGGrant struct {
	GPU      int    `json:"gpu"`      // position in the inventory
	Instance int    `json:"instance"` // position among the GPU's instances
	UUID     string `json:"uuid"`     // the instance's
	Profile  string `json:"profile"`
}

// Clone returns an independent copy.
func (a Assignment) Clone() Assignment {
	return Assignment{
		CPUs: slices.Clone(a.CPUs), Memory: slices.Clone(a.Memory), Hugepages: slices.Clone(a.Hugepages),
		GPUs: slices.Clone(a.GPUs), MIG: slices.Clone(a.MIG), Counts: slices.Clone(a.Counts),
	}
}

// Equal reports whether two assignments are the same.
func (a Assignment) Equal(b Assignment) bool {
	return slices.Equal(a.CPUs, b.CPUs) && slices.Equal(a.Memory, b.Memory) && slices.Equal(a.Hugepages, b.Hugepages) &&
		slices.Equal(a.GPUs, b.GPUs) && slices.Equal(a.MIG, b.MIG) && slices.Equal(a.Counts, b.Counts)
}

// Reset empties the assignment and keeps the room of its slices.
func (a *Assignment) Reset() {
	a.CPUs, a.Memory, a.Hugepages, a.GPUs, a.MIG = a.CPUs[:0], a.Memory[:0], a.Hugepages[:0], a.GPUs[:0], a.MIG[:0]
	a.Counts = a.Counts[:0]
}

// IsZero reports whether nothing is assigned.
func (a Assignment) IsZero() bool {
	return len(a.CPUs) == 0 && len(a.Memory) == 0 && len(a.Hugepages) == 0 && len(a.GPUs) == 0 && len(a.MIG) == 0 && len(a.Counts) == 0
}

// CPUSet returns the CPUs touched, whole or in part.
func (a Assignment) CPUSet() bitset.Set {
	var s bitset.Set
	for _, c := range a.CPUs {
		s.Add(c.ID)
	}
	return s
}

// Vector returns the assignment's amounts in base units, without zeros,
// saturating.
func (a Assignment) Vector() Vector {
	v := Vector{}
	for _, c := range a.CPUs {
		v[CPU] = SaturatingAdd(v[CPU], int64(c.Milli))
	}
	for _, m := range a.Memory {
		v[Memory] = SaturatingAdd(v[Memory], int64(m.Bytes))
	}
	for _, g := range a.Hugepages {
		name := Hugepages(g.Size)
		v[name] = SaturatingAdd(v[name], int64(g.Bytes))
	}
	for _, g := range a.GPUs {
		v[GPU] = SaturatingAdd(v[GPU], int64(g.Milli))
	}
	for _, g := range a.MIG {
		v[MIG(g.Profile)]++
	}
	for _, g := range a.Counts {
		v[g.Name] = SaturatingAdd(v[g.Name], g.Amount)
	}
	return v
}
