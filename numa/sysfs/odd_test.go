package sysfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// manyNodes is a host of so many nodes with one CPU and 1 GiB each.
func manyNodes(nodes int) machine {
	m := machine{
		cpus: nodes, socket: div(1), core: func(int) int { return 0 }, threads: by(1),
		nodes: map[int]string{}, memory: map[int]int{}, rows: map[int]string{},
	}
	for id := range nodes {
		row := make([]string, nodes)
		for other := range row {
			row[other] = []string{"20", "10"}[max(0, 1-max(id-other, other-id))]
		}
		m.nodes[id], m.memory[id], m.rows[id] = strconv.Itoa(id), 1<<20, strings.Join(row, " ")
	}
	return m
}

// cpuFiles is a file of each CPU's topology folder, or of its own.
func cpuFiles(cpus int, rest string, content func(cpu int) string) tree {
	t := tree{}
	for cpu := range cpus {
		t[cpuPath(cpu, rest)] = content(cpu)
	}
	return t
}

// siblingsOf draws packages as core_siblings_list.
func siblingsOf(cpus int, mates func(cpu int) []int) tree {
	return cpuFiles(cpus, "/topology/core_siblings_list", func(cpu int) string { return bitset.Of(mates(cpu)...).String() + "\n" })
}

// TestOddHostsAreUsableAndSaySo: each host has one oddity that real captures
// have too; hosts are read, and the warnings hold the words of wantWarned.
func TestOddHostsAreUsableAndSaySo(t *testing.T) {
	tests := map[string]struct {
		host       tree
		want       []string // facts of the topology, see oddFacts
		wantWarned []string
	}{
		"an Itanium whose CPUs' online files are empty, without any list": {
			host: machine{
				cpus: 8, kernel: old, socket: div(2), core: func(int) int { return 0 }, threads: by(1), memory: map[int]int{-1: 9},
			}.tree().with(cpuFiles(8, "/online", func(int) string { return "" })),
			want:       []string{"8 online", "4 sockets"},
			wantWarned: []string{`cpu0/online: "" is neither 0 nor 1; cpus 0-7 have such a file`, "cpu/present: file does not exist", "cpu/online: file does not exist"},
		},
		"an online list that is empty beside CPUs that say nothing of themselves": {
			host:       twoNodes().with(tree{cpuDir + "/online": "\n"}),
			want:       []string{"8 online"},
			wantWarned: []string{"cpu/online: names no CPU that is present"},
		},
		"an online list of other CPUs": {
			host:       twoNodes().with(tree{cpuDir + "/online": "100-200\n"}),
			want:       []string{"8 online"},
			wantWarned: []string{"cpu/online: names no CPU that is present"},
		},
		"a list of present CPUs that have no folder, beside others that have": {
			host:       twoNodes().with(tree{cpuDir + "/present": "100\n"}),
			want:       []string{"8 online"},
			wantWarned: []string{"cpu/present: names cpus 100, none of which has a folder; the CPUs that have a folder are taken instead: 0-7"},
		},
		"300 nodes": {
			host:       manyNodes(300).tree(),
			want:       []string{"256 nodes", "300 online", "cpus 256-299 on no node"},
			wantWarned: []string{"shows 300 nodes, more than 256; the last 44, from node 256 on, are left out", "no node lists cpus 256-299"},
		},
		"a POWER without package numbers, whose core_siblings tell": {
			host: machine{
				cpus: 64, kernel: middle, socket: func(int) int { return -1 }, core: div(4), threads: by(4), memory: map[int]int{-1: 9},
				change: siblingsOf(64, by(8)),
			}.tree(),
			want: []string{"8 sockets", "16 cores"},
		},
		"package numbers of -1 on a kernel that draws each CPU as its own package": {
			host: machine{
				cpus: 4, kernel: middle, socket: func(int) int { return -1 }, core: div(1), threads: by(1), memory: map[int]int{-1: 9},
				change: siblingsOf(4, by(1)),
			}.tree(),
			want: []string{"1 sockets", "cpus 0-3 on no socket"},
		},
		"some CPUs without a package number, beside others of their package": {
			host: machine{
				cpus: 8, kernel: middle, socket: func(cpu int) int { return []int{3, -1, 3, 3, -1, -1, -1, -1}[cpu] }, core: div(1), threads: by(1),
				memory: map[int]int{-1: 9}, change: siblingsOf(8, by(4)),
			}.tree(),
			want: []string{"2 sockets"},
		},
		"packages without numbers that contradict each other": {
			host: machine{
				cpus: 4, kernel: middle, socket: func(int) int { return -1 }, core: div(1), threads: by(1), memory: map[int]int{-1: 9},
				change: siblingsOf(4, func(cpu int) []int { return []int{cpu, (cpu + 1) % 4} }),
			}.tree(),
			want:       []string{"1 sockets", "cpus 0-3 on no socket"},
			wantWarned: []string{"as a package; their sockets are unknown"},
		},
		"no file of package numbers, and siblings that tell": {
			host: machine{
				cpus: 8, kernel: middle, core: div(1), threads: by(1), memory: map[int]int{-1: 9}, change: siblingsOf(8, by(4)),
			}.tree(),
			want: []string{"2 sockets"},
		},
		"huge pages that only the nodes' meminfo counts, beside those of the host": {
			host: twoNodes().with(tree{
				"proc/meminfo":          "MemTotal: 12582912 kB\nHugePages_Total: 5\nHugepagesize: 2048 kB\n",
				nodePath(0, "/meminfo"): "Node 0 MemTotal: 4194304 kB\nNode 0 HugePages_Total: 3\n",
				nodePath(1, "/meminfo"): "Node 1 MemTotal: 8388608 kB\nNode 1 HugePages_Total: 2\n",
				globalHugepages + "/hugepages-2048kB/nr_hugepages":    "5\n",
				globalHugepages + "/hugepages-1048576kB/nr_hugepages": "0\n",
			}, nodePath(0, "/hugepages"), nodePath(1, "/hugepages")),
			want: []string{"node 0 pages map[2048:3]", "node 1 pages map[2048:2]"},
		},
		"huge pages of another size that no node shows": {
			host: twoNodes().with(tree{
				"proc/meminfo":          "MemTotal: 12582912 kB\nHugepagesize: 2048 kB\n",
				nodePath(0, "/meminfo"): "Node 0 MemTotal: 4194304 kB\nNode 0 HugePages_Total: 3\n",
				globalHugepages + "/hugepages-2048kB/nr_hugepages":    "5\n",
				globalHugepages + "/hugepages-1048576kB/nr_hugepages": "1\n",
			}, nodePath(0, "/hugepages"), nodePath(1, "/hugepages")),
			want: []string{"node 0 pages map[2048:3]"},
			wantWarned: []string{
				"counts 5 huge pages of 2048 kB, and the nodes show 3 of them; the others are not offered",
				"counts 1 huge pages of 1048576 kB, and the nodes show 0 of them",
			},
		},
		"as many huge pages as a number can say": {
			host:       twoNodes().with(tree{nodePath(0, "/hugepages/hugepages-2048kB/nr_hugepages"): "9223372036854775807\n"}),
			want:       []string{"node 0 pages map[1048576:0]", "node 1 pages map[2048:512 1048576:0]"},
			wantWarned: []string{"node0/hugepages: counts 9223372036854775807 huge pages of 2048 kB, more than the 4.0 GiB of memory that the node has"},
		},
		"a million huge pages on a small host": {
			host: machine{
				cpus: 2, socket: div(2), core: div(1), threads: by(1), memory: map[int]int{-1: 3040870}, pages: map[int]int{-1: 1000000},
			}.tree(),
			want:       []string{"node 0 memory 3040870 kB"},
			wantWarned: []string{"kernel/mm/hugepages: counts 1000000 huge pages of 2048 kB, more than the 2.9 GiB of memory"},
		},
		"huge pages that take all memory": {
			host: machine{
				cpus: 2, socket: div(2), core: div(1), threads: by(1), memory: map[int]int{-1: 8192}, pages: map[int]int{-1: 4},
			}.tree(),
			want:       []string{"node 0 pages map[2048:4]"},
			wantWarned: []string{"takes all 8.0 MiB of memory that the node has; none of it is offered as ordinary memory"},
		},
		"ten sizes of huge pages": {
			host: twoNodes().with(func() tree {
				t := tree{}
				for i := range 10 {
					t[nodePath(0, fmt.Sprintf("/hugepages/hugepages-%dkB/nr_hugepages", 64<<i))] = "1\n"
				}
				return t
			}(), nodePath(0, "/hugepages"), nodePath(1, "/hugepages")),
			want:       []string{"node 0 pages map[64:1 128:1 256:1 512:1 1024:1 2048:1 4096:1 8192:1]"},
			wantWarned: []string{"has huge pages of 16384 kB; they are left out, for the host has more than 8 sizes", "has huge pages of 32768 kB"},
		},
		"a page size that no processor has": {
			host:       twoNodes().with(tree{nodePath(0, "/hugepages/hugepages-2147483647kB/nr_hugepages"): "0\n"}),
			wantWarned: []string{"its name is not a page size of 1..16777216 kB"},
		},
		"memory that was plugged in below the kernel: the only node shows a part": {
			host: machine{
				cpus: 4, socket: div(4), core: div(1), threads: by(1), nodes: map[int]string{0: "0-3"}, rows: map[int]string{0: "10"},
				memory: map[int]int{0: 6081740, -1: 132120576},
			}.tree(),
			want:       []string{"node 0 memory 132120576 kB"},
			wantWarned: []string{"node0/meminfo: shows 5.8 GiB of the host's 126.0 GiB of memory; all of it is counted on this node"},
		},
		"memory that none of several nodes shows is not offered": {
			host:       twoNodes().with(tree{"proc/meminfo": "MemTotal: 132120576 kB\n"}),
			want:       []string{"node 0 memory 4194304 kB", "node 1 memory 8388608 kB"},
			wantWarned: []string{"the host has 126.0 GiB of memory and its nodes show 12.0 GiB; the other 114.0 GiB are on no known node and are not offered"},
		},
		"nodes with more memory than the host are cut down": {
			host:       twoNodes().with(tree{"proc/meminfo": "MemTotal: 6291456 kB\n"}, nodePath(0, "/hugepages"), nodePath(1, "/hugepages")),
			want:       []string{"node 0 memory 2097152 kB", "node 1 memory 4194304 kB"},
			wantWarned: []string{"the host has 6.0 GiB of memory and its nodes with CPUs have 12.0 GiB together"},
		},
		"an old kernel that counts 1.5 % more on the nodes is believed": {
			host: twoNodes().with(tree{"proc/meminfo": "MemTotal: 12400000 kB\n"}),
			want: []string{"node 0 memory 4194304 kB", "node 1 memory 8388608 kB"},
		},
		"nodes of more memory than any host has": {
			host: twoNodes().with(tree{
				nodePath(0, "/meminfo"): "Node 0 MemTotal: 1099511627776 kB\n", nodePath(1, "/meminfo"): "Node 1 MemTotal: 1099511627776 kB\n",
			}, "proc/meminfo"),
			want:       []string{"node 0 memory 549755813888 kB", "node 1 memory 549755813888 kB"},
			wantWarned: []string{"the nodes have 2097152.0 GiB of memory together, more than 1048576.0 GiB"},
		},
		"nodes cut down to the host, beside a node of memory alone that has as much as any host": {
			host: machine{
				cpus: 4, socket: div(4), core: div(1), threads: by(1), nodes: map[int]string{0: "0-1", 1: "2-3", 2: ""},
				rows:   map[int]string{0: "10 20 20", 1: "20 10 20", 2: "20 20 10"},
				memory: map[int]int{0: 1 << 40, 1: 1 << 40, 2: 1 << 40, -1: 1 << 40},
			}.tree(),
			want:       []string{"node 0 memory 274877906944 kB", "node 1 memory 274877906944 kB"},
			wantWarned: []string{"its nodes with CPUs have 2097152.0 GiB together", "the nodes have 2097152.0 GiB of memory together, more than 1048576.0 GiB"},
		},
		"more threads of one core than any processor has": {
			host: machine{
				cpus: 300, kernel: middle, socket: div(300), core: div(300), threads: by(300), memory: map[int]int{-1: 9},
			}.tree(),
			want:       []string{"300 cores", "300 online"},
			wantWarned: []string{"names 300 cpus, more than 256, as a core; each is taken as a core of its own"},
		},
		"numbers below -1": {
			host:       twoNodes().with(tree{cpuPath(0, "/topology/physical_package_id"): "-2\n", cpuPath(1, "/topology/core_id"): "-2147483648\n"}),
			want:       []string{"8 online", "cpus 0 on no socket"},
			wantWarned: []string{`cpu0/topology/physical_package_id: "-2" is not a number in -1..`, "cpu1/topology/core_id"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, warnings, err := Read(test.host.fs())
			if err != nil {
				t.Fatal(err)
			}
			facts := oddFacts(topology)
			for _, want := range test.want {
				if !slices.Contains(facts, want) {
					t.Errorf("%q is not among\n%s", want, strings.Join(facts, "\n"))
				}
			}
			var texts []string
			for _, w := range warnings {
				if w.Path != noIsolated { // of kernels before 4.2
					texts = append(texts, w.String())
				}
			}
			for _, want := range test.wantWarned {
				if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, want) }) {
					t.Errorf("no warning holds %q: %q", want, texts)
				}
			}
			if test.wantWarned == nil && texts != nil {
				t.Errorf("warnings %q, want none", texts)
			}
		})
	}
}

// oddFacts lists what the tests above ask for.
func oddFacts(t *numa.Topology) []string {
	var homeless, socketless bitset.Set
	for _, c := range t.CPUs {
		if c.NUMA == numa.Unknown {
			homeless.Add(c.ID)
		}
		if c.Socket == numa.Unknown {
			socketless.Add(c.ID)
		}
	}
	facts := []string{
		fmt.Sprintf("%d nodes", len(t.Nodes)), fmt.Sprintf("%d online", t.Threads()), fmt.Sprintf("%d cores", t.Cores()), fmt.Sprintf("%d sockets", t.Sockets()),
		fmt.Sprintf("cpus %s on no node", homeless), fmt.Sprintf("cpus %s on no socket", socketless),
	}
	for _, n := range t.Nodes {
		facts = append(facts, fmt.Sprintf("node %d memory %d kB", n.ID, n.Memory>>10), fmt.Sprintf("node %d pages %v", n.ID, n.Hugepages))
	}
	return facts
}

func TestNodeOfAGPUFromTheCPUsBesideIt(t *testing.T) {
	const device = "sys/bus/pci/devices/0000:07:00.0"
	type answer struct {
		Node int
		OK   bool
	}
	tests := map[string]struct {
		host tree
		want answer
	}{
		"numa_node tells": {twoNodes().with(tree{device + "/numa_node": "1\n", device + "/local_cpulist": "0-1,4-5\n"}), answer{1, true}},
		"numa_node is -1 and the list names the CPUs of one node": {twoNodes().with(tree{device + "/numa_node": "-1\n", device + "/local_cpulist": "2-3,6-7\n"}), answer{1, true}},
		"numa_node is absent and the mask names some of a node":   {twoNodes().with(tree{device + "/local_cpus": "00000000,00000044\n"}), answer{1, true}},
		"numa_node is broken and the list tells":                  {twoNodes().with(tree{device + "/numa_node": "x\n", device + "/local_cpulist": "0\n"}), answer{0, true}},
		"every CPU is beside it":                                  {twoNodes().with(tree{device + "/numa_node": "-1\n", device + "/local_cpulist": "0-7\n"}), answer{numa.Unknown, true}},
		"the CPUs are of two nodes":                               {twoNodes().with(tree{device + "/local_cpulist": "1-2\n"}), answer{numa.Unknown, false}},
		"the CPUs are on no node":                                 {twoNodes().with(tree{device + "/numa_node": "-1\n", device + "/local_cpulist": "9\n"}), answer{numa.Unknown, true}},
		"an empty list":                                           {twoNodes().with(tree{device + "/numa_node": "-1\n", device + "/local_cpulist": "\n"}), answer{numa.Unknown, true}},
		"one of the nodes has no CPU, so that all CPUs are of one": {
			twoNodes().with(tree{device + "/numa_node": "-1\n", device + "/local_cpulist": "0-1,4-5\n", nodePath(1, "/cpulist"): "\n"}), answer{numa.Unknown, true},
		},
		"no device": {twoNodes(), answer{numa.Unknown, false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node, ok := PCINode(test.host.fs(), "00000000:07:00.0")
			if diff := cmp.Diff(test.want, answer{node, ok}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
