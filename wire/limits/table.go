package limits

import (
	"maps"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// Limits that senders keep to.
const (
	// MaxReason is the most bytes of why something ends or is not well, and
	// MaxDetail of an explanation.
	MaxReason = 1024
	MaxDetail = 4096
	// MaxUnitName bounds the name of a unit, "namespace/alloc|job/name/n", in bytes.
	MaxUnitName = 512
	// MaxReasons is the most reasons of one refusal.
	MaxReasons = 128
	// MaxLabels is the most labels of one node.
	MaxLabels = 64
	// MaxConditions is the most conditions of one heartbeat.
	MaxConditions = 32
	// MaxKubeletPool is the most devices and MIG instances of one kubelet's pool, and
	// MaxKubeletContainers the most containers of one report that have them.
	MaxKubeletPool       = grant.MaxKubeletPool
	MaxKubeletContainers = grant.MaxKubeletContainers
	// MaxArgs is the most arguments of a command, and the most variables of its
	// environment. MaxArg bounds each, in bytes.
	MaxArgs = 1024
	MaxArg  = 64 << 10
)

// Limits that several fields share.
const (
	maxName     = 63  // bytes of a node's, cluster's or coordinator's name
	maxID       = 256 // bytes of an identifier
	maxMillis   = 10 * 365 * 24 * 3600 * 1000
	maxSeconds  = maxMillis / 1000
	maxMembers  = 1024 // members of one unit on one host
	maxVictims  = 1024
	maxWorld    = 4096 // members of one unit that have hosts
	maxAddress  = 256  // bytes of a host's address
	maxDir      = 4096 // bytes of a path
	maxRestarts = 1 << 20
	maxLog      = 32 << 10 // bytes of output in one message
	// Of a further command: its arguments, each in bytes, the name of its terminal, the
	// rows or columns of it, and the bytes of input under way.
	maxExecArgs   = grant.MaxExecArgs
	maxExecArg    = grant.MaxExecBytes
	maxTerm       = grant.MaxTerm
	maxWindow     = 1<<16 - 1
	maxExecWindow = grant.ExecWindow
	// MaxKubeletName is the bytes of each name of a pod.
	MaxKubeletName = 253
	maxMIG         = devices.MaxDevices * devices.MaxMIGInstances
)

// fields is the table: the limit of each field by its full name.
var fields = together(resourceFields, agentFields, coordinatorFields, nodeAgentFields)

// sizes are the bytes of whole messages; MaxSmall where a message has none.
var sizes = map[string]int64{
	"muster.v1.LeaderMessage":    MaxSession,
	"muster.v1.AgentMessage":     MaxSession,
	"muster.v1.RegisterRequest":  MaxRegister,
	"muster.v1.ReadNodeResponse": MaxAnswer,
	"muster.v1.ResolveResponse":  MaxSession,
	"muster.v1.EnrollRequest":    MaxEnroll,
	"muster.v1.RenewRequest":     MaxEnroll,
	"muster.v1.EnrollResponse":   MaxRegister,

	"scheduler.v1.HeartbeatRequest": MaxRegister,
	"scheduler.v1.BindRequest":      MaxRegister,
	"scheduler.v1.ResourceSnapshot": MaxAnswer,
}

func together(parts ...map[string]Limit) map[string]Limit {
	all := map[string]Limit{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// Identifiers that several messages carry.
var (
	nodeName    = name(maxName)
	transaction = id(maxID)
	unitUID     = id(maxID)
	unitName    = id(MaxUnitName)
	tenantName  = prose(maxID)
	gpuUUID     = id(maxID)
	migUUID     = id(maxID)
	migProfile  = id(2 * resource.MaxMIGProfile)
	gpuIndex    = between(0, devices.MaxDevices-1)
	memberIndex = between(0, 1<<20)
	memberCount = between(0, 1<<20)
	memory      = between(0, int64(resource.MaxMemory))
	cpuID       = between(0, numa.MaxCPUs-1)
	nodeID      = between(0, numa.MaxNodeID)
)

var resourceFields = map[string]Limit{
	"muster.v1.Incarnation.journal_id": id(maxID),
	"muster.v1.Incarnation.boot_id":    id(maxID),

	// resource.Request.Validate bounds a request more narrowly than its types do.
	// An agent answers a request beyond that with the refusal of its transaction,
	// and its session goes on.
	"muster.v1.Request.cpu":           anyInt,
	"muster.v1.Request.memory":        anyInt,
	"muster.v1.Request.gpus":          anyInt,
	"muster.v1.Request.gpu_share":     anyInt,
	"muster.v1.Request.gpu_model":     prose(maxID),
	"muster.v1.Request.gpu_memory":    anyInt,
	"muster.v1.Request.numa_policy":   anyInt,
	"muster.v1.Request.link":          anyInt,
	"muster.v1.Request.cores":         anyInt,
	"muster.v1.Request.hugepages":     anyInt,
	"muster.v1.Request.hugepage_size": anyInt,
	"muster.v1.Request.mig":           anyInt,
	"muster.v1.Request.mig_profile":   prose(maxID),
	"muster.v1.Request.counts":        id(resource.MaxCounts * (resource.MaxCountName + 20)),

	"muster.v1.MemberAssignment.member":     memberIndex,
	"muster.v1.MemberAssignment.assignment": message,

	"muster.v1.Assignment.cpus":      listOf(numa.MaxCPUs, message),
	"muster.v1.Assignment.memory":    listOf(numa.MaxNodes, message),
	"muster.v1.Assignment.gpus":      listOf(devices.MaxDevices, message),
	"muster.v1.Assignment.hugepages": listOf(numa.MaxNodes*8, message),
	"muster.v1.Assignment.mig":       listOf(maxMIG, message),
	"muster.v1.Assignment.counts":    listOf(resource.MaxCounts, message),

	"muster.v1.CPUGrant.id":    cpuID,
	"muster.v1.CPUGrant.milli": between(0, int64(resource.WholeCPU)),

	"muster.v1.MemoryGrant.node":  nodeID,
	"muster.v1.MemoryGrant.bytes": memory,

	"muster.v1.GPUGrant.index": gpuIndex,
	"muster.v1.GPUGrant.uuid":  gpuUUID,
	"muster.v1.GPUGrant.milli": between(0, int64(resource.WholeDevice)),

	"muster.v1.HugepageGrant.node":  nodeID,
	"muster.v1.HugepageGrant.size":  between(0, int64(resource.MaxHugepageSize)),
	"muster.v1.HugepageGrant.bytes": memory,

	"muster.v1.MIGGrant.gpu":      gpuIndex,
	"muster.v1.MIGGrant.instance": between(0, devices.MaxMIGInstances-1),
	"muster.v1.MIGGrant.uuid":     migUUID,
	"muster.v1.MIGGrant.profile":  migProfile,

	"muster.v1.CountGrant.name":   id(resource.MaxCountName),
	"muster.v1.CountGrant.amount": between(0, resource.MaxCount),

	"muster.v1.Reason.code":     id(maxName),
	"muster.v1.Reason.resource": id(maxID),
	"muster.v1.Reason.want":     anyInt,
	"muster.v1.Reason.have":     anyInt,
	"muster.v1.Reason.detail":   prose(MaxDetail),

	"muster.v1.Refusal.code":    between(0, 999),
	"muster.v1.Refusal.reason":  document(4096),
	"muster.v1.Refusal.details": listOf(4096, message),

	"muster.v1.Host.hostname":        id(253),
	"muster.v1.Host.topology":        message,
	"muster.v1.Host.inventory":       message,
	"muster.v1.Host.reserved_cpus":   cpuList,
	"muster.v1.Host.reserved_memory": memory,
	"muster.v1.Host.labels":          dictOf(MaxLabels, labelKey(253+1+63), prose(253)),
	"muster.v1.Host.counts":          listOf(resource.MaxCounts, message),

	"muster.v1.HostCount.name":   id(resource.MaxCountName),
	"muster.v1.HostCount.amount": between(0, resource.MaxCount),
	"muster.v1.HostCount.kind":   id(maxName),
	"muster.v1.HostCount.unit":   prose(maxName),

	"muster.v1.Topology.nodes":     listOf(numa.MaxNodes, message),
	"muster.v1.Topology.cpus":      listOf(numa.MaxCPUs, message),
	"muster.v1.Topology.distances": listOf(numa.MaxNodes*numa.MaxNodes, between(0, 1<<16)),

	"muster.v1.NUMANode.id":          nodeID,
	"muster.v1.NUMANode.cpus":        cpuList,
	"muster.v1.NUMANode.memory":      memory,
	"muster.v1.NUMANode.memory_only": boolean,
	"muster.v1.NUMANode.hugepages":   dictOf(16, between(1, int64(resource.MaxHugepageSize>>10)), between(0, int64(resource.MaxMemory>>10))),

	"muster.v1.CPU.id":       cpuID,
	"muster.v1.CPU.socket":   between(numa.Unknown, 1<<30),
	"muster.v1.CPU.core":     between(numa.Unknown, 1<<30),
	"muster.v1.CPU.l3":       between(numa.Unknown, 1<<30),
	"muster.v1.CPU.numa":     between(numa.Unknown, numa.MaxNodeID),
	"muster.v1.CPU.online":   boolean,
	"muster.v1.CPU.isolated": boolean,
	"muster.v1.CPU.siblings": id(1024),
	"muster.v1.CPU.kind":     between(0, 255),

	"muster.v1.Inventory.driver":      prose(128),
	"muster.v1.Inventory.devices":     listOf(devices.MaxDevices, message),
	"muster.v1.Inventory.links":       blob(devices.MaxDevices * devices.MaxDevices),
	"muster.v1.Inventory.connections": blob(devices.MaxDevices * devices.MaxDevices),

	"muster.v1.Device.uuid":          gpuUUID,
	"muster.v1.Device.model":         prose(maxID),
	"muster.v1.Device.memory":        memory,
	"muster.v1.Device.pci_bus_id":    id(64),
	"muster.v1.Device.numa_node":     between(devices.UnknownNode, numa.MaxNodeID),
	"muster.v1.Device.mig_enabled":   boolean,
	"muster.v1.Device.mig_instances": listOf(devices.MaxMIGInstances, message),
	"muster.v1.Device.health":        id(32),
	"muster.v1.Device.clique":        id(devices.MaxClique),

	"muster.v1.MIGInstance.uuid":    migUUID,
	"muster.v1.MIGInstance.profile": migProfile,
	"muster.v1.MIGInstance.memory":  memory,
}

// cpuList is a list such as "0-31,64-95": all CPUs one by one are 40 KB.
var cpuList = id(48 << 10)
