package rpc

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// specOf is the specification of a host; the full topology comes over the
// agent's stream.
func specOf(node resource.NodeID, h grant.Host, r *musterv1.RegisterRequest) (record.NodeSpec, error) {
	host, err := fit.NewHost(h.Topology, h.Inventory, fit.Reserved{CPUs: h.ReservedCPUs, Memory: h.ReservedMemory})
	if err == nil {
		host, err = host.WithCounts(grant.AmountsOf(h.Counts))
	}
	if err != nil {
		return record.NodeSpec{}, err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	spec := record.NodeSpec{
		Hostname: h.Hostname, AgentAddr: r.GetAgentAddr(), Version: r.GetVersion(), Created: now, Registrations: []string{now},
		Allocatable: host.Allocatable(), Topology: SummaryOf(h), AssumeDeadMillis: r.GetAssumeDeadAfterMillis(), StartsWork: r.GetStartsWork(), RunsContainers: r.GetRunsContainers(), MountsFolders: r.GetMountsFolders(),
		Counts: slices.Clone(h.Counts),
	}
	spec.Capacity = admission.CapacityOf(h, spec.Allocatable)
	spec.Labels, spec.IgnoredLabels = admission.AgentLabels(admission.RegisteredAs(node, spec), h.Labels)
	return spec, nil
}

// SummaryOf is a host in numbers.
func SummaryOf(h grant.Host) record.TopologySummary {
	var models []string
	for _, d := range h.Inventory.Devices {
		if !slices.Contains(models, d.Model) {
			models = append(models, d.Model)
		}
	}
	slices.Sort(models)
	positions := make([]int, len(h.Inventory.Devices))
	for i, d := range h.Inventory.Devices {
		positions[i] = slices.Index(models, d.Model)
	}
	cpus := map[int]string{}
	for _, n := range h.Topology.Nodes {
		if !n.MemoryOnly {
			cpus[n.ID] = n.CPUs.String()
		}
	}
	t := record.TopologySummary{
		Sockets: h.Topology.Sockets(), NUMANodes: len(h.Topology.Nodes), Cores: h.Topology.Cores(), CPUs: h.Topology.Threads(),
		GPUs: len(h.Inventory.Devices), GPUModels: models, GPUModel: positions, NUMACPUs: cpus,
	}
	if len(h.Inventory.Devices) > 0 {
		t.GPUMemory = h.Inventory.Devices[0].Memory
		t.Clique = h.Inventory.Clique()
	}
	return t
}
