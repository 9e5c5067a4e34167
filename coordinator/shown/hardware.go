package shown

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Hardware is a host as it registered.
type Hardware struct {
	// Summary is the one in the node's specification, and NUMA the CPUs of each
	// NUMA node in it, by id, if they were read before.
	Summary *record.TopologySummary
	NUMA    map[int]bitset.Set
}

// NUMACPUs reads the CPUs of each NUMA node, by its id, out of a summary.
func NUMACPUs(t *record.TopologySummary) (map[int]bitset.Set, error) {
	numa := map[int]bitset.Set{}
	for id, list := range t.NUMACPUs {
		cpus, err := bitset.Parse(list)
		if err != nil {
			return nil, fmt.Errorf("numaCPUs of node %d: %w", id, err)
		}
		numa[id] = cpus
	}
	return numa, nil
}

// registeredNUMA returns the CPUs of each NUMA node as the node registered them;
// none where that cannot be read, which followers report.
func (h *Hardware) registeredNUMA() map[int]bitset.Set {
	if h.NUMA != nil || h.Summary == nil {
		return h.NUMA
	}
	numa, err := NUMACPUs(h.Summary)
	if err != nil {
		return nil
	}
	return numa
}

// Assignment shows an assignment in the host's own numbers.
func (h *Hardware) Assignment(a resource.Assignment) *api.AssignmentStatus {
	cpus := a.CPUSet()
	s := &api.AssignmentStatus{CPUs: cpus.String()}
	var touched bitset.Set
	for id, of := range h.registeredNUMA() {
		if !of.Intersect(cpus).IsEmpty() {
			touched.Add(id)
		}
	}
	for _, m := range a.Memory {
		s.Memory = append(s.Memory, api.MemoryStatus{Node: m.Node, Bytes: resource.FormatBytes(m.Bytes)})
		touched.Add(m.Node)
	}
	for _, g := range a.Hugepages {
		s.Hugepages = append(s.Hugepages, api.HugepageStatus{Node: g.Node, PageSize: resource.FormatBytes(g.Size), Bytes: resource.FormatBytes(g.Bytes)})
		touched.Add(g.Node)
	}
	for _, g := range a.GPUs {
		s.GPUs = append(s.GPUs, api.GPUStatus{Index: g.Index, UUID: g.UUID, Model: h.model(g.Index), Milli: g.Milli})
	}
	for _, g := range a.MIG {
		s.MIG = append(s.MIG, api.MIGStatus{GPU: g.GPU, Instance: g.Instance, UUID: g.UUID, Profile: g.Profile, Model: h.model(g.GPU)})
	}
	s.NUMANodes = touched.Members()
	return s
}

// model returns a device's model, "" where the node does not have the device any
// more.
func (h *Hardware) model(device int) string {
	if t := h.Summary; t != nil && device < len(t.GPUModel) && t.GPUModel[device] < len(t.GPUModels) {
		return t.GPUModels[t.GPUModel[device]]
	}
	return ""
}
