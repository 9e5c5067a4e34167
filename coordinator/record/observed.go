package record

import (
	"fmt"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// This file is the facts about a node that only the leader has: it hears them on the
// stream of the node's agent, and writes them for readers.

// NodeObserved is the leader's observation of a node (NodeObservedKey). Only readers
// use it: no decision depends on it.
type NodeObserved struct {
	// Incarnation is that of the agent on the stream, or on the last one. Of an agent
	// that has registered as another one since, the other fields say nothing any more.
	Incarnation resource.Incarnation `json:"incarnation,omitzero"`
	// Connected: the leader has a stream to the agent. Unheard: it has none, and the
	// node's lease is over.
	Connected bool `json:"connected,omitempty"`
	Unheard   bool `json:"unheard,omitempty"`
	// Quarantine says why the agent promises nothing, "" while it does.
	Quarantine     string `json:"quarantine,omitempty"`
	DiskFull       bool   `json:"diskFull,omitempty"`
	MemoryPressure bool   `json:"memoryPressure,omitempty"`
	// Unregistered: the agent has yet to register its present incarnation.
	Unregistered bool `json:"unregistered,omitempty"`
	// Growth is the capacity of the stream's host beyond the registered one, in words;
	// "" where there is none.
	Growth string `json:"growth,omitempty"`
	// Suspicion says why the node is the last choice, "" where it is not for failures.
	Suspicion string `json:"suspicion,omitempty"`
	// Withheld are the devices that an operator keeps from new work, ascending.
	Withheld []int `json:"withheld,omitempty"`
	// Lease is of the agent's heartbeats, 0 where that is over. Readers take it from
	// here, so that its end makes a newer key.
	Lease LeaseID `json:"lease,omitempty"`
	// Banned: the node is. It is here so that the end of a ban, which deletes a key,
	// makes a newer key too.
	Banned bool `json:"banned,omitempty"`
	// Health are the devices that are not ok, ascending by index.
	Health []ObservedHealth `json:"health,omitempty"`
	// Local is the sum of the agent's grants that have no record in the store, and Pool
	// the part of Local that is in the pool of the host's kubelet: Pool is not allocatable,
	// the rest of Local is used.
	Local *resource.Assignment `json:"local,omitempty"`
	Pool  *resource.Assignment `json:"pool,omitempty"`
	// Conflicts say which resources the node declares otherwise than an earlier node or
	// an operator, ascending: their amounts are not handed out.
	Conflicts []ObservedConflict `json:"conflicts,omitempty"`
	// Host is the hardware; nil as long as the leader has had no stream.
	Host *HostFacts `json:"host,omitempty"`
}

// ObservedConflict is a resource that a node declares otherwise than others.
type ObservedConflict struct {
	Name   resource.Name `json:"name"`
	Detail string        `json:"detail"`
}

// ObservedHealth is the health of a device that is not ok.
type ObservedHealth struct {
	Device int    `json:"device"` // index
	Health string `json:"health"` // a name of devices.Health
	Reason string `json:"reason,omitempty"`
}

// HostFacts are the amounts of a host that an agent hands out, and the names of the
// devices: enough to compute the free part, and no more.
type HostFacts struct {
	NUMA []NUMAFacts `json:"numa,omitempty"`
	// Elsewhere are the CPUs that are handed out and are on none of the nodes, as a
	// list such as "0-15,64-79".
	Elsewhere string        `json:"elsewhere,omitempty"`
	Models    []string      `json:"models,omitempty"` // distinct
	Devices   []DeviceFacts `json:"devices,omitempty"`
	// Counts are the counted resources, ascending by name.
	Counts []resource.CountGrant `json:"counts,omitempty"`
}

// NUMAFacts are those of one NUMA node.
type NUMAFacts struct {
	ID         int            `json:"id"`
	MemoryOnly bool           `json:"memoryOnly,omitempty"`
	CPUs       string         `json:"cpus,omitempty"` // all of them
	Memory     resource.Bytes `json:"memory,omitempty"`
	// Usable are the CPUs that are handed out, and Ordinary is the memory that is.
	Usable   string         `json:"usable,omitempty"`
	Ordinary resource.Bytes `json:"ordinary,omitempty"`
	// Cores are the physical cores all of whose threads are handed out: the first
	// threads of the cores, by the distances to the further threads. "+64" has the
	// cores of the threads N and N+64, "" those of one thread.
	Cores map[string]string `json:"cores,omitempty"`
	Pages []PageFacts       `json:"pages,omitempty"` // ascending by size
}

// PageFacts are the huge pages of one size that are handed out.
type PageFacts struct {
	Size  resource.Bytes `json:"size"`
	Bytes resource.Bytes `json:"bytes"`
}

// DeviceFacts are those of the device at its index.
type DeviceFacts struct {
	UUID      string          `json:"uuid"`
	Model     int             `json:"model"` // position in HostFacts.Models
	Memory    resource.Bytes  `json:"memory,omitempty"`
	NUMANode  int             `json:"numaNode"`
	MIG       bool            `json:"mig,omitempty"` // the device is in MIG mode
	Instances []InstanceFacts `json:"instances,omitempty"`
}

// InstanceFacts are those of the MIG instance at its index.
type InstanceFacts struct {
	UUID    string         `json:"uuid"`
	Profile string         `json:"profile"`
	Memory  resource.Bytes `json:"memory,omitempty"`
}

// Bounds of an observation. A list of CPUs has at most 5 bytes for each of MaxCPUs.
const (
	mostObservedText = 4 << 10
	mostCPUList      = 5 * numa.MaxCPUs
	mostCoreKinds    = 64
)

func (r NodeObserved) check() error {
	for field, text := range map[string]string{
		"quarantine": r.Quarantine, "growth": r.Growth, "suspicion": r.Suspicion, "incarnation.journalID": r.Incarnation.JournalID, "incarnation.bootID": r.Incarnation.BootID,
	} {
		if len(text) > mostObservedText {
			return fmt.Errorf("%s has %d bytes, want at most %d", field, len(text), mostObservedText)
		}
	}
	last := -1
	for i, h := range r.Health {
		if h.Device <= last || h.Device >= devices.MaxDevices {
			return fmt.Errorf("health[%d].device %d: want ascending indices below %d", i, h.Device, devices.MaxDevices)
		}
		if _, err := devices.ParseHealth(h.Health); err != nil {
			return fmt.Errorf("health[%d]: %w", i, err)
		}
		if len(h.Reason) > mostObservedText {
			return fmt.Errorf("health[%d].reason has %d bytes, want at most %d", i, len(h.Reason), mostObservedText)
		}
		last = h.Device
	}
	if len(r.Withheld) > devices.MaxDevices {
		return fmt.Errorf("withheld: %d devices, want at most %d", len(r.Withheld), devices.MaxDevices)
	}
	if a := r.Pool; a != nil && (len(a.CPUs)+len(a.Memory)+len(a.Hugepages)+len(a.Counts) > 0 || len(a.GPUs) > devices.MaxDevices || len(a.MIG) > devices.MaxUses) {
		return fmt.Errorf("pool has %d GPUs and %d MIG instances, and %d amounts of CPUs, memory and counted resources: want at most %d and %d, and no amounts",
			len(a.GPUs), len(a.MIG), len(a.CPUs)+len(a.Memory)+len(a.Hugepages)+len(a.Counts), devices.MaxDevices, devices.MaxUses)
	}
	if a := r.Local; a != nil && (len(a.CPUs) > numa.MaxCPUs || len(a.Memory) > numa.MaxNodes || len(a.Hugepages) > numa.MaxNodes*numa.MaxPageSizes ||
		len(a.GPUs) > devices.MaxDevices || len(a.MIG) > devices.MaxUses || len(a.Counts) > resource.MaxCounts) {
		return fmt.Errorf("local has %d CPUs, %d memories, %d huge pages, %d GPUs and %d MIG instances: more than a host has",
			len(a.CPUs), len(a.Memory), len(a.Hugepages), len(a.GPUs), len(a.MIG))
	}
	if len(r.Conflicts) > resource.MaxCounts {
		return fmt.Errorf("conflicts: %d resources, want at most %d", len(r.Conflicts), resource.MaxCounts)
	}
	for i, c := range r.Conflicts {
		if len(c.Name) > resource.MaxCountName || len(c.Detail) > mostObservedText {
			return fmt.Errorf("conflicts[%d]: a name of %d bytes and a detail of %d are too long", i, len(c.Name), len(c.Detail))
		}
	}
	if r.Host == nil {
		return nil
	}
	return r.Host.check()
}

func (h *HostFacts) check() error {
	if len(h.NUMA) > numa.MaxNodes || len(h.Devices) > devices.MaxDevices || len(h.Models) > devices.MaxDevices || len(h.Elsewhere) > mostCPUList {
		return fmt.Errorf("host has %d NUMA nodes, %d devices and %d models, want at most %d, %d and %d",
			len(h.NUMA), len(h.Devices), len(h.Models), numa.MaxNodes, devices.MaxDevices, devices.MaxDevices)
	}
	if len(h.Counts) > resource.MaxCounts {
		return fmt.Errorf("host.counts: %d resources, want at most %d", len(h.Counts), resource.MaxCounts)
	}
	for i, c := range h.Counts {
		if err := resource.CheckCount(c.Name, c.Amount); err != nil {
			return fmt.Errorf("host.counts[%d]: %w", i, err)
		}
	}
	for i, n := range h.NUMA {
		if n.Memory < 0 || n.Ordinary < 0 || len(n.Pages) > numa.MaxPageSizes || len(n.Cores) > mostCoreKinds || max(len(n.CPUs), len(n.Usable)) > mostCPUList {
			return fmt.Errorf("host.numa[%d]: %d bytes of memory, %d of them ordinary, %d sizes of pages, %d kinds of cores, or its lists are not of a host", i, n.Memory, n.Ordinary, len(n.Pages), len(n.Cores))
		}
		for _, p := range n.Pages {
			if p.Size <= 0 || p.Bytes < 0 {
				return fmt.Errorf("host.numa[%d].pages: %d bytes in pages of %d bytes", i, p.Bytes, p.Size)
			}
		}
		for distances, first := range n.Cores {
			if len(distances) > mostObservedText || len(first) > mostCPUList {
				return fmt.Errorf("host.numa[%d].cores: an entry of %d and %d bytes is not of a host", i, len(distances), len(first))
			}
		}
	}
	for i, d := range h.Devices {
		if d.UUID == "" || d.Memory < 0 || d.Model < 0 || d.Model >= len(h.Models) || len(d.Instances) > devices.MaxMIGInstances {
			return fmt.Errorf("host.devices[%d]: uuid %q, %d bytes, model %d of %d, %d instances", i, d.UUID, d.Memory, d.Model, len(h.Models), len(d.Instances))
		}
		for k, g := range d.Instances {
			if g.UUID == "" || g.Memory < 0 {
				return fmt.Errorf("host.devices[%d].instances[%d]: uuid %q, %d bytes", i, k, g.UUID, g.Memory)
			}
		}
	}
	return nil
}
