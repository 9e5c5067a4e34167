package agent

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
)

// OverLimits lists where the host offers more than the cgroup of this process
// may use, a sentence each, with the numbers and the setting that mends it.
// Allocations that run in this cgroup, as in a container with the agent, cannot
// use more.
func (d Discovered) OverLimits(reserved fit.Reserved) []string {
	host, err := fit.NewHost(d.Topology, d.Inventory, reserved)
	if err != nil {
		return nil // New reports the error
	}
	return overLimits(d.Limits, host.Allocatable())
}

func overLimits(l sysfs.Limits, offered resource.Vector) (list []string) {
	if memory := resource.Bytes(offered[resource.Memory]); l.Memory > 0 && l.Memory < memory {
		list = append(list, fmt.Sprintf("the agent's cgroup may use %s of memory (%s), and the node offers %s: raise reserved.memory by %s, or raise the limit",
			megabytes(l.Memory), l.MemoryFile, megabytes(memory), megabytes(memory-l.Memory+(1<<20-1))))
	}
	if cpu := offered[resource.CPU]; l.CPU > 0 && int64(l.CPU) < cpu {
		list = append(list, fmt.Sprintf("the agent's cgroup may use %s CPUs (%s), and the node offers %s: reserve %d more CPUs by reserved.cpus, or raise the limit",
			cpus(int64(l.CPU)), l.CPUFile, cpus(cpu), (cpu-int64(l.CPU)+int64(resource.WholeCPU)-1)/int64(resource.WholeCPU)))
	}
	return list
}

// megabytes prints bytes, rounded down to a MiB where there is one.
func megabytes(b resource.Bytes) string {
	if b >= 1<<20 {
		b &^= 1<<20 - 1
	}
	return resource.FormatBytes(b)
}

// cpus prints millicores as processors: "4", "1.5".
func cpus(milli int64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%03d", milli/1000, milli%1000), "0"), ".")
}

// cgroupLimited is the condition CgroupLimited: the node offers more than the
// agent's cgroup may use.
func (a *Agent) cgroupLimited(v *ledger.View) (c rpc.Condition, ok bool) {
	over := overLimits(a.deps.Discovered.Limits, v.Host.Allocatable())
	if over == nil {
		return c, false
	}
	return rpc.Condition{Type: "CgroupLimited", True: true, Reason: "OffersMoreThanCgroup", Message: strings.Join(over, "; ")}, true
}
