package admission

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file reads capacities and labels out of specifications and hosts.

// RegisteredCapacity is the capacity that a node has registered.
func RegisteredCapacity(spec record.NodeSpec) Capacity {
	c := Capacity{Amounts: spec.Capacity}
	if len(spec.Topology.GPUModel) > 0 {
		c.Models = map[string]int{}
		for _, at := range spec.Topology.GPUModel {
			c.Models[spec.Topology.GPUModels[at]]++
		}
	}
	return c
}

// UnapprovedOf is the registered capacity of a node beyond the approved one.
func UnapprovedOf(spec record.NodeSpec) Growth {
	if spec.Approved == nil {
		return Growth{}
	}
	return Unapproved(RegisteredCapacity(spec), Capacity(*spec.Approved))
}

// RegisteredAs is the part of a specification that labels are derived from.
func RegisteredAs(node resource.NodeID, spec record.NodeSpec) Registered {
	r := Registered{
		Node: node, AssumeDead: time.Duration(spec.AssumeDeadMillis) * time.Millisecond, StartsWork: spec.StartsWork, RunsContainers: spec.RunsContainers, MountsFolders: spec.MountsFolders, Clique: spec.Topology.Clique,
	}
	count, first := givenDevices(spec)
	r.Devices = count
	if first == 0 {
		r.Memory = spec.Topology.GPUMemory
	}
	if limit, err := time.ParseDuration(spec.Labels[api.AssumeDeadLabel]); err == nil && r.AssumeDead == 0 {
		r.AssumeDead = limit // registered with an older coordinator, which kept it there alone
	}
	if t := spec.Topology; first >= 0 && first < len(t.GPUModel) {
		r.Product = t.GPUModels[t.GPUModel[first]]
	} else if len(t.GPUModels) > 0 {
		r.Product = t.GPUModels[0]
	}
	return r
}

// CapacityOf is a host's whole capacity, the part that the system keeps included.
// allocatable has the same resources without that part.
func CapacityOf(h grant.Host, allocatable resource.Vector) resource.Vector {
	capacity := allocatable.Clone()
	capacity[resource.CPU] = int64(h.Topology.Threads()) * int64(resource.WholeCPU)
	capacity[resource.Memory] = int64(h.Topology.Memory()) // that in huge pages included
	return capacity
}

// ModelsOf counts devices by model.
func ModelsOf(inventory *devices.Inventory) map[string]int {
	models := map[string]int{}
	for i := range inventory.Devices {
		models[inventory.Devices[i].Model]++
	}
	return models
}
