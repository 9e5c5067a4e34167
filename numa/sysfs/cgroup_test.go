package sysfs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource/bitset"
)

func TestAllowedCPUsOfCapturedCgroups(t *testing.T) {
	const (
		status, cgroup, cpuset     = "proc/self/status", "proc/self/cgroup", "proc/self/cpuset"
		mounts, mountinfo          = "proc/mounts", "proc/self/mountinfo"
		unified, v1, legacy        = "sys/fs/cgroup", "sys/fs/cgroup/cpuset", "dev/cpuset"
		mountUnified               = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
		mountV1                    = "tmpfs /sys/fs/cgroup tmpfs ro 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
		mountNoprefix, mountCpuset = "none /dev/cpuset cgroup rw,cpuset,noprefix 0 0\n", "cpuset /dev/cpuset cpuset rw 0 0\n"
		groupsV1                   = "5:memory:/x\n4:cpu,cpuset:/jobs/7\n0::/user.slice\n"
	)
	tests := map[string]struct {
		host       tree
		want       string // "" where the tree does not tell
		wantWarned []string
	}{
		"the kernel's own conclusion comes first": {
			tree{status: "Cpus_allowed_list:\t1\n", cgroup: "0::/a\n", mounts: mountUnified, unified + "/a/cpuset.cpus.effective": "0\n"}, "1", nil,
		},
		"memory that the status denies": {
			tree{status: "Cpus_allowed_list:\t1\nMems_allowed_list:\t0\n", nodeDir + "/has_memory": "0-1\n"}, "1", []string{status},
		},
		"a cgroup of the unified hierarchy": {
			tree{cgroup: "0::/user.slice/a\n", mounts: mountUnified, unified + "/user.slice/a/cpuset.cpus.effective": "0-3\n"}, "0-3", nil,
		},
		"a cgroup without the controller is bound by the one above": {
			tree{cgroup: "0::/user.slice/a/b\n", mounts: mountUnified, unified + "/user.slice/cpuset.cpus.effective": "0-5\n"}, "0-5", nil,
		},
		"no cgroup has the controller": {tree{cgroup: "0::/a\n", mounts: mountUnified}, "", nil},
		"a cgroup of version 1": {
			tree{cgroup: groupsV1, mounts: mountV1, v1 + "/jobs/7/cpuset.cpus": "4-7\n", v1 + "/cpuset.cpus": "0-7\n"}, "4-7", nil,
		},
		"what is in force comes before what was asked for": {
			tree{cgroup: groupsV1, mounts: mountV1, v1 + "/jobs/7/cpuset.cpus": "0-7\n", v1 + "/jobs/7/cpuset.effective_cpus": "4-5\n"}, "4-5", nil,
		},
		"a cpuset of its own file system": {
			tree{cpuset: "/torque/51\n", mounts: mountCpuset, legacy + "/torque/51/cpus": "0,2,4\n"}, "0,2,4", nil,
		},
		"a cgroup whose files have no prefix": {
			tree{cpuset: "/torque/51\n", mounts: mountNoprefix, legacy + "/torque/51/cpus": "0,2,4\n"}, "0,2,4", nil,
		},
		"memory that the cpuset denies": {
			tree{
				cpuset: "/a\n", mounts: mountCpuset, legacy + "/a/cpus": "0\n", legacy + "/a/mems": "1\n", nodeDir + "/online": "0-1\n",
			}, "0", []string{legacy + "/a/mems"},
		},
		"a container sees its cgroup as the mount": {
			tree{
				cgroup: "0::/docker/f00\n", mountinfo: "36 35 0:30 /docker/f00 /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
				unified + "/cpuset.cpus.effective": "2-3\n",
			}, "2-3", nil,
		},
		"a cgroup outside its namespace is bound by the mount": {
			tree{cgroup: "0::/../../other\n", mounts: mountUnified, unified + "/cpuset.cpus.effective": "2-3\n"}, "2-3", nil,
		},
		"a mount point with a blank": {
			tree{cpuset: "/\n", mounts: "none /dev/cpu\\040set cpuset rw 0 0\n", "dev/cpu set/cpus": "3\n"}, "3", nil,
		},
		"of two mounts of one flavour, the first": {
			tree{
				cpuset: "/a\n", mounts: mountCpuset + "cpuset /mnt/other cpuset rw 0 0\n",
				legacy + "/a/cpus": "0\n", "mnt/other/a/cpus": "0-7\n",
			}, "0", nil,
		},
		"a list that is none": {
			tree{cgroup: "0::/a\n", mounts: mountUnified, unified + "/a/cpuset.cpus.effective": "all\n"}, "", []string{unified + "/a/cpuset.cpus.effective"},
		},
		"a list of nothing": {
			tree{cgroup: "0::/a\n", mounts: mountUnified, unified + "/a/cpuset.cpus.effective": "\n"}, "", []string{unified + "/a/cpuset.cpus.effective"},
		},
		"a table of cgroups without the hierarchy": {tree{cgroup: "0::/a\n", mounts: mountV1}, "", []string{cgroup}},
		"a cpuset that is no path":                 {tree{cpuset: "torque\n", mounts: mountCpuset}, "", []string{cpuset}},
		"a mount at the root is none":              {tree{cgroup: "0::/\n", mounts: "cgroup2 / cgroup2 rw 0 0\n"}, "", nil},
		"a table of mounts that is not text":       {tree{cgroup: "0::/\n", mounts: "\xff\n"}, "", []string{mounts}},
		"a status without the list":                {tree{status: "Name:\tx\n"}, "", []string{status}},
		"nothing":                                  {tree{}, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cpus, ok, warnings := AllowedCPUs(test.host.fs())
			if ok != (test.want != "") || cpus.String() != test.want {
				t.Errorf("AllowedCPUs = %q, %t, want %q; %v", cpus, ok, test.want, warnings)
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

func TestIsolatedCPUsOfSeveralSources(t *testing.T) {
	const isolated, cmdline, partitions = cpuDir + "/isolated", "proc/cmdline", "sys/fs/cgroup/cpuset.cpus.isolated"
	tests := map[string]struct {
		host tree
		want string
		warn int
	}{
		"the kernel's list":                            {twoNodes().with(tree{isolated: "2-3\n", cmdline: "isolcpus=7\n"}), "2-3", 0},
		"an old kernel's command line":                 {twoNodes().with(tree{cmdline: "ro isolcpus=6-7\n"}, isolated), "6-7", 0},
		"flags of which none isolates from scheduling": {twoNodes().with(tree{cmdline: "isolcpus=managed_irq,2-3\n"}, isolated), "", 0},
		"an old kernel without isolated CPUs":          {twoNodes().with(tree{cmdline: "ro quiet\n"}, isolated), "", 0},
		"CPUs without timer ticks are not isolated":    {twoNodes().with(tree{cmdline: "nohz_full=1-7\n", cpuDir + "/nohz_full": "1-7\n"}, isolated), "", 0},
		"a command line that cannot be read":           {twoNodes().with(tree{cmdline: "isolcpus=x-\n"}, isolated), "", 2},
		"neither":                                      {twoNodes().with(nil, isolated), "", 1},
		"isolated partitions of cgroups are added":     {twoNodes().with(tree{isolated: "2\n", partitions: "5-6\n"}), "2,5-6", 0},
		"a list of isolated partitions that is broken": {twoNodes().with(tree{isolated: "2\n", partitions: "5-\n"}), "2", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, warnings, err := Read(test.host.fs())
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, c := range topology.CPUs {
				if c.Isolated {
					got = append(got, c.ID)
				}
			}
			if list := bitset.Of(got...).String(); list != test.want || len(warnings) != test.warn {
				t.Errorf("isolated %q, warnings %v, want %q and %d", list, warnings, test.want, test.warn)
			}
		})
	}
}
