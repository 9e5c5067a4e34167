package sysfs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadsAHealthyHost(t *testing.T) {
	topology, warnings, err := Read(twoNodes().fs())
	if err != nil || warnings != nil {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	want := []string{
		`node 0 cpus "0-1,4-5" memory 4Gi only=false pages map[2048:512 1048576:0]`,
		`node 1 cpus "2-3,6-7" memory 8Gi only=false pages map[2048:512 1048576:0]`,
		`cpu 0 socket 0 core 0 l3 0 node 0 siblings "0,4" online=true isolated=false`,
		`cpu 1 socket 0 core 1 l3 0 node 0 siblings "1,5" online=true isolated=false`,
		`cpu 2 socket 1 core 0 l3 1 node 1 siblings "2,6" online=true isolated=false`,
		`cpu 3 socket 1 core 1 l3 1 node 1 siblings "3,7" online=true isolated=false`,
		`cpu 4 socket 0 core 0 l3 0 node 0 siblings "0,4" online=true isolated=false`,
		`cpu 5 socket 0 core 1 l3 0 node 0 siblings "1,5" online=true isolated=false`,
		`cpu 6 socket 1 core 0 l3 1 node 1 siblings "2,6" online=true isolated=false`,
		`cpu 7 socket 1 core 1 l3 1 node 1 siblings "3,7" online=true isolated=false`,
		`distances [[10 21] [21 10]]`,
	}
	if diff := cmp.Diff(want, transcript(topology)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each case changes the healthy host; want lists the lines that differ then.
func TestReadsUnusualAndBrokenHosts(t *testing.T) {
	tests := map[string]struct {
		put        tree
		gone       []string
		want       []string
		wantWarned []string
	}{
		"an offline CPU keeps its node by its own link and loses its core": {
			put:  tree{cpuDir + "/online": "0-6\n", cpuDir + "/offline": "7\n", nodePath(1, "/cpulist"): "2-3,6\n", cpuPath(3, "/topology/core_cpus_list"): "3\n"},
			gone: []string{cpuPath(7, "/topology"), cpuPath(7, "/cache")},
			want: []string{
				`node 1 cpus "2-3,6" memory 8Gi only=false pages map[2048:512 1048576:0]`,
				`cpu 3 socket 1 core 1 l3 1 node 1 siblings "3" online=true isolated=false`,
				`cpu 7 socket -1 core -1 l3 1 node 1 siblings "7" online=false isolated=false`,
			},
		},
		"isolated CPUs are marked": {
			put: tree{cpuDir + "/isolated": "3,7\n"},
			want: []string{
				`cpu 3 socket 1 core 1 l3 1 node 1 siblings "3,7" online=true isolated=true`,
				`cpu 7 socket 1 core 1 l3 1 node 1 siblings "3,7" online=true isolated=true`,
			},
		},
		"sparse node numbers and a memory-only node": {
			put: tree{
				nodeDir + "/online": "0-1,250\n", nodeDir + "/has_memory": "0-1,250\n",
				nodePath(0, "/distance"): "10 21 80\n", nodePath(1, "/distance"): "21 10 80\n", nodePath(250, "/distance"): "80 80 10\n",
				nodePath(250, "/cpulist"): "\n", nodePath(250, "/meminfo"): "Node 250 MemTotal: 15728640 kB\n",
			},
			want: []string{
				`node 250 cpus "" memory 15Gi only=true pages map[]`,
				`distances [[10 21 80] [21 10 80] [80 80 10]]`,
			},
		},
		"a node without memory": {
			put:  tree{nodeDir + "/has_memory": "0\n", nodePath(1, "/meminfo"): "Node 1 MemTotal: 0 kB\n"},
			gone: []string{nodePath(1, "/hugepages")},
			want: []string{`node 1 cpus "2-3,6-7" memory 0Gi only=false pages map[]`},
			// The host's own meminfo still counts 12 GiB.
			wantWarned: []string{"proc/meminfo"},
		},
		"masks stand in for lists": {
			put: tree{
				nodePath(0, "/cpumap"): "00000000,00000033\n", cpuPath(0, "/topology/thread_siblings"): "11\n",
				cpuPath(1, "/cache/index3/shared_cpu_map"): "33\n",
			},
			gone: []string{nodePath(0, "/cpulist"), cpuPath(0, "/topology/core_cpus_list"), cpuPath(1, "/cache/index3/shared_cpu_list")},
		},
		"no caches are shown, as on many virtual machines": {
			gone: []string{
				cpuPath(0, "/cache"), cpuPath(1, "/cache"), cpuPath(2, "/cache"), cpuPath(3, "/cache"),
				cpuPath(4, "/cache"), cpuPath(5, "/cache"), cpuPath(6, "/cache"), cpuPath(7, "/cache"),
			},
			want: []string{
				`cpu 0 socket 0 core 0 l3 -1 node 0 siblings "0,4" online=true isolated=false`,
				`cpu 1 socket 0 core 1 l3 -1 node 0 siblings "1,5" online=true isolated=false`,
				`cpu 2 socket 1 core 0 l3 -1 node 1 siblings "2,6" online=true isolated=false`,
				`cpu 3 socket 1 core 1 l3 -1 node 1 siblings "3,7" online=true isolated=false`,
				`cpu 4 socket 0 core 0 l3 -1 node 0 siblings "0,4" online=true isolated=false`,
				`cpu 5 socket 0 core 1 l3 -1 node 0 siblings "1,5" online=true isolated=false`,
				`cpu 6 socket 1 core 0 l3 -1 node 1 siblings "2,6" online=true isolated=false`,
				`cpu 7 socket 1 core 1 l3 -1 node 1 siblings "3,7" online=true isolated=false`,
			},
		},
		"the newline of an old kernel is followed by a NUL": {
			put: tree{nodeDir + "/has_cpu": "0-1\n\x00"},
		},
		"no list of present CPUs: the folders tell": {
			gone:       []string{cpuDir + "/present"},
			wantWarned: []string{cpuDir + "/present"},
		},
		"a list of present CPUs without end: the folders tell": {
			put:        tree{cpuDir + "/present": "0-99999999999999999999\n"},
			wantWarned: []string{cpuDir + "/present"},
		},
		"no list of online CPUs: each CPU's files tell": {
			put:        tree{cpuPath(7, "/online"): "0\n"},
			gone:       []string{cpuDir + "/online"},
			want:       []string{`cpu 7 socket -1 core -1 l3 1 node 1 siblings "3,7" online=false isolated=false`},
			wantWarned: []string{cpuDir + "/online"},
		},
		"a CPU listed online and offline is what its own file says": {
			put:        tree{cpuDir + "/offline": "6-7\n", cpuPath(7, "/online"): "0\n", cpuPath(6, "/online"): "1\n"},
			want:       []string{`cpu 7 socket -1 core -1 l3 1 node 1 siblings "3,7" online=false isolated=false`},
			wantWarned: []string{cpuDir + "/offline"},
		},
		"two CPUs disagree about their core": {
			put: tree{cpuPath(4, "/topology/core_cpus_list"): "1,4-5\n"},
			want: []string{
				`cpu 0 socket 0 core 0 l3 0 node 0 siblings "0" online=true isolated=false`,
				`cpu 1 socket 0 core 1 l3 0 node 0 siblings "1" online=true isolated=false`,
				`cpu 4 socket 0 core 0 l3 0 node 0 siblings "4" online=true isolated=false`,
				`cpu 5 socket 0 core 1 l3 0 node 0 siblings "5" online=true isolated=false`,
			},
			wantWarned: []string{cpuPath(4, "/topology/core_cpus_list")},
		},
		"a CPU that says nothing joins the core that names it": {
			gone:       []string{cpuPath(4, "/topology/core_cpus_list")},
			wantWarned: []string{cpuDir},
		},
		"a CPU that leaves itself out is not believed": {
			put:        tree{cpuPath(4, "/topology/core_cpus_list"): "5\n"},
			wantWarned: []string{cpuPath(4, "/topology"), cpuPath(4, "/topology/core_cpus_list")},
		},
		"numbers that are no numbers": {
			put:        tree{cpuPath(0, "/topology/physical_package_id"): "zero\n", cpuPath(0, "/topology/core_id"): "-2\n"},
			want:       []string{`cpu 0 socket -1 core -1 l3 0 node 0 siblings "0,4" online=true isolated=false`},
			wantWarned: []string{cpuPath(0, "/topology/core_id"), cpuPath(0, "/topology/physical_package_id")},
		},
		"the platform does not tell the package": {
			put:  tree{cpuPath(0, "/topology/physical_package_id"): "-1\n"},
			want: []string{`cpu 0 socket -1 core 0 l3 0 node 0 siblings "0,4" online=true isolated=false`},
		},
		"two nodes list the same CPU": {
			put: tree{nodePath(1, "/cpulist"): "1-3,6-7\n"},
			want: []string{
				`node 1 cpus "1-3,6-7" memory 8Gi only=false pages map[2048:512 1048576:0]`,
				`cpu 1 socket 0 core 1 l3 0 node -1 siblings "1,5" online=true isolated=false`,
			},
			wantWarned: []string{nodeDir},
		},
		"a node's CPUs cannot be read: the CPUs' links tell": {
			gone:       []string{nodePath(1, "/cpulist")},
			wantWarned: []string{nodePath(1, "/cpulist"), nodePath(1, "/cpumap")},
		},
		"nothing tells a node's CPUs, but has_cpu says there are some: its memory stays ordinary": {
			gone: []string{
				nodePath(1, "/cpulist"), cpuPath(2, "/node1"), cpuPath(3, "/node1"), cpuPath(6, "/node1"), cpuPath(7, "/node1"),
			},
			want: []string{
				`node 1 cpus "" memory 8Gi only=false pages map[2048:512 1048576:0]`,
				`cpu 2 socket 1 core 0 l3 1 node -1 siblings "2,6" online=true isolated=false`,
				`cpu 3 socket 1 core 1 l3 1 node -1 siblings "3,7" online=true isolated=false`,
				`cpu 6 socket 1 core 0 l3 1 node -1 siblings "2,6" online=true isolated=false`,
				`cpu 7 socket 1 core 1 l3 1 node -1 siblings "3,7" online=true isolated=false`,
			},
			wantWarned: []string{nodeDir, nodePath(1, "/cpulist"), nodePath(1, "/cpumap")},
		},
		"a node without a folder takes its distance column with it": {
			put: tree{
				nodeDir + "/online": "0-2\n", nodePath(0, "/distance"): "10 21 30\n", nodePath(2, "/distance"): "30 40 10\n",
				nodePath(2, "/cpulist"): "2-3,6-7\n", nodePath(2, "/meminfo"): "Node 2 MemTotal: 1048576 kB\n",
				nodeDir + "/has_cpu": "0,2\n", nodeDir + "/has_memory": "0,2\n",
			},
			gone: []string{nodePath(1, "")},
			want: []string{
				`node 2 cpus "2-3,6-7" memory 1Gi only=false pages map[]`,
				`cpu 2 socket 1 core 0 l3 1 node 2 siblings "2,6" online=true isolated=false`,
				`cpu 3 socket 1 core 1 l3 1 node 2 siblings "3,7" online=true isolated=false`,
				`cpu 6 socket 1 core 0 l3 1 node 2 siblings "2,6" online=true isolated=false`,
				`cpu 7 socket 1 core 1 l3 1 node 2 siblings "3,7" online=true isolated=false`,
				`distances [[10 30] [30 10]]`,
			},
			wantWarned: []string{nodeDir + "/online"},
		},
		"one distance row is short: all distances are unknown": {
			put:        tree{nodePath(1, "/distance"): "21\n"},
			want:       []string{`distances []`},
			wantWarned: []string{nodePath(1, "/distance")},
		},
		"no distance files": {
			gone:       []string{nodePath(0, "/distance"), nodePath(1, "/distance")},
			want:       []string{`distances []`},
			wantWarned: []string{nodePath(0, "/distance")},
		},
		"memory that overflows, huge pages that are no number": {
			put: tree{nodePath(0, "/meminfo"): "Node 0 MemTotal: 99999999999999999999 kB\n", nodePath(0, "/hugepages/hugepages-2048kB/nr_hugepages"): "-3\n"},
			want: []string{
				`node 0 cpus "0-1,4-5" memory 0Gi only=false pages map[1048576:0]`,
			},
			wantWarned: []string{nodePath(0, "/hugepages/hugepages-2048kB/nr_hugepages"), nodePath(0, "/meminfo")},
		},
		"a summary that the nodes contradict": {
			put:        tree{nodeDir + "/has_memory": "1\n"},
			wantWarned: []string{nodeDir + "/has_memory"},
		},
		"text that is not UTF-8": {
			put:        tree{cpuDir + "/isolated": "\xff\xfe\n", cpuDir + "/possible": "\x80\n"},
			wantWarned: []string{cpuDir + "/isolated", cpuDir + "/possible"},
		},
		"a folder where a file should be": {
			put:        tree{cpuDir + "/isolated/x": "0\n"},
			gone:       []string{cpuDir + "/isolated"},
			wantWarned: []string{cpuDir + "/isolated"},
		},
		"a file of 70 KiB": {
			put:        tree{cpuDir + "/isolated": strings.Repeat("0,", 35<<10)},
			wantWarned: []string{cpuDir + "/isolated"},
		},
	}
	healthy, _, err := Read(twoNodes().fs())
	if err != nil {
		t.Fatal(err)
	}
	before := transcript(healthy)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, warnings, err := Read(twoNodes().with(test.put, test.gone...).fs())
			if err != nil {
				t.Fatal(err)
			}
			if err := topology.Validate(); err != nil {
				t.Fatal(err)
			}
			var changed, warned []string
			for _, line := range transcript(topology) {
				if !slices.Contains(before, line) {
					changed = append(changed, line)
				}
			}
			for _, w := range warnings {
				warned = append(warned, w.Path)
			}
			slices.Sort(warned)
			if diff := cmp.Diff(test.want, changed); diff != "" {
				t.Errorf("changed lines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantWarned, warned); diff != "" {
				t.Errorf("warned paths (-want +got):\n%s\n%v", diff, warnings)
			}
		})
	}
}

func TestHostWithoutNUMAHasOneNodeWithEverything(t *testing.T) {
	host := twoNodes().with(tree{"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "7\n"}, nodeDir)
	topology, warnings, err := Read(host.fs())
	if err != nil || warnings != nil {
		t.Fatalf("Read: %v, warnings %v", err, warnings)
	}
	lines := transcript(topology)
	want := []string{`node 0 cpus "0-7" memory 12Gi only=false pages map[2048:7]`, `distances []`}
	if diff := cmp.Diff(want, []string{lines[0], lines[len(lines)-1]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range topology.CPUs {
		if c.NUMA != 0 {
			t.Errorf("cpu %d is on node %d, want 0", c.ID, c.NUMA)
		}
	}
}

func TestOfflineCPUWithoutNodeLeavesAMemoryOnlyNodeInDoubt(t *testing.T) {
	host := twoNodes().with(tree{
		cpuDir + "/online": "0-1,4-5\n", cpuDir + "/offline": "2-3,6-7\n",
		nodePath(1, "/cpulist"): "\n", nodeDir + "/has_cpu": "0\n",
	}, cpuPath(2, "/node1"), cpuPath(3, "/node1"), cpuPath(6, "/node1"), cpuPath(7, "/node1"))
	topology, warnings, err := Read(host.fs())
	if err != nil {
		t.Fatal(err)
	}
	if !topology.Nodes[1].MemoryOnly {
		t.Error("node 1 is not memory only")
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Problem, "offline cpus 2-3,6-7") {
		t.Errorf("warnings %v, want one about the offline CPUs", warnings)
	}
}

func TestRefusesATreeWithoutUsableCPUs(t *testing.T) {
	tests := map[string]struct {
		host tree
		want string
	}{
		"empty tree":             {tree{}, "no CPU found"},
		"not a sysfs":            {tree{"etc/passwd": ""}, "holds sys/"},
		"every CPU is offline":   {everyCPUOffline(), "none of the present cpus 0-7 is online"},
		"present is empty":       {tree{cpuDir + "/present": "\n"}, "names no CPU"},
		"CPUs out of all bounds": {tree{cpuDir + "/present": "9000-9100\n"}, "names no CPU"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, _, err := Read(test.host.fs())
			if err == nil || topology != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Read = %v, %v, want an error with %q", topology, err, test.want)
			}
		})
	}
}

// everyCPUOffline is a tree in which each CPU says that it is offline.
func everyCPUOffline() tree {
	host := twoNodes().with(tree{cpuDir + "/online": "\n"})
	for cpu := range 8 {
		host[cpuPath(cpu, "/online")] = "0\n"
	}
	return host
}
