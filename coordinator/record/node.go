package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// NodeIdentity is the memory of an agent that may promise (NodeIdentityKey).
// The revision of its last write orders registrations.
type NodeIdentity struct {
	Incarnation resource.Incarnation `json:"incarnation"`
	// Fenced: no transaction may count on this incarnation any more, until it
	// registers again.
	Fenced bool `json:"fenced,omitempty"`
	// ConfirmedDead: nothing that this incarnation was granted runs any more, by
	// an operator's word or by the assume-dead policy. Only of a fenced one.
	ConfirmedDead bool `json:"confirmedDead,omitempty"`
	// FencedAt (RFC 3339) and FencedFor, a reason, are for people.
	FencedAt  string `json:"fencedAt,omitempty"`
	FencedFor string `json:"fencedFor,omitempty"`
	// AssumeDeadMillis: without contact for that long this incarnation's agent
	// begins to stop what it was granted. 0 where its operator has not opted in.
	AssumeDeadMillis int64 `json:"assumeDeadMillis,omitempty"`
	// Restored is the mark of the last restoration of the store accepted by the agent, or
	// "".
	Restored string `json:"restored,omitempty"`
}

// NodeSpec is what a node has and who may use it (NodeSpecKey).
type NodeSpec struct {
	Hostname    string          `json:"hostname,omitempty"`
	AgentAddr   string          `json:"agentAddr,omitempty"` // host:port
	Capacity    resource.Vector `json:"capacity,omitempty"`
	Allocatable resource.Vector `json:"allocatable,omitempty"`
	// Labels are the agent's layer, OperatorLabels the operators', which wins by
	// key. Which labels the node has with both is admission.Labels. A registration
	// writes the first and never the second.
	Labels         map[string]string `json:"labels,omitempty"`
	OperatorLabels map[string]string `json:"operatorLabels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"` // the operators'
	Taints         []Taint           `json:"taints,omitempty"`
	Unschedulable  bool              `json:"unschedulable,omitempty"`
	// Drain is the drain of the node; nil where there is none. Registrations keep it,
	// an operator who uncordons the node removes it.
	Drain *Drain `json:"drain,omitempty"`
	// Violation is why the node is isolated; nil where it is not. Registrations
	// keep it, an operator who uncordons the node removes it.
	Violation *Violation      `json:"violation,omitempty"`
	Topology  TopologySummary `json:"topology,omitzero"`
	Version   string          `json:"version,omitempty"` // of the agent
	Created   string          `json:"created,omitempty"` // RFC 3339, of the first registration
	// Registrations are the times of the last registrations, RFC 3339, at most
	// MaxRegistrations; the newest is the last.
	Registrations []string `json:"registrations,omitempty"`
	// RegisteredBy are the agents of the last of these registrations, in the same
	// order. Before this field was kept, there are times alone.
	RegisteredBy []Registrant `json:"registeredBy,omitempty"`
	// AssumeDeadMillis is that of the identity, as the last registration had it.
	AssumeDeadMillis int64 `json:"assumeDeadMillis,omitempty"`
	// StartsWork: the agent starts the commands of members.
	StartsWork bool `json:"startsWork,omitempty"`
	// RunsContainers: the agent starts commands in root file systems of their own.
	RunsContainers bool `json:"runsContainers,omitempty"`
	// MountsFolders: the agent mounts folders of the host in these root file systems.
	MountsFolders bool `json:"mountsFolders,omitempty"`
	// IgnoredLabels are keys that the agent registered and that count for nothing
	// (admission.AgentLabels).
	IgnoredLabels []string `json:"ignoredLabels,omitempty"`
	// Token is the id of the bootstrap token that the node was let in with, as the
	// last registration found it; "" without TLS.
	Token string `json:"token,omitempty"`
	// Approved is the most that the node may have without waiting for an operator;
	// nil approves whatever it registers.
	Approved *Capacity `json:"approved,omitempty"`
	// Expected is the capacity that the node's creation has named; nil where the node
	// was not created through the API. Registrations keep it.
	Expected *Expected `json:"expected,omitempty"`
	// Lowered are the amounts to which operators have lowered the allocatable part,
	// by resource. Registrations keep them.
	Lowered resource.Vector `json:"lowered,omitempty"`
	// Kubelet is the operators' part of the pool of devices that the kubelet of the host
	// hands out; nil where they have named none. Registrations keep it.
	Kubelet *KubeletPool `json:"kubelet,omitempty"`
	// Counts are the counted resources as the agent declares them, ascending by name.
	// Their amounts are in Capacity and Allocatable too.
	Counts []grant.Count `json:"counts,omitempty"`
}

// KubeletPool is the operators' part of a kubelet's pool, by the UUIDs of GPUs and MIG
// instances. It wins over the agent's configuration device by device.
type KubeletPool struct {
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// HasRegistered reports whether an agent has registered the node. A node that was
// created through the API has a specification before that.
func (s *NodeSpec) HasRegistered() bool { return s.Capacity != nil }

// Expected is a capacity as its sender has written it, by resource.
type Expected struct {
	Capacity    map[resource.Name]string `json:"capacity,omitempty"`
	Allocatable map[resource.Name]string `json:"allocatable,omitempty"`
}

// Registrant is an agent that registered: its host, its address, and its data
// folder by the id of the journal.
type Registrant struct {
	Hostname  string `json:"hostname,omitempty"`
	AgentAddr string `json:"agentAddr,omitempty"`
	Journal   string `json:"journal,omitempty"`
}

// String names the agent for people.
func (r Registrant) String() string {
	return fmt.Sprintf("host %s at %s (journal %.8s)", r.Hostname, r.AgentAddr, r.Journal)
}

// Violation is how a node's agent broke the protocol.
type Violation struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"` // for people, at most 512 bytes
	At     string `json:"at,omitempty"`     // RFC 3339
	// Severed: no stream to the agent may be opened.
	Severed bool `json:"severed,omitempty"`
}

// Drain is a drain that has begun.
type Drain struct {
	Began string `json:"began,omitempty"` // RFC 3339
	// Allocations is the number of members that were to leave, since it began.
	Allocations int `json:"allocations,omitempty"`
}

// Capacity is how much a node has, and its devices by model.
type Capacity struct {
	Amounts resource.Vector `json:"amounts,omitempty"`
	Models  map[string]int  `json:"models,omitempty"`
}

// Taint keeps allocations without a matching toleration away, ends those that run, or
// has them prefer other nodes.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	// AddedMillis is the instant at which the taint was set, as Tx.EndingMillis is one.
	AddedMillis int64 `json:"addedMillis,omitempty"`
}

// TopologySummary is a host in numbers; the full topology comes over the
// agent's stream.
type TopologySummary struct {
	Sockets   int      `json:"sockets,omitempty"`
	NUMANodes int      `json:"numaNodes,omitempty"`
	Cores     int      `json:"cores,omitempty"`
	CPUs      int      `json:"cpus,omitempty"`
	GPUs      int      `json:"gpus,omitempty"`
	GPUModels []string `json:"gpuModels,omitempty"` // distinct, ascending
	// NUMACPUs are the logical CPUs of each NUMA node that has any, by its id,
	// as a list such as "0-15,64-79". GPUModel is each device's position in
	// GPUModels. Hosts that were registered by an older version have neither.
	NUMACPUs map[int]string `json:"numaCPUs,omitempty"`
	GPUModel []int          `json:"gpuModel,omitempty"`
	// GPUMemory is that of the first device; 0 where there is none or an older
	// version has registered the host.
	GPUMemory resource.Bytes `json:"gpuMemory,omitempty"`
	// Clique is that of all devices, as devices.Device has it; "" where they have none, or
	// not the same.
	Clique string `json:"clique,omitempty"`
}

// NodeStatus is the last report of a node's agent (NodeStatusKey), as the coordinator
// that hears the agent has written it: at once when the conditions have changed, else
// at a coarse step. It is for readers; of its fields only the condition DeviceLost is
// an input to a decision.
type NodeStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
	// HeardAt is the time of the report (RFC 3339); "" where an older version wrote it.
	HeardAt string `json:"heardAt,omitempty"`
	// Usage is measured on the host, and Devices on its devices and MIG instances.
	Usage   resource.Vector `json:"usage,omitempty"`
	Devices []DeviceUse     `json:"devices,omitempty"`
	// Available is read and never written.
	Available resource.Vector `json:"available,omitempty"`
	// Kubelet is the pool of the host's kubelet; nil where the agent gives it none.
	Kubelet *KubeletReport `json:"kubelet,omitempty"`
	// Work is the measured use of members that run, ascending by transaction and member.
	Work []MemberUse `json:"work,omitempty"`
}

// MemberUse is the measured use of a member since its start, while it runs.
type MemberUse struct {
	Tx     resource.TxID `json:"tx"`
	Member int           `json:"member"`
	Use    Use           `json:"use"`
}

// CompareMember orders the uses of members.
func (u MemberUse) CompareMember(tx resource.TxID, member int) int {
	return cmp.Or(cmp.Compare(u.Tx, tx), cmp.Compare(u.Member, member))
}

// UseOf is the measured use of a member that runs; nil where there is none.
func (r *NodeStatus) UseOf(tx resource.TxID, member int) *Use {
	at, found := slices.BinarySearchFunc(r.Work, 0, func(u MemberUse, _ int) int { return u.CompareMember(tx, member) })
	if !found {
		return nil
	}
	return &r.Work[at].Use
}

// DeviceUse is the use of one device or MIG instance; devices.UnknownUse where the
// driver does not measure it.
type DeviceUse struct {
	UUID    string         `json:"uuid"`
	Percent int            `json:"percent"`
	Memory  resource.Bytes `json:"memory"`
}

// Condition is one aspect of a node's state.
type Condition struct {
	Type           string `json:"type"`
	Status         string `json:"status"` // True | False | Unknown
	Reason         string `json:"reason,omitempty"`
	Message        string `json:"message,omitempty"`
	LastTransition string `json:"lastTransition,omitempty"` // RFC 3339
}

// NodeLease says who hears the node's agent (NodeLeaseKey).
type NodeLease struct {
	Coordinator string `json:"coordinator"`
}

// NodeTx is the per-node index entry of a transaction (NodeTxKey): written and
// deleted in the same Txn as the record.
type NodeTx struct {
	Members []int `json:"members"` // indices of the members on this node
}
