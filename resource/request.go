package resource

import (
	"cmp"
	"errors"
	"fmt"
)

// NUMAPolicy is how strictly CPU, memory and GPUs must share NUMA nodes, in
// the words of kubelet's topology manager.
type NUMAPolicy uint8

const (
	// NUMABestEffort prefers as few NUMA nodes as possible; the default.
	NUMABestEffort NUMAPolicy = iota
	// NUMANone ignores NUMA.
	NUMANone
	// NUMARestricted refuses a placement that spans more NUMA nodes than the
	// request would need on an empty host.
	NUMARestricted
	// NUMASingleNode refuses a placement that spans more than one NUMA node.
	NUMASingleNode
)

var numaPolicyNames = [...]string{"best-effort", "none", "restricted", "single-numa-node"}

// String returns the policy's name in kubelet's words.
func (p NUMAPolicy) String() string {
	if int(p) < len(numaPolicyNames) {
		return numaPolicyNames[p]
	}
	return fmt.Sprintf("NUMAPolicy(%d)", uint8(p))
}

// ParseNUMAPolicy reads a policy's name; "" is best-effort.
func ParseNUMAPolicy(s string) (NUMAPolicy, error) {
	if s == "" {
		return NUMABestEffort, nil
	}
	for i, n := range numaPolicyNames {
		if n == s {
			return NUMAPolicy(i), nil
		}
	}
	return 0, fmt.Errorf("NUMA policy %q: want none, best-effort, restricted or single-numa-node", s)
}

// LinkRequirement is the connection that the GPUs of a member must have.
type LinkRequirement uint8

const (
	// LinkAny accepts any connection; better connections are still preferred.
	LinkAny LinkRequirement = iota
	// LinkSwitch wants every pair behind one PCIe switch or better (PIX, NVLink).
	LinkSwitch
	// LinkNVLink wants every pair connected by NVLink.
	LinkNVLink
)

var linkRequirementNames = [...]string{"any", "pcie-switch", "nvlink"}

// String returns the requirement's name.
func (l LinkRequirement) String() string {
	if int(l) < len(linkRequirementNames) {
		return linkRequirementNames[l]
	}
	return fmt.Sprintf("LinkRequirement(%d)", uint8(l))
}

// ParseLinkRequirement reads a requirement's name; "" is any.
func ParseLinkRequirement(s string) (LinkRequirement, error) {
	if s == "" {
		return LinkAny, nil
	}
	for i, n := range linkRequirementNames {
		if n == s {
			return LinkRequirement(i), nil
		}
	}
	return 0, fmt.Errorf("GPU link %q: want any, pcie-switch or nvlink", s)
}

// Request is the set of resources that a member requests of a host. The zero value
// is an empty request, which Validate refuses.
//
// Invariant: at most one of CPU and Cores is non-zero; at most one of GPUs,
// GPUShare and MIG is; 0 <= GPUShare < 1000; HugepageSize and MIGProfile are
// set exactly where Hugepages and MIG are; Hugepages is a multiple of
// HugepageSize.
type Request struct {
	CPU          Millicores      `json:"cpu,omitempty"`          // shared: parts of logical CPUs
	Cores        int             `json:"cores,omitempty"`        // whole physical cores with all their threads, held alone
	Memory       Bytes           `json:"memory,omitempty"`       // ordinary pages
	Hugepages    Bytes           `json:"hugepages,omitempty"`    // in pages of HugepageSize
	HugepageSize Bytes           `json:"hugepageSize,omitempty"` // e.g. 2 MiB
	GPUs         int             `json:"gpus,omitempty"`         // whole devices
	GPUShare     Milli           `json:"gpuShare,omitempty"`     // a share of one device
	MIG          int             `json:"mig,omitempty"`          // instances of MIGProfile
	MIGProfile   string          `json:"migProfile,omitempty"`   // e.g. "1g.10gb"
	GPUModel     string          `json:"gpuModel,omitempty"`     // exact model name; "" = any
	GPUMemory    Bytes           `json:"gpuMemory,omitempty"`    // least memory per device, or per MIG instance; 0 = any
	NUMA         NUMAPolicy      `json:"numa,omitempty"`
	Link         LinkRequirement `json:"link,omitempty"`
	// Counts are the counted resources but pods: a host that has pods gives each member
	// one.
	Counts Counts `json:"counts,omitempty"`
}

// Limits of one member's request: far above any host, far below overflow even
// when multiplied by the members of the largest gang.
const (
	MaxCPU    Millicores = 1 << 32
	MaxMemory Bytes      = 1 << 50
	MaxCores             = 1 << 20
	MaxGPUs              = 1 << 10
	MaxMIG               = 1 << 10
)

// Validate reports the first broken rule, naming the field and its value.
func (r Request) Validate() error {
	if err := cmp.Or(r.validateHost(), r.validateDevices(), r.Counts.validate()); err != nil {
		return err
	}
	if r.CPU == 0 && r.Cores == 0 && r.Memory == 0 && r.Hugepages == 0 && r.Counts == "" && !r.wantsDevices() {
		return fmt.Errorf("nothing is requested: name at least one of %s, %s, %s, hugepages-<size>, %s, %s<profile>", CPU, Cores, Memory, GPU, migPrefix)
	}
	return nil
}

// validateHost checks processors and memory.
func (r *Request) validateHost() error {
	switch {
	case r.CPU < 0 || r.CPU > MaxCPU:
		return fmt.Errorf("cpu: %d millicores is outside 0..%d", r.CPU, MaxCPU)
	case r.Cores < 0 || r.Cores > MaxCores:
		return fmt.Errorf("%s: %d cores is outside 0..%d", Cores, r.Cores, MaxCores)
	case r.CPU > 0 && r.Cores > 0:
		return fmt.Errorf("%s: %d whole cores and %d millicores of cpu exclude each other", Cores, r.Cores, r.CPU)
	case r.Memory < 0 || r.Memory > MaxMemory:
		return fmt.Errorf("memory: %d bytes is outside 0..%d", r.Memory, MaxMemory)
	case r.Hugepages < 0 || r.Hugepages > MaxMemory:
		return fmt.Errorf("hugepages: %d bytes is outside 0..%d", r.Hugepages, MaxMemory)
	case r.HugepageSize != 0 && !validPage(r.HugepageSize):
		return fmt.Errorf("hugepages: a page of %d bytes: want a power of two from 1024 to %d", r.HugepageSize, MaxHugepageSize)
	case (r.Hugepages == 0) != (r.HugepageSize == 0):
		return fmt.Errorf("hugepages: %d bytes in pages of %d bytes: want both or none", r.Hugepages, r.HugepageSize)
	case r.Hugepages > 0 && r.Hugepages%r.HugepageSize != 0:
		return fmt.Errorf("%s: %d bytes is not a whole number of pages of %d bytes", Hugepages(r.HugepageSize), r.Hugepages, r.HugepageSize)
	}
	return nil
}

// validateDevices checks GPUs and their constraints.
func (r *Request) validateDevices() error {
	if r.MIGProfile != "" {
		if err := ValidMIGProfile(r.MIGProfile); err != nil {
			return err
		}
	}
	switch {
	case r.GPUs < 0 || r.GPUs > MaxGPUs:
		return fmt.Errorf("nvidia.com/gpu: %d devices is outside 0..%d", r.GPUs, MaxGPUs)
	case r.GPUShare < 0 || r.GPUShare >= WholeDevice:
		return fmt.Errorf("nvidia.com/gpu: a share of %d milli is outside 0..%d", r.GPUShare, WholeDevice-1)
	case r.GPUs > 0 && r.GPUShare > 0:
		return fmt.Errorf("nvidia.com/gpu: %d whole devices and a share of %d milli exclude each other", r.GPUs, r.GPUShare)
	case r.MIG < 0 || r.MIG > MaxMIG:
		return fmt.Errorf("%s: %d instances is outside 0..%d", MIG(r.MIGProfile), r.MIG, MaxMIG)
	case (r.MIG == 0) != (r.MIGProfile == ""):
		return fmt.Errorf("mig: %d instances of profile %q: want both or none", r.MIG, r.MIGProfile)
	case r.MIG > 0 && (r.GPUs > 0 || r.GPUShare > 0):
		return fmt.Errorf("%s: %d MIG instances and %d milli of nvidia.com/gpu exclude each other", MIG(r.MIGProfile), r.MIG, r.GPUMilli())
	case r.GPUMemory < 0 || r.GPUMemory > MaxMemory:
		return fmt.Errorf("gpuMemory: %d bytes is outside 0..%d", r.GPUMemory, MaxMemory)
	case int(r.NUMA) >= len(numaPolicyNames):
		return fmt.Errorf("numa policy %d is unknown", r.NUMA)
	case int(r.Link) >= len(linkRequirementNames):
		return fmt.Errorf("gpu link requirement %d is unknown", r.Link)
	case r.MIG > 0 && r.Link != LinkAny:
		return fmt.Errorf("gpu link %s: MIG instances have no links to each other, want any", r.Link)
	case !r.wantsDevices() && (r.GPUModel != "" || r.GPUMemory > 0 || r.Link != LinkAny):
		return errors.New("gpu model, memory or link is constrained but neither nvidia.com/gpu nor a MIG profile is requested")
	}
	return nil
}

func (r *Request) wantsDevices() bool { return r.GPUs > 0 || r.GPUShare > 0 || r.MIG > 0 }

// GPUMilli is the request for devices in device-milli; MIG instances are
// counted by themselves.
func (r Request) GPUMilli() Milli { return Milli(r.GPUs)*WholeDevice + r.GPUShare }

// Vector returns the charge of the request, as amounts in base units,
// without zeros. A whole core is charged as 1 core and 1 CPU for any number of
// threads: the request is charged before its host is known.
func (r Request) Vector() Vector {
	v := Vector{}
	if cpu := r.CPU + Millicores(r.Cores)*WholeCPU; cpu > 0 {
		v[CPU] = int64(cpu)
	}
	if r.Cores > 0 {
		v[Cores] = int64(r.Cores)
	}
	if r.Memory > 0 {
		v[Memory] = int64(r.Memory)
	}
	if r.Hugepages > 0 {
		v[Hugepages(r.HugepageSize)] = int64(r.Hugepages)
	}
	if m := r.GPUMilli(); m > 0 {
		v[GPU] = int64(m)
	}
	if r.MIG > 0 {
		v[MIG(r.MIGProfile)] = int64(r.MIG)
	}
	for name, amount := range r.Counts.All() {
		v[name] = amount
	}
	return v
}
