package sysfs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitsOfCapturedCgroups(t *testing.T) {
	const (
		cgroup, mounts, mountinfo = "proc/self/cgroup", "proc/mounts", "proc/self/mountinfo"
		unified                   = "sys/fs/cgroup"
		memoryV1, cpuV1           = "sys/fs/cgroup/memory", "sys/fs/cgroup/cpu,cpuacct"
		mountUnified              = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
		mountV1                   = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
		groupsV1                  = "5:memory:/docker/7\n4:cpu,cpuacct:/docker/7\n0::/user.slice\n"
		none                      = "9223372036854771712\n"
	)
	inUnified := func(files tree) tree {
		return tree{cgroup: "0::/a/b\n", mounts: mountUnified}.with(files)
	}
	inV1 := func(files tree) tree { return tree{cgroup: groupsV1, mounts: mountV1}.with(files) }
	tests := map[string]struct {
		host       tree
		want       Limits
		wantWarned []string
	}{
		"a limit on both": {
			inUnified(tree{unified + "/a/b/memory.max": "1073741824\n", unified + "/a/b/cpu.max": "150000 100000\n"}),
			Limits{1 << 30, unified + "/a/b/memory.max", 1500, unified + "/a/b/cpu.max"}, nil,
		},
		"the cgroup above has the smaller limit": {
			inUnified(tree{unified + "/a/b/memory.max": "max\n", unified + "/a/memory.max": "4096\n", unified + "/a/b/cpu.max": "800000 100000\n", unified + "/a/cpu.max": "25000 50000\n"}),
			Limits{4096, unified + "/a/memory.max", 500, unified + "/a/cpu.max"}, nil,
		},
		"no limits": {inUnified(tree{unified + "/a/b/memory.max": "max\n", unified + "/a/b/cpu.max": "max 100000\n"}), Limits{}, nil},
		"a container sees its cgroup as the mount": {
			tree{
				cgroup: "0::/\n", mountinfo: "36 35 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
				unified + "/memory.max": "8589934592\n", unified + "/cpu.max": "400000 100000\n",
			}, Limits{8 << 30, unified + "/memory.max", 4000, unified + "/cpu.max"}, nil,
		},
		"version 1": {
			inV1(tree{memoryV1 + "/docker/7/memory.limit_in_bytes": "2147483648\n", cpuV1 + "/docker/7/cpu.cfs_quota_us": "200000\n", cpuV1 + "/docker/7/cpu.cfs_period_us": "100000\n"}),
			Limits{2 << 30, memoryV1 + "/docker/7/memory.limit_in_bytes", 2000, cpuV1 + "/docker/7/cpu.cfs_quota_us"}, nil,
		},
		"version 1 without limits": {
			inV1(tree{memoryV1 + "/docker/7/memory.limit_in_bytes": none, cpuV1 + "/docker/7/cpu.cfs_quota_us": "-1\n", cpuV1 + "/docker/7/cpu.cfs_period_us": "100000\n"}),
			Limits{}, nil,
		},
		"version 1 in a container": {
			tree{
				cgroup: groupsV1, mountinfo: "36 35 0:30 /docker/7 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
				memoryV1 + "/memory.limit_in_bytes": "1048576\n",
			}, Limits{Memory: 1 << 20, MemoryFile: memoryV1 + "/memory.limit_in_bytes"}, nil,
		},
		"less than a thousandth of a processor": {
			inUnified(tree{unified + "/a/b/cpu.max": "1 1000000\n"}), Limits{CPU: 1, CPUFile: unified + "/a/b/cpu.max"}, nil,
		},
		"more processors than any host has": {inUnified(tree{unified + "/a/b/cpu.max": "9223372036854775807 1\n"}), Limits{}, nil},
		"a memory limit that is no number": {
			inUnified(tree{unified + "/a/b/memory.max": "much\n", unified + "/a/memory.max": "4096\n"}), Limits{Memory: 4096, MemoryFile: unified + "/a/memory.max"}, []string{unified + "/a/b/memory.max"},
		},
		"a quota that is no number":                {inUnified(tree{unified + "/a/b/cpu.max": "x 100000\n"}), Limits{}, []string{unified + "/a/b/cpu.max"}},
		"a quota without its period":               {inUnified(tree{unified + "/a/b/cpu.max": "100000\n"}), Limits{}, []string{unified + "/a/b/cpu.max"}},
		"a period of zero":                         {inUnified(tree{unified + "/a/b/cpu.max": "100000 0\n"}), Limits{}, []string{unified + "/a/b/cpu.max"}},
		"a table of cgroups without the hierarchy": {tree{cgroup: "3:cpuset:/\n", mounts: mountUnified}, Limits{}, nil},
		"a table of mounts that is not text":       {tree{cgroup: "0::/\n", mounts: "\xff\n"}, Limits{}, []string{mounts}},
		"nothing":                                  {tree{}, Limits{}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, warnings := ReadLimits(test.host.fs())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			var warned []string
			for _, w := range warnings {
				warned = append(warned, w.Path)
			}
			if diff := cmp.Diff(test.wantWarned, warned); diff != "" {
				t.Errorf("warned paths (-want +got):\n%s\n%v", diff, warnings)
			}
		})
	}
}
