package resource

import (
	"slices"

	"github.com/musterd/muster/resource/bitset"
)

// Assignment is exactly what one member holds on one host.
//
// Invariant: CPUs ascend by ID, Memory by Node, GPUs by Index; every amount is
// positive; no CPU, node or GPU appears twice.
type Assignment struct {
	CPUs   []CPUGrant    `json:"cpus,omitempty"`
	Memory []MemoryGrant `json:"memory,omitempty"`
	GPUs   []GPUGrant    `json:"gpus,omitempty"`
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

// GPUGrant is a GPU, whole (1000) or a share of it.
type GPUGrant struct {
	Index int    `json:"index"` // position in the inventory
	UUID  string `json:"uuid"`
	Milli Milli  `json:"milli"`
}

// Clone returns an independent copy.
func (a Assignment) Clone() Assignment {
	return Assignment{CPUs: slices.Clone(a.CPUs), Memory: slices.Clone(a.Memory), GPUs: slices.Clone(a.GPUs)}
}

// IsZero reports whether nothing is assigned.
func (a Assignment) IsZero() bool { return len(a.CPUs) == 0 && len(a.Memory) == 0 && len(a.GPUs) == 0 }

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
	for _, g := range a.GPUs {
		v[GPU] = SaturatingAdd(v[GPU], int64(g.Milli))
	}
	return v
}
