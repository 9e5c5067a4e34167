package resource

import (
	"errors"
	"fmt"
)

// NUMAPolicy says how strictly CPU, memory and GPUs must share NUMA nodes, in
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

// LinkRequirement says how the GPUs of one member must be connected.
type LinkRequirement uint8

const (
	// LinkAny accepts any connection; better ones are still preferred.
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

// Request is what one member asks of one host. The zero value asks for
// nothing, which Validate refuses.
//
// Invariant: at most one of GPUs and GPUShare is non-zero; 0 <= GPUShare < 1000.
type Request struct {
	CPU       Millicores      `json:"cpu,omitempty"`
	Memory    Bytes           `json:"memory,omitempty"`
	GPUs      int             `json:"gpus,omitempty"`      // whole devices
	GPUShare  Milli           `json:"gpuShare,omitempty"`  // a share of one device
	GPUModel  string          `json:"gpuModel,omitempty"`  // exact model name; "" = any
	GPUMemory Bytes           `json:"gpuMemory,omitempty"` // least memory per device; 0 = any
	NUMA      NUMAPolicy      `json:"numa,omitempty"`
	Link      LinkRequirement `json:"link,omitempty"`
}

// Limits of one member's request: far above any host, far below overflow even
// when multiplied by the members of the largest gang.
const (
	MaxCPU    Millicores = 1 << 32
	MaxMemory Bytes      = 1 << 50
	MaxGPUs              = 1 << 10
)

// Validate reports the first broken rule, naming the field and its value.
func (r Request) Validate() error {
	switch {
	case r.CPU < 0 || r.CPU > MaxCPU:
		return fmt.Errorf("cpu: %d millicores is outside 0..%d", r.CPU, MaxCPU)
	case r.Memory < 0 || r.Memory > MaxMemory:
		return fmt.Errorf("memory: %d bytes is outside 0..%d", r.Memory, MaxMemory)
	case r.GPUs < 0 || r.GPUs > MaxGPUs:
		return fmt.Errorf("nvidia.com/gpu: %d devices is outside 0..%d", r.GPUs, MaxGPUs)
	case r.GPUShare < 0 || r.GPUShare >= WholeDevice:
		return fmt.Errorf("nvidia.com/gpu: a share of %d milli is outside 0..%d", r.GPUShare, WholeDevice-1)
	case r.GPUs > 0 && r.GPUShare > 0:
		return fmt.Errorf("nvidia.com/gpu: %d whole devices and a share of %d milli exclude each other", r.GPUs, r.GPUShare)
	case r.GPUMemory < 0 || r.GPUMemory > MaxMemory:
		return fmt.Errorf("gpuMemory: %d bytes is outside 0..%d", r.GPUMemory, MaxMemory)
	case int(r.NUMA) >= len(numaPolicyNames):
		return fmt.Errorf("numa policy %d is unknown", r.NUMA)
	case int(r.Link) >= len(linkRequirementNames):
		return fmt.Errorf("gpu link requirement %d is unknown", r.Link)
	case r.GPUs == 0 && r.GPUShare == 0 && (r.GPUModel != "" || r.GPUMemory > 0 || r.Link != LinkAny):
		return errors.New("gpu model, memory or link is constrained but no nvidia.com/gpu is requested")
	case r.CPU == 0 && r.Memory == 0 && r.GPUs == 0 && r.GPUShare == 0:
		return errors.New("nothing is requested: name at least one of cpu, memory, nvidia.com/gpu")
	}
	return nil
}

// GPUMilli is the request for devices in device-milli.
func (r Request) GPUMilli() Milli { return Milli(r.GPUs)*WholeDevice + r.GPUShare }

// Vector returns the request as amounts in base units, without zeros.
func (r Request) Vector() Vector {
	v := Vector{}
	if r.CPU > 0 {
		v[CPU] = int64(r.CPU)
	}
	if r.Memory > 0 {
		v[Memory] = int64(r.Memory)
	}
	if m := r.GPUMilli(); m > 0 {
		v[GPU] = int64(m)
	}
	return v
}
