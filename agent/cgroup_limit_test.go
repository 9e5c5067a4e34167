package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
)

func TestAnAgentSaysThatItOffersMoreThanItsCgroup(t *testing.T) {
	const gib = 1 << 30
	offered := resource.Vector{resource.Memory: 126 * gib, resource.CPU: 16_000}
	tests := map[string]struct {
		limits sysfs.Limits
		want   []string
	}{
		"no limit":                    {sysfs.Limits{}, nil},
		"limits as great as the host": {sysfs.Limits{Memory: 126 * gib, MemoryFile: "m", CPU: 16_000, CPUFile: "c"}, nil},
		"a container of 8 GiB": {
			sysfs.Limits{Memory: 8 * gib, MemoryFile: "sys/fs/cgroup/memory.max"},
			[]string{"the agent's cgroup may use 8Gi of memory (sys/fs/cgroup/memory.max), and the node offers 126Gi: raise reserved.memory by 118Gi, or raise the limit"},
		},
		"a limit that is no whole MiB": {
			sysfs.Limits{Memory: 8*gib - 1, MemoryFile: "m"},
			[]string{"the agent's cgroup may use 8191Mi of memory (m), and the node offers 126Gi: raise reserved.memory by 120833Mi, or raise the limit"},
		},
		"a container of 1.5 CPUs": {
			sysfs.Limits{CPU: 1500, CPUFile: "sys/fs/cgroup/cpu.max"},
			[]string{"the agent's cgroup may use 1.5 CPUs (sys/fs/cgroup/cpu.max), and the node offers 16: reserve 15 more CPUs by reserved.cpus, or raise the limit"},
		},
		"both": {
			sysfs.Limits{Memory: 4096, MemoryFile: "m", CPU: 1, CPUFile: "c"},
			[]string{
				"the agent's cgroup may use 4Ki of memory (m), and the node offers 126Gi: raise reserved.memory by 126Gi, or raise the limit",
				"the agent's cgroup may use 0.001 CPUs (c), and the node offers 16: reserve 16 more CPUs by reserved.cpus, or raise the limit",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, overLimits(test.limits, offered)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
