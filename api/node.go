package api

import "github.com/musterd/muster/resource"

// Node is a host with an agent.
type Node struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"Node" oneof:"Node"`
	// Metadata has the node's registered id as name, its labels and its annotations.
	// Labels are the agent's and the operators' together.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the capacity of the host and the operators' decisions about it.
	Spec NodeSpec `json:"spec"`
	// Status is the present state of the node, set by the server.
	Status NodeStatus `json:"status,omitzero" by:"server"`
}

// NodeSpec is the capacity of a host and the operators' decisions about it.
// Operators change taints, unschedulable and kubelet, by a merge patch.
type NodeSpec struct {
	// Capacity is all that the host has: the amounts that the node's creation has named,
	// as they were sent, else those that the agent has found.
	Capacity map[resource.Name]string `json:"capacity,omitempty" format:"quantity" example:"{cpu: '128', memory: 1Ti, nvidia.com/gpu: '8'}"`
	// Allocatable is the part of the capacity without the part that the system keeps:
	// the amounts that the node's creation has named, as they were sent, else those that
	// the agent has found.
	Allocatable map[resource.Name]string `json:"allocatable,omitempty" format:"quantity" example:"{cpu: '126', memory: 1020Gi, nvidia.com/gpu: '8'}"`
	// Taints keep away allocations without a matching toleration: at most 64 of a
	// node.
	Taints []Taint `json:"taints,omitempty"`
	// Unschedulable marks a cordoned node: it takes no new work, and its running work
	// stays.
	Unschedulable bool `json:"unschedulable,omitempty" default:"false" example:"true"`
	// Kubelet is the operators' part of the pool of devices that the kubelet of the host
	// hands out to pods.
	Kubelet *KubeletPool `json:"kubelet,omitempty"`
}

// Taint keeps away allocations without a matching toleration.
type Taint struct {
	// Key is the taint's name, with the rules of a label's key.
	Key string `json:"key" required:"true" example:"reserved"`
	// Value is the taint's value, with the rules of a label's value.
	Value string `json:"value,omitempty" example:"vision"`
	// Effect is the consequence for allocations without a matching toleration:
	// NoSchedule keeps new ones away, NoExecute also gives notice to those that run
	// there, and with PreferNoSchedule other nodes come first.
	Effect string `json:"effect" required:"true" oneof:"NoSchedule,PreferNoSchedule,NoExecute" example:"NoSchedule"`
}

// NodeStatus is the present state of a node.
type NodeStatus struct {
	// Phase sums the state up: Ready, NotReady, AwaitingApproval, Unregistered,
	// Fenced, Quarantined, ProtocolViolation or Banned.
	Phase string `json:"phase,omitempty" example:"Ready"`
	// AgentVersion is the version of the agent at its last registration.
	AgentVersion string `json:"agentVersion,omitempty" example:"v0.1.0"`
	// Registrations are the times of the agent's last registrations, at most 8; the
	// newest is the last.
	Registrations []string `json:"registrations,omitempty" format:"time" example:"[2026-03-01T12:00:00Z]"`
	// Addresses are the host's own name and the agent's address.
	Addresses []NodeAddress `json:"addresses,omitempty"`
	// LastHeartbeatTime is the time of the agent's last report that was written. It is
	// written with each change of the conditions, and otherwise about once a minute;
	// every 10 minutes at the latest in large clusters. The condition Ready shows whether
	// the agent reports now.
	LastHeartbeatTime string `json:"lastHeartbeatTime,omitempty" format:"time" example:"2026-03-01T12:00:10Z"`
	// Conditions are aspects of the state, such as Ready and DiskPressure.
	Conditions []Condition `json:"conditions,omitempty"`
	// LeaseID identifies the lease of 40 s that the agent's heartbeats keep alive; absent
	// while no coordinator hears the agent.
	LeaseID string `json:"leaseId,omitempty" example:"lease-694d9bd5f3a0b1c2"`
	// BootstrapToken is the token with which the host may enroll once. Only the answer to
	// a creation by an operator has it.
	BootstrapToken string `json:"bootstrapToken,omitempty" example:"muster-boot.6e8a5f2c41.…"`
	// Capacity is all that the agent has found on the host; absent before the agent
	// registers.
	Capacity map[resource.Name]string `json:"capacity,omitempty" format:"quantity" example:"{cpu: '128', memory: 1Ti, nvidia.com/gpu: '8'}"`
	// Allocatable is the part of the capacity that Muster hands out, less the part that
	// operators withhold or have not approved.
	Allocatable map[resource.Name]string `json:"allocatable,omitempty" format:"quantity" example:"{cpu: '126', memory: 1020Gi, nvidia.com/gpu: '6'}"`
	// Available is the part of allocatable that nobody holds.
	Available map[resource.Name]string `json:"available,omitempty" format:"quantity" example:"{cpu: '62', nvidia.com/gpu: '4'}"`
	// Usage is the part in use, measured on the host at lastHeartbeatTime.
	Usage map[resource.Name]string `json:"usage,omitempty" format:"quantity" example:"{cpu: 31500m, memory: 210Gi}"`
	// Incarnation identifies the memory that the agent's promises depend on.
	Incarnation *resource.Incarnation `json:"incarnation,omitempty"`
	// ObservedIncarnation is the incarnation that the leader has observed: phase, health
	// and free amounts are of that one. It differs from incarnation for some seconds
	// after the agent has registered anew.
	ObservedIncarnation *resource.Incarnation `json:"observedIncarnation,omitempty"`
	// NUMANodes are the free amounts of each NUMA node.
	NUMANodes []NUMAStatus `json:"numaNodes,omitempty"`
	// Devices are the GPUs.
	Devices []DeviceStatus `json:"devices,omitempty"`
	// Allocations are the members on this node, as namespace/name, that the caller may
	// see.
	Allocations []string `json:"allocations,omitempty" example:"[default/train-0]"`
	// OtherAllocations counts the members on this node that the caller may not see.
	OtherAllocations int `json:"otherAllocations,omitempty" unit:"allocations" example:"3"`
	// OperatorLabels are the labels of metadata.labels that operators have set. The
	// others are the agent's, or follow from its registration.
	OperatorLabels map[string]string `json:"operatorLabels,omitempty" example:"{pool: batch}"`
	// Kubelet is the pool of devices that the kubelet of the host hands out to pods.
	// Callers with a role in the whole cluster alone see it; absent where the kubelet
	// gets no devices.
	Kubelet *KubeletStatus `json:"kubelet,omitempty"`
}

// NodeAddress is one address of a node.
type NodeAddress struct {
	// Type is the sort of the address: Hostname is the host's own name, Agent the
	// address of its agent.
	Type string `json:"type" oneof:"Hostname,Agent"`
	// Address is a host name, or HOST:PORT for the agent.
	Address string `json:"address" example:"10.0.0.17:8472"`
}

// NUMAStatus is the free part of one NUMA node.
type NUMAStatus struct {
	// ID is the kernel's number of the NUMA node.
	ID int `json:"id" example:"0"`
	// CPUs are the numbers of its logical CPUs, in the kernel's list format.
	CPUs string `json:"cpus" example:"0-31,64-95"`
	// FreeCPU is the free part of its CPUs.
	FreeCPU string `json:"freeCPU" format:"quantity" unit:"CPUs" example:"30500m"`
	// FreeCores is the number of physical cores all of whose threads are free.
	FreeCores int `json:"freeCores" unit:"cores" example:"15"`
	// Memory is all of its memory.
	Memory string `json:"memory" format:"quantity" unit:"bytes" example:"512Gi"`
	// FreeMemory is the free part of its memory.
	FreeMemory string `json:"freeMemory" format:"quantity" unit:"bytes" example:"480Gi"`
	// FreeHugepages are its free huge pages, by page size.
	FreeHugepages map[resource.Name]string `json:"freeHugepages,omitempty" format:"quantity" example:"{hugepages-2Mi: 8Gi}"`
}

// DeviceStatus is one GPU and its free part.
type DeviceStatus struct {
	// Index is the number of the device on its host, from 0.
	Index int `json:"index" example:"0"`
	// UUID is the driver's name of the device.
	UUID string `json:"uuid" example:"GPU-6e8a5f2c-0000-4000-8000-000000000000"`
	// Model is the product name.
	Model string `json:"model" example:"NVIDIA A100-SXM4-80GB"`
	// Memory is the size of the device's memory.
	Memory string `json:"memory" format:"quantity" unit:"bytes" example:"80Gi"`
	// UsePercent is the part of the time during which the device computed, in the
	// driver's last sample period. It is absent where the driver does not report it,
	// as for a device in MIG mode.
	UsePercent *int `json:"usePercent,omitempty" range:"0..100" unit:"percent" example:"37"`
	// MemoryUsed is the part of the memory in use. It is absent where the driver does
	// not report it.
	MemoryUsed string `json:"memoryUsed,omitempty" format:"quantity" unit:"bytes" example:"12Gi"`
	// NUMANode is the number of the NUMA node that the device is attached to.
	NUMANode int `json:"numaNode" example:"0"`
	// Health is the state of the device. Only ok and suspect devices take new work.
	Health string `json:"health" oneof:"ok,suspect,tainted,probation"`
	// HealthReason says why the device is not ok.
	HealthReason string `json:"healthReason,omitempty" text:"lines" example:"XID 79"`
	// Withheld marks a device that an operator keeps from new work, by a lower amount of
	// allocatable.
	Withheld bool `json:"withheld,omitempty" example:"true"`
	// Free is the free part; 1000 is the whole device. A device in MIG mode has 0.
	Free resource.Milli `json:"freeMilli" range:"0..1000" unit:"thousandths of a device" example:"1000"`
	// MIG is set for a device in MIG mode: Muster hands out its instances alone.
	MIG *MIGMode `json:"mig,omitempty"`
}

// MIGMode is a device in MIG mode.
type MIGMode struct {
	// Instances are the MIG instances that the operator has made.
	Instances []MIGInstance `json:"instances,omitempty"`
}

// MIGInstance is one MIG instance.
type MIGInstance struct {
	// UUID is the driver's name of the instance.
	UUID string `json:"uuid" example:"MIG-6e8a5f2c-0000-4000-8000-000000000001"`
	// Profile is the size of the instance.
	Profile string `json:"profile" example:"1g.10gb"`
	// Memory is the size of the instance's memory.
	Memory string `json:"memory" format:"quantity" unit:"bytes" example:"9728Mi"`
	// UsePercent is the part of the time during which the instance computed. It is
	// absent where the driver does not report it, as today's drivers do not.
	UsePercent *int `json:"usePercent,omitempty" range:"0..100" unit:"percent" example:"37"`
	// MemoryUsed is the part of the instance's memory in use. It is absent where the
	// driver does not report it.
	MemoryUsed string `json:"memoryUsed,omitempty" format:"quantity" unit:"bytes" example:"3Gi"`
	// Free reports whether no allocation holds the instance.
	Free bool `json:"free" example:"true"`
}

// NodeList is a list of nodes, ordered by name.
type NodeList struct {
	// Kind is NodeList.
	Kind string `json:"kind" oneof:"NodeList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the nodes.
	Items []Node `json:"items"`
}
