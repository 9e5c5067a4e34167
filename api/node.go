package api

import "github.com/musterd/muster/resource"

// Node is one host as the API shows it.
type Node struct {
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       NodeSpec   `json:"spec"`
	Status     NodeStatus `json:"status,omitzero"`
}

// NodeSpec is what a node has, in quantities as people write them.
type NodeSpec struct {
	Capacity      map[resource.Name]string `json:"capacity,omitempty"`
	Allocatable   map[resource.Name]string `json:"allocatable,omitempty"`
	Taints        []Taint                  `json:"taints,omitempty"`
	Unschedulable bool                     `json:"unschedulable,omitempty"`
}

// Taint keeps allocations without a matching toleration away.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"` // NoSchedule | PreferNoSchedule | NoExecute
}

// NodeStatus is what is known of a node now.
type NodeStatus struct {
	Phase       string                   `json:"phase,omitempty"` // Ready | NotReady | AwaitingApproval | Unregistered | Fenced | Quarantined
	Addresses   []NodeAddress            `json:"addresses,omitempty"`
	Conditions  []Condition              `json:"conditions,omitempty"`
	Available   map[resource.Name]string `json:"available,omitempty"`
	Usage       map[resource.Name]string `json:"usage,omitempty"` // measured on the host
	Incarnation *resource.Incarnation    `json:"incarnation,omitempty"`
	NUMANodes   []NUMAStatus             `json:"numaNodes,omitempty"`
	Devices     []DeviceStatus           `json:"devices,omitempty"`
	Allocations []string                 `json:"allocations,omitempty"` // namespace/name of members here
	// OperatorLabels are those of metadata.labels that operators have set; the
	// others are the agent's, or follow from its registration.
	OperatorLabels map[string]string `json:"operatorLabels,omitempty"`
}

// NodeAddress is one address of a node.
type NodeAddress struct {
	Type    string `json:"type"` // Hostname | Agent
	Address string `json:"address"`
}

// NUMAStatus is one NUMA node's free amounts.
type NUMAStatus struct {
	ID         int    `json:"id"`
	CPUs       string `json:"cpus"`
	FreeCPU    string `json:"freeCPU"`
	FreeCores  int    `json:"freeCores"` // physical cores all of whose threads are free
	Memory     string `json:"memory"`
	FreeMemory string `json:"freeMemory"`
	// FreeHugepages is by the resource's name, for the page sizes that the node
	// has.
	FreeHugepages map[resource.Name]string `json:"freeHugepages,omitempty"`
}

// DeviceStatus is one GPU and how much of it is free.
type DeviceStatus struct {
	Index    int    `json:"index"`
	UUID     string `json:"uuid"`
	Model    string `json:"model"`
	Memory   string `json:"memory"`
	NUMANode int    `json:"numaNode"`
	Health   string `json:"health"` // ok | suspect | tainted | probation
	// HealthReason says why the device is not ok.
	HealthReason string         `json:"healthReason,omitempty"`
	Free         resource.Milli `json:"freeMilli"` // 0 in MIG mode
	MIG          *MIGMode       `json:"mig,omitempty"`
}

// MIGMode is a device in MIG mode: it is handed out by its instances alone.
type MIGMode struct {
	Instances []MIGInstance `json:"instances,omitempty"`
}

// MIGInstance is one MIG instance and whether it is free.
type MIGInstance struct {
	UUID    string `json:"uuid"`
	Profile string `json:"profile"`
	Memory  string `json:"memory"`
	Free    bool   `json:"free"`
}

// NodeList is a list of nodes ordered by name.
type NodeList struct {
	Kind     string   `json:"kind"`
	Metadata ListMeta `json:"metadata"`
	Items    []Node   `json:"items"`
}
