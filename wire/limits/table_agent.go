package limits

import (
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// A Reserve beyond the ledger's limits is answered as a refusal of its
// transaction, which carries more than the end of the session: its limits are
// wider than the ledger's.
var agentFields = map[string]Limit{
	"muster.v1.LeaderMessage.hello":     message,
	"muster.v1.LeaderMessage.reserve":   message,
	"muster.v1.LeaderMessage.commit":    message,
	"muster.v1.LeaderMessage.abort":     message,
	"muster.v1.LeaderMessage.release":   message,
	"muster.v1.LeaderMessage.evict":     message,
	"muster.v1.LeaderMessage.forget":    message,
	"muster.v1.LeaderMessage.resync":    message,
	"muster.v1.LeaderMessage.cordon":    message,
	"muster.v1.LeaderMessage.reconcile": message,

	"muster.v1.LeaderHello.cluster":             prose(maxID),
	"muster.v1.LeaderHello.leader_id":           prose(maxID),
	"muster.v1.LeaderHello.epoch":               natural,
	"muster.v1.LeaderHello.registered":          message,
	"muster.v1.LeaderHello.registered_revision": natural,

	"muster.v1.Reserve.tx":           transaction,
	"muster.v1.Reserve.unit":         unitUID,
	"muster.v1.Reserve.epoch":        natural,
	"muster.v1.Reserve.members":      listOf(4*maxMembers, message),
	"muster.v1.Reserve.ttl_millis":   between(0, maxMillis),
	"muster.v1.Reserve.after":        listOf(4*maxVictims, transaction),
	"muster.v1.Reserve.name":         unitName,
	"muster.v1.Reserve.tenant":       tenantName,
	"muster.v1.Reserve.unit_members": memberCount,
	"muster.v1.Reserve.registered":   natural,

	"muster.v1.MemberRequest.member":      memberIndex,
	"muster.v1.MemberRequest.request":     message,
	"muster.v1.MemberRequest.pinned_gpus": listOf(devices.MaxDevices, gpuIndex),

	"muster.v1.Commit.tx":       transaction,
	"muster.v1.Commit.epoch":    natural,
	"muster.v1.Commit.revision": natural,

	"muster.v1.LeaderMessage.start":        message,
	"muster.v1.LeaderMessage.kubelet_pool": message,

	"muster.v1.Start.tx":           transaction,
	"muster.v1.Start.epoch":        natural,
	"muster.v1.Start.args":         listOf(MaxArgs, document(MaxArg)),
	"muster.v1.Start.env":          listOf(MaxArgs, document(MaxArg)),
	"muster.v1.Start.dir":          document(maxDir),
	"muster.v1.Start.rootfs":       document(maxDir),
	"muster.v1.Start.bundle":       document(maxDir),
	"muster.v1.Start.mounts":       listOf(grant.MaxMounts, message),
	"muster.v1.Start.first_member": memberIndex,
	"muster.v1.Start.rank":         memberIndex,
	"muster.v1.Start.hosts":        listOf(maxWorld, id(maxAddress)),
	"muster.v1.Start.port":         between(0, 65535),
	"muster.v1.Start.members":      listOf(maxMembers, message),

	"muster.v1.Start.notice":             message,
	"muster.v1.Start.cpu_limit_millis":   between(0, int64(resource.MaxCPU)),
	"muster.v1.Start.memory_limit_bytes": between(0, int64(resource.MaxMemory)),
	"muster.v1.Start.stdin":              boolean,
	"muster.v1.Start.tty":                boolean,

	"muster.v1.StartMount.source":    document(maxDir),
	"muster.v1.StartMount.target":    document(maxDir),
	"muster.v1.StartMount.read_only": boolean,

	"muster.v1.Notice.signal":        between(0, 64),
	"muster.v1.Notice.before_millis": natural,
	"muster.v1.Notice.after_millis":  natural,

	"muster.v1.StartMember.member":  memberIndex,
	"muster.v1.StartMember.restart": between(0, maxRestarts),

	"muster.v1.ReadLogRequest.cluster": prose(maxID),
	"muster.v1.ReadLogRequest.tx":      transaction,
	"muster.v1.ReadLogRequest.member":  memberIndex,
	"muster.v1.ReadLogRequest.restart": between(0, maxRestarts),
	"muster.v1.ReadLogRequest.offset":  natural,
	"muster.v1.ReadLogRequest.follow":  boolean,

	"muster.v1.LogChunk.offset": natural,
	"muster.v1.LogChunk.data":   blob(maxLog),

	"muster.v1.ExecRequest.open":   message,
	"muster.v1.ExecRequest.input":  blob(maxLog),
	"muster.v1.ExecRequest.end":    boolean,
	"muster.v1.ExecRequest.window": message,
	"muster.v1.ExecRequest.signal": between(1, 64),

	"muster.v1.ExecOpen.cluster": prose(maxID),
	"muster.v1.ExecOpen.tx":      transaction,
	"muster.v1.ExecOpen.member":  memberIndex,
	"muster.v1.ExecOpen.restart": between(0, maxRestarts),
	"muster.v1.ExecOpen.args":    listOf(maxExecArgs, document(maxExecArg)),
	"muster.v1.ExecOpen.tty":     boolean,
	"muster.v1.ExecOpen.window":  message,
	"muster.v1.ExecOpen.term":    id(maxTerm),
	"muster.v1.ExecOpen.input":   boolean,
	"muster.v1.ExecOpen.attach":  boolean,
	"muster.v1.ExecOpen.from":    natural,

	"muster.v1.ExecWindow.rows":    between(0, maxWindow),
	"muster.v1.ExecWindow.columns": between(0, maxWindow),

	"muster.v1.ExecAnswer.opened": boolean,
	"muster.v1.ExecAnswer.output": blob(maxLog),
	"muster.v1.ExecAnswer.error":  blob(maxLog),
	"muster.v1.ExecAnswer.taken":  between(1, maxExecWindow),
	"muster.v1.ExecAnswer.exit":   message,

	"muster.v1.ExecExit.code":    between(0, 255),
	"muster.v1.ExecExit.signal":  between(0, 64),
	"muster.v1.ExecExit.reason":  oneOf("", "Completed", "Stopped", "Killed", "NotStarted"),
	"muster.v1.ExecExit.message": prose(MaxReason),

	"muster.v1.Work.tx":     transaction,
	"muster.v1.Work.states": listOf(maxMembers, message),

	"muster.v1.WorkState.member":       memberIndex,
	"muster.v1.WorkState.restart":      between(0, maxRestarts),
	"muster.v1.WorkState.phase":        known,
	"muster.v1.WorkState.code":         between(0, 255),
	"muster.v1.WorkState.signal":       between(0, 64),
	"muster.v1.WorkState.reason":       prose(MaxReason),
	"muster.v1.WorkState.message":      prose(MaxReason),
	"muster.v1.WorkState.use":          message,
	"muster.v1.WorkState.signaled":     boolean,
	"muster.v1.WorkState.epilog_fault": prose(MaxReason),

	"muster.v1.WorkUse.cpu_millis":        natural,
	"muster.v1.WorkUse.memory_bytes":      natural,
	"muster.v1.WorkUse.peak_memory_bytes": natural,
	"muster.v1.WorkUse.oom_kills":         natural,
	"muster.v1.WorkUse.devices":           listOf(devices.MaxUses, message),

	"muster.v1.WorkDevice.uuid":              prose(maxID),
	"muster.v1.WorkDevice.busy_millis":       natural,
	"muster.v1.WorkDevice.measured_millis":   natural,
	"muster.v1.WorkDevice.memory_bytes":      natural,
	"muster.v1.WorkDevice.peak_memory_bytes": natural,

	"muster.v1.Abort.tx":    transaction,
	"muster.v1.Abort.epoch": natural,

	"muster.v1.Release.tx":           transaction,
	"muster.v1.Release.epoch":        natural,
	"muster.v1.Release.grace_millis": between(0, maxMillis),
	"muster.v1.Release.reason":       prose(MaxReason),

	"muster.v1.Evict.tx":           transaction,
	"muster.v1.Evict.epoch":        natural,
	"muster.v1.Evict.grace_millis": between(0, maxMillis),
	"muster.v1.Evict.by":           transaction,

	"muster.v1.Forget.tx": transaction,

	"muster.v1.Cordon.cordoned": boolean,

	"muster.v1.KubeletPool.add":    listOf(MaxKubeletPool, gpuUUID),
	"muster.v1.KubeletPool.remove": listOf(MaxKubeletPool, gpuUUID),

	"muster.v1.Reconcile.epoch":        natural,
	"muster.v1.Reconcile.revision":     natural,
	"muster.v1.Reconcile.adopted":      listOf(2*MaxGrants, transaction),
	"muster.v1.Reconcile.released":     listOf(2*MaxGrants, transaction),
	"muster.v1.Reconcile.grace_millis": between(0, maxMillis),

	"muster.v1.AgentMessage.hello":       message,
	"muster.v1.AgentMessage.reply":       message,
	"muster.v1.AgentMessage.occupancy":   message,
	"muster.v1.AgentMessage.registered":  message,
	"muster.v1.AgentMessage.health":      message,
	"muster.v1.AgentMessage.work":        message,
	"muster.v1.AgentMessage.ledger_hash": anyInt,

	"muster.v1.AgentHello.node_id":             nodeName,
	"muster.v1.AgentHello.incarnation":         message,
	"muster.v1.AgentHello.registered_revision": natural,
	"muster.v1.AgentHello.host":                message,
	"muster.v1.AgentHello.occupancy":           message,
	"muster.v1.AgentHello.quarantine":          prose(MaxReason),

	"muster.v1.Registered.incarnation": message,
	"muster.v1.Registered.revision":    natural,

	"muster.v1.Reply.tx":                  transaction,
	"muster.v1.Reply.state":               known,
	"muster.v1.Reply.incarnation":         message,
	"muster.v1.Reply.registered_revision": natural,
	"muster.v1.Reply.members":             listOf(maxMembers, message),
	"muster.v1.Reply.reasons":             listOf(MaxReasons, message),

	"muster.v1.Occupancy.grants":          listOf(MaxGrants+maxMIG, message),
	"muster.v1.Occupancy.cordoned":        boolean,
	"muster.v1.Occupancy.disk_full":       boolean,
	"muster.v1.Occupancy.memory_pressure": boolean,
	"muster.v1.Occupancy.work":            listOf(MaxGrants, message),
	"muster.v1.Occupancy.health":          listOf(devices.MaxDevices, message),
	"muster.v1.Occupancy.kubelet_pool":    message,

	"muster.v1.Grant.tx":           transaction,
	"muster.v1.Grant.unit":         unitUID,
	"muster.v1.Grant.epoch":        natural,
	"muster.v1.Grant.state":        known,
	"muster.v1.Grant.members":      listOf(maxMembers, message),
	"muster.v1.Grant.origin":       oneOf("", "txn", "escrow", "kubelet", "orphan"),
	"muster.v1.Grant.name":         unitName,
	"muster.v1.Grant.tenant":       tenantName,
	"muster.v1.Grant.unit_members": memberCount,

	"muster.v1.HealthChange.devices":         listOf(devices.MaxDevices, message),
	"muster.v1.HealthChange.cordoned":        boolean,
	"muster.v1.HealthChange.disk_full":       boolean,
	"muster.v1.HealthChange.memory_pressure": boolean,
	"muster.v1.HealthChange.quarantine":      prose(MaxReason),

	"muster.v1.DeviceHealth.index":  gpuIndex,
	"muster.v1.DeviceHealth.health": id(32),
	"muster.v1.DeviceHealth.reason": prose(MaxReason),
}

var coordinatorFields = map[string]Limit{
	"muster.v1.RegisterRequest.cluster":                  prose(maxID),
	"muster.v1.RegisterRequest.node_id":                  nodeName,
	"muster.v1.RegisterRequest.incarnation":              message,
	"muster.v1.RegisterRequest.feature_level":            between(0, 1000),
	"muster.v1.RegisterRequest.host":                     message,
	"muster.v1.RegisterRequest.agent_addr":               id(maxID),
	"muster.v1.RegisterRequest.version":                  prose(128),
	"muster.v1.RegisterRequest.assume_dead_after_millis": between(0, maxMillis),
	"muster.v1.RegisterRequest.starts_work":              boolean,
	"muster.v1.RegisterRequest.runs_containers":          boolean,
	"muster.v1.RegisterRequest.mounts_folders":           boolean,
	"muster.v1.RegisterRequest.known":                    message,

	"muster.v1.KnownStore.revision":    natural,
	"muster.v1.KnownStore.epoch":       natural,
	"muster.v1.KnownStore.term":        id(maxID),
	"muster.v1.KnownStore.tx":          transaction,
	"muster.v1.KnownStore.tx_revision": natural,
	"muster.v1.KnownStore.restored":    id(maxID),
	"muster.v1.KnownStore.accepts_any": boolean,

	"muster.v1.RegisterResponse.revision":       natural,
	"muster.v1.RegisterResponse.store_revision": natural,
	"muster.v1.RegisterResponse.epoch":          natural,
	"muster.v1.RegisterResponse.term":           id(maxID),
	"muster.v1.RegisterResponse.restored":       id(maxID),
	"muster.v1.RegisterResponse.lost":           prose(2 * MaxReason),

	"muster.v1.ReadNodeRequest.node_id":   nodeName,
	"muster.v1.ReadNodeResponse.records":  listOf(2*MaxGrants, message),
	"muster.v1.ReadNodeResponse.revision": natural,

	"muster.v1.Record.tx":           transaction,
	"muster.v1.Record.unit":         unitUID,
	"muster.v1.Record.epoch":        natural,
	"muster.v1.Record.state":        known,
	"muster.v1.Record.members":      listOf(maxMembers, message),
	"muster.v1.Record.grace_millis": between(0, maxMillis),
	"muster.v1.Record.revision":     natural,
	"muster.v1.Record.incarnation":  message,
	"muster.v1.Record.name":         unitName,
	"muster.v1.Record.tenant":       tenantName,
	"muster.v1.Record.unit_members": memberCount,

	"muster.v1.ResolveRequest.node_id": nodeName,
	"muster.v1.ResolveRequest.tx":      transaction,
	"muster.v1.ResolveRequest.fence":   boolean,
	"muster.v1.ResolveResponse.record": message,

	"muster.v1.EvictAllocationRequest.node_id":       nodeName,
	"muster.v1.EvictAllocationRequest.allocation":    id(MaxUnitName),
	"muster.v1.EvictAllocationRequest.grace_seconds": between(-maxSeconds, maxSeconds),
	"muster.v1.EvictAllocationRequest.reason":        prose(MaxReason),

	"muster.v1.EvictAllocationResponse.tx":       transaction,
	"muster.v1.EvictAllocationResponse.revision": natural,

	"muster.v1.EnrollRequest.cluster": prose(maxID),
	"muster.v1.EnrollRequest.node_id": nodeName,
	"muster.v1.EnrollRequest.csr":     blob(16 << 10),
	"muster.v1.RenewRequest.csr":      blob(16 << 10),

	"muster.v1.EnrollResponse.chain":       listOf(16, blob(16<<10)),
	"muster.v1.EnrollResponse.authorities": listOf(32, blob(16<<10)),
	"muster.v1.EnrollResponse.gossip_keys": listOf(32, blob(64)),
	// Certificates of operators that were revoked and have not expired.
	"muster.v1.EnrollResponse.revoked_keys": listOf(4096, id(64)),
}

var nodeAgentFields = map[string]Limit{
	"scheduler.v1.HeartbeatRequest.node_id":       nodeName,
	"scheduler.v1.HeartbeatRequest.timestamp":     anyInt,
	"scheduler.v1.HeartbeatRequest.current_usage": message,
	"scheduler.v1.HeartbeatRequest.pod_statuses":  listOf(2*MaxGrants, message),
	"scheduler.v1.HeartbeatRequest.conditions":    listOf(MaxConditions, message),
	"scheduler.v1.HeartbeatRequest.kubelet":       message,

	"scheduler.v1.KubeletReport.devices":         listOf(2*MaxKubeletPool, message),
	"scheduler.v1.KubeletReport.more_containers": between(0, 1<<20),

	"scheduler.v1.KubeletDevice.uuid":       gpuUUID,
	"scheduler.v1.KubeletDevice.state":      oneOf("", "Free", "Lent", "Joining", "Leaving"),
	"scheduler.v1.KubeletDevice.configured": boolean,
	"scheduler.v1.KubeletDevice.holder":     prose(MaxUnitName),
	"scheduler.v1.KubeletDevice.since":      between(0, 1<<40),
	"scheduler.v1.KubeletDevice.containers": listOf(MaxKubeletContainers, message),

	"scheduler.v1.KubeletContainer.namespace": prose(MaxKubeletName),
	"scheduler.v1.KubeletContainer.pod":       prose(MaxKubeletName),
	"scheduler.v1.KubeletContainer.container": prose(MaxKubeletName),
	"scheduler.v1.KubeletContainer.unit":      id(maxName),

	"scheduler.v1.HeartbeatResponse.directives":             listOf(64, message),
	"scheduler.v1.HeartbeatResponse.lease_duration_seconds": between(0, maxSeconds),

	"scheduler.v1.ResourceUsage.cpu_millicores":     between(0, int64(resource.MaxCPU)),
	"scheduler.v1.ResourceUsage.memory_bytes":       memory,
	"scheduler.v1.ResourceUsage.load_1m":            floats(0, 1<<20),
	"scheduler.v1.ResourceUsage.load_5m":            floats(0, 1<<20),
	"scheduler.v1.ResourceUsage.disk_bytes":         between(0, 1<<60),
	"scheduler.v1.ResourceUsage.network_rx_bytes":   natural,
	"scheduler.v1.ResourceUsage.network_tx_bytes":   natural,
	"scheduler.v1.ResourceUsage.devices":            listOf(devices.MaxUses, message),
	"scheduler.v1.ResourceUsage.oom_kills":          natural,
	"scheduler.v1.ResourceUsage.containers_running": between(0, 1<<20),

	"scheduler.v1.DeviceUse.uuid":         gpuUUID,
	"scheduler.v1.DeviceUse.percent":      between(0, 100),
	"scheduler.v1.DeviceUse.memory_bytes": memory,

	"scheduler.v1.PodStatus.allocation_id": transaction,
	"scheduler.v1.PodStatus.phase":         name(maxName),
	"scheduler.v1.PodStatus.uses":          listOf(MaxMemberUses, message),

	"scheduler.v1.MemberUse.member": memberIndex,
	"scheduler.v1.MemberUse.use":    message,

	"scheduler.v1.NodeCondition.type":    labelKey(maxName),
	"scheduler.v1.NodeCondition.status":  oneOf("", "True", "False", "Unknown"),
	"scheduler.v1.NodeCondition.reason":  prose(128),
	"scheduler.v1.NodeCondition.message": prose(MaxDetail),

	"scheduler.v1.SchedulingDirective.type":          name(maxName),
	"scheduler.v1.SchedulingDirective.allocation_id": transaction,
	"scheduler.v1.SchedulingDirective.message":       prose(MaxReason),

	"scheduler.v1.BindRequest.allocation_id": id(MaxUnitName),
	"scheduler.v1.BindRequest.node_id":       nodeName,
	"scheduler.v1.BindRequest.resources":     message,
	"scheduler.v1.BindRequest.annotations":   dictOf(256, labelKey(253+1+63), document(64<<10)),

	"scheduler.v1.ResourceRequirements.requests": quantities,
	"scheduler.v1.ResourceRequirements.limits":   quantities,

	"scheduler.v1.BindResponse.success":        boolean,
	"scheduler.v1.BindResponse.error_message":  prose(MaxDetail),
	"scheduler.v1.BindResponse.failure_reason": prose(MaxReason),

	"scheduler.v1.EvictRequest.allocation_id":        id(MaxUnitName),
	"scheduler.v1.EvictRequest.grace_period_seconds": between(-maxSeconds, maxSeconds),
	"scheduler.v1.EvictRequest.reason":               prose(MaxReason),

	"scheduler.v1.EvictResponse.accepted":      boolean,
	"scheduler.v1.EvictResponse.error_message": prose(MaxDetail),

	"scheduler.v1.ResourceSnapshot.node_id":     nodeName,
	"scheduler.v1.ResourceSnapshot.capacity":    quantities,
	"scheduler.v1.ResourceSnapshot.allocatable": quantities,
	"scheduler.v1.ResourceSnapshot.available":   quantities,
	"scheduler.v1.ResourceSnapshot.numa_nodes":  listOf(256, message),
	"scheduler.v1.ResourceSnapshot.devices":     listOf(devices.MaxDevices, message),
	"scheduler.v1.ResourceSnapshot.allocations": listOf(4*MaxGrants, message),

	"scheduler.v1.NUMASnapshot.id":                   nodeID,
	"scheduler.v1.NUMASnapshot.free_cpu_millicores":  between(0, int64(resource.MaxCPU)),
	"scheduler.v1.NUMASnapshot.free_memory_bytes":    memory,
	"scheduler.v1.NUMASnapshot.free_whole_cores":     between(0, resource.MaxCores),
	"scheduler.v1.NUMASnapshot.free_hugepages_bytes": dictOf(16, id(maxID), memory),

	"scheduler.v1.DeviceSnapshot.index":         gpuIndex,
	"scheduler.v1.DeviceSnapshot.uuid":          gpuUUID,
	"scheduler.v1.DeviceSnapshot.model":         prose(maxID),
	"scheduler.v1.DeviceSnapshot.free_milli":    between(0, int64(resource.WholeDevice)),
	"scheduler.v1.DeviceSnapshot.health":        id(32),
	"scheduler.v1.DeviceSnapshot.health_reason": prose(MaxReason),
	"scheduler.v1.DeviceSnapshot.mig_instances": listOf(devices.MaxMIGInstances, message),

	"scheduler.v1.MIGSnapshot.uuid":         migUUID,
	"scheduler.v1.MIGSnapshot.profile":      migProfile,
	"scheduler.v1.MIGSnapshot.memory_bytes": memory,
	"scheduler.v1.MIGSnapshot.free":         boolean,

	"scheduler.v1.AllocationSnapshot.transaction":     transaction,
	"scheduler.v1.AllocationSnapshot.unit":            unitUID,
	"scheduler.v1.AllocationSnapshot.member":          memberIndex,
	"scheduler.v1.AllocationSnapshot.state":           name(maxName),
	"scheduler.v1.AllocationSnapshot.cpus":            cpuList,
	"scheduler.v1.AllocationSnapshot.gpu_uuids":       listOf(devices.MaxDevices, gpuUUID),
	"scheduler.v1.AllocationSnapshot.memory_bytes":    memory,
	"scheduler.v1.AllocationSnapshot.hugepages_bytes": dictOf(16, id(maxID), memory),
	"scheduler.v1.AllocationSnapshot.mig_uuids":       listOf(maxMIG, migUUID),
}

// quantities are amounts as people write them, by the names of resources.
var quantities = dictOf(256, id(maxID), prose(64))
