package sysfs

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// summary is what a machine reads to, in short.
type summary struct {
	Sockets, Cores, Threads, L3Groups int
	Nodes                             []string // id, CPUs, memory in kB, and what is special
	Distances                         [][]int
	Warned                            []string // paths
}

func summaryOf(t *numa.Topology, warnings []Warning) summary {
	s := summary{Sockets: t.Sockets(), Cores: t.Cores(), Threads: t.Threads(), Distances: t.Distances}
	var l3 bitset.Set
	for _, c := range t.CPUs {
		if c.L3 != numa.Unknown {
			l3.Add(c.L3)
		}
	}
	s.L3Groups = l3.Len()
	for _, n := range t.Nodes {
		line := fmt.Sprintf("%d: %s, %d kB", n.ID, n.CPUs, n.Memory>>10)
		if n.MemoryOnly {
			line += ", memory only"
		}
		if len(n.Hugepages) > 0 {
			line += fmt.Sprintf(", pages %v", n.Hugepages)
		}
		s.Nodes = append(s.Nodes, line)
	}
	for _, w := range warnings {
		s.Warned = append(s.Warned, w.Path)
	}
	slices.Sort(s.Warned)
	return s
}

// What an old kernel lacks, and is told otherwise.
var oldKernel = []string{cpuDir + "/online", cpuDir + "/present", nodeDir + "/online"}

func TestReadsMachinesOfEveryKind(t *testing.T) {
	four := map[int]string{0: "10 20 20 20", 1: "20 10 20 20", 2: "20 20 10 20", 3: "20 20 20 10"}
	tests := map[string]struct {
		machine machine
		want    summary
	}{
		"an Opteron of an old kernel: masks alone, core numbers that repeat on every socket": {
			machine{
				cpus: 16, kernel: old, socket: div(4), core: func(cpu int) int { return cpu % 4 }, threads: by(1),
				nodes: map[int]string{0: "0-3", 1: "4-7", 2: "8-11", 3: "12-15"}, memory: map[int]int{0: 100, 1: 200, 2: 300, 3: 400}, rows: four,
			},
			summary{
				Sockets: 4, Cores: 16, Threads: 16,
				Nodes: []string{"0: 0-3, 100 kB", "1: 4-7, 200 kB", "2: 8-11, 300 kB", "3: 12-15, 400 kB"}, Warned: oldKernel,
				Distances: [][]int{{10, 20, 20, 20}, {20, 10, 20, 20}, {20, 20, 10, 20}, {20, 20, 20, 10}},
			},
		},
		"two dies on a socket whose core numbers repeat on each die": {
			machine{
				cpus: 24, kernel: middle, socket: div(12), core: func(cpu int) int { return cpu % 6 }, threads: by(1), l3: by(6),
				nodes:  map[int]string{0: "0-5", 1: "6-11", 2: "12-17", 3: "18-23"},
				memory: map[int]int{0: 1, 1: 1, 2: 1, 3: 1}, rows: four,
			},
			summary{
				Sockets: 2, Cores: 24, Threads: 24, L3Groups: 4,
				Nodes:     []string{"0: 0-5, 1 kB", "1: 6-11, 1 kB", "2: 12-17, 1 kB", "3: 18-23, 1 kB"},
				Distances: [][]int{{10, 20, 20, 20}, {20, 10, 20, 20}, {20, 20, 10, 20}, {20, 20, 20, 10}},
			},
		},
		"an Itanium: two sockets on each of 17 nodes, the last of which has no CPU": {
			machine{
				cpus: 64, kernel: old, socket: div(2), core: func(int) int { return 0 }, threads: by(1),
				nodes: func() map[int]string {
					nodes := map[int]string{16: ""}
					for id := range 16 {
						nodes[id] = fmt.Sprintf("%d-%d", 4*id, 4*id+3)
					}
					return nodes
				}(),
				memory: func() map[int]int {
					memory := map[int]int{16: 7}
					for id := range 16 {
						memory[id] = 5
					}
					return memory
				}(),
			},
			summary{
				Sockets: 32, Cores: 64, Threads: 64,
				Nodes: func() (lines []string) {
					for id := range 16 {
						lines = append(lines, fmt.Sprintf("%d: %d-%d, 5 kB", id, 4*id, 4*id+3))
					}
					return append(lines, "16: , 7 kB, memory only")
				}(),
				Warned: append([]string{cpuDir + "/online", cpuDir + "/present", nodePath(0, "/distance")}, nodeDir+"/online"),
			},
		},
		"a POWER of an old kernel: four threads to a core, packages unknown, no caches": {
			machine{
				cpus: 256, kernel: old, socket: func(int) int { return -1 }, core: div(4), threads: by(4),
				nodes: map[int]string{0: "0-127", 1: "128-255"}, memory: map[int]int{0: 1, 1: 1},
				rows: map[int]string{0: "10 20", 1: "20 10"},
				gone: []string{cpuPath(0, "/cache")},
			},
			summary{
				Sockets: 1, Cores: 64, Threads: 256, Nodes: []string{"0: 0-127, 1 kB", "1: 128-255, 1 kB"},
				Distances: [][]int{{10, 20}, {20, 10}}, Warned: oldKernel,
			},
		},
		"an ARM board of an old kernel: no topology, no nodes, CPUs without an online file": {
			machine{
				cpus: 2, kernel: old, noFolder: func(int) bool { return true }, memory: map[int]int{-1: 512},
				gone: []string{cpuPath(1, "/online")},
			},
			summary{
				Sockets: 1, Cores: 2, Threads: 2, Nodes: []string{"0: 0-1, 512 kB"},
				Warned: []string{cpuDir, cpuDir + "/online", cpuDir + "/present"},
			},
		},
		"an s390 whose kernel counts packages within books": {
			machine{
				cpus: 8, kernel: modern, socket: func(cpu int) int { return cpu / 2 % 2 }, core: func(cpu int) int { return cpu }, threads: by(1),
				memory: map[int]int{-1: 512},
				extra: func(t tree, cpu int) {
					t[cpuPath(cpu, "/topology/book_id")] = strconv.Itoa(cpu/4) + "\n"
					t[cpuPath(cpu, "/topology/drawer_id")] = "0\n"
				},
				// package_cpus, which the machine above draws by number alone.
				change: func() tree {
					t := tree{}
					for cpu := range 8 {
						modern.put(t, cpuPath(cpu, "/topology/"), "package_cpus", "core_siblings", bitset.Of(by(2)(cpu)...))
					}
					return t
				}(),
			},
			summary{Sockets: 4, Cores: 8, Threads: 8, Nodes: []string{"0: 0-7, 512 kB"}},
		},
		"threads that are offline, on a kernel that has no lists": {
			machine{
				cpus: 16, kernel: old, offline: []int{1, 5, 14}, socket: func(cpu int) int { return cpu % 4 }, core: func(cpu int) int { return cpu / 4 % 2 },
				threads: func(cpu int) []int { return []int{cpu % 8, cpu%8 + 8} }, memory: map[int]int{-1: 9},
			},
			// Core 1,9 and core 5,13 keep a thread, and so does 6,14.
			summary{
				Sockets: 4, Cores: 8, Threads: 13, Nodes: []string{"0: 0-15, 9 kB"},
				Warned: []string{cpuDir + "/online", cpuDir + "/present"},
			},
		},
		"a core that is offline as a whole, with the lists of a modern kernel": {
			machine{
				cpus: 8, offline: []int{3, 7}, socket: div(8), core: func(cpu int) int { return cpu % 4 },
				threads: func(cpu int) []int { return []int{cpu % 4, cpu%4 + 4} }, l3: by(8),
				nodes: map[int]string{0: "0-7"}, memory: map[int]int{0: 9}, rows: map[int]string{0: "10"},
			},
			summary{Sockets: 1, Cores: 3, Threads: 6, L3Groups: 1, Nodes: []string{"0: 0-2,4-6, 9 kB"}, Distances: [][]int{{10}}},
		},
		"a CPU that names one that is not there agrees with those that do not": {
			machine{
				cpus: 4, socket: div(4), core: div(1), threads: by(1), l3: by(4), memory: map[int]int{-1: 8},
				change: tree{cpuPath(0, "/cache/index3/shared_cpu_list"): "0-3,9\n"},
			},
			summary{Sockets: 1, Cores: 4, Threads: 4, L3Groups: 1, Nodes: []string{"0: 0-3, 8 kB"}},
		},
		"core_siblings that stop at NUMA nodes: the packages' numbers count": {
			machine{
				cpus: 28, kernel: middle, socket: div(14), core: func(cpu int) int { return cpu % 14 }, threads: by(1), l3: by(14),
				nodes: map[int]string{0: "0-13", 1: "14-27"}, memory: map[int]int{0: 1, 1: 1}, rows: map[int]string{0: "10 21", 1: "21 10"},
				change: func() tree {
					t := tree{}
					for cpu := range 28 {
						middle.put(t, cpuPath(cpu, "/topology/"), "package_cpus", "core_siblings", bitset.Of(by(7)(cpu)...))
					}
					return t
				}(),
			},
			summary{
				Sockets: 2, Cores: 28, Threads: 28, L3Groups: 2, Nodes: []string{"0: 0-13, 1 kB", "1: 14-27, 1 kB"},
				Distances: [][]int{{10, 21}, {21, 10}}, Warned: []string{cpuDir},
			},
		},
		"nodes that cut across sockets are shown and warned about": {
			machine{
				cpus: 4, kernel: middle, socket: func(cpu int) int { return cpu % 2 }, core: div(2), threads: by(1),
				nodes: map[int]string{0: "0-1", 1: "2-3"}, memory: map[int]int{0: 1, 1: 1}, rows: map[int]string{0: "10 20", 1: "20 10"},
			},
			summary{
				Sockets: 2, Cores: 4, Threads: 4, Nodes: []string{"0: 0-1, 1 kB", "1: 2-3, 1 kB"},
				Distances: [][]int{{10, 20}, {20, 10}}, Warned: []string{cpuDir},
			},
		},
		"a socket of four cores beside one of two": {
			machine{
				cpus: 6, kernel: middle, socket: div(4), core: func(cpu int) int { return cpu % 4 }, threads: by(1),
				l3: func(cpu int) []int { return by(4)(cpu) }, memory: map[int]int{-1: 3},
			},
			summary{Sockets: 2, Cores: 6, Threads: 6, L3Groups: 2, Nodes: []string{"0: 0-5, 3 kB"}},
		},
		"a Knights Landing in four clusters: MCDRAM on nodes without CPUs": {
			machine{
				cpus: 16, socket: div(16), core: div(4), threads: by(4),
				nodes:  map[int]string{0: "0-7", 1: "8-15", 2: "", 3: ""},
				memory: map[int]int{0: 24 << 20, 1: 24 << 20, 2: 4 << 20, 3: 4 << 20},
				pages:  map[int]int{0: 0, 1: 3, 2: 5, 3: 0},
				rows:   map[int]string{0: "10 21 31 41", 1: "21 10 41 31", 2: "31 41 10 41", 3: "41 31 41 10"},
			},
			summary{
				Sockets: 1, Cores: 4, Threads: 16,
				Nodes: []string{
					"0: 0-7, 25165824 kB, pages map[2048:0]", "1: 8-15, 25165824 kB, pages map[2048:3]",
					"2: , 4194304 kB, memory only, pages map[2048:5]", "3: , 4194304 kB, memory only, pages map[2048:0]",
				},
				Distances: [][]int{{10, 21, 31, 41}, {21, 10, 41, 31}, {31, 41, 10, 41}, {41, 31, 41, 10}},
			},
		},
		"nodes with CPUs and no memory, with neither, and CXL memory": {
			machine{
				cpus: 4, socket: div(2), core: func(cpu int) int { return cpu % 2 }, threads: by(1),
				nodes: map[int]string{0: "0-1", 1: "2-3", 2: "", 9: ""}, memory: map[int]int{0: 8, 1: 0, 2: 0, 9: 64},
				rows: map[int]string{0: "10 20 20 14", 1: "20 10 20 24", 2: "20 20 10 24", 9: "14 24 24 10"},
			},
			summary{
				Sockets: 2, Cores: 4, Threads: 4, Nodes: []string{"0: 0-1, 8 kB", "1: 2-3, 0 kB", "2: , 0 kB", "9: , 64 kB, memory only"},
				Distances: [][]int{{10, 20, 20, 14}, {20, 10, 20, 24}, {20, 20, 10, 24}, {14, 24, 24, 10}},
			},
		},
		"an EPYC of eight L3 caches to a socket, two threads to a core": {
			machine{
				cpus: 128, socket: func(cpu int) int { return cpu % 64 / 32 }, core: func(cpu int) int { return cpu % 32 },
				threads: func(cpu int) []int { return []int{cpu % 64, cpu%64 + 64} },
				l3: func(cpu int) []int {
					first := cpu % 64 / 4 * 4
					return append(ascending(first, first+4), ascending(first+64, first+68)...)
				},
				nodes: map[int]string{0: "0-31,64-95", 1: "32-63,96-127"}, memory: map[int]int{0: 1, 1: 1}, rows: map[int]string{0: "10 32", 1: "32 10"},
			},
			summary{
				Sockets: 2, Cores: 64, Threads: 128, L3Groups: 16, Nodes: []string{"0: 0-31,64-95, 1 kB", "1: 32-63,96-127, 1 kB"},
				Distances: [][]int{{10, 32}, {32, 10}},
			},
		},
		"numa=off: one node has everything on two sockets": {
			machine{
				cpus: 4, socket: div(2), core: func(cpu int) int { return cpu % 2 }, threads: by(1), l3: by(2),
				nodes: map[int]string{0: "0-3"}, memory: map[int]int{0: 8}, rows: map[int]string{0: "10"},
			},
			summary{Sockets: 2, Cores: 4, Threads: 4, L3Groups: 2, Nodes: []string{"0: 0-3, 8 kB"}, Distances: [][]int{{10}}},
		},
		"a kernel without NUMA counts huge pages for the host": {
			machine{cpus: 2, socket: div(2), core: div(1), threads: by(1), memory: map[int]int{-1: 8 << 20}, pages: map[int]int{-1: 6}},
			summary{Sockets: 1, Cores: 2, Threads: 2, Nodes: []string{"0: 0-1, 8388608 kB, pages map[2048:6]"}},
		},
		"a kernel so old that meminfo alone counts huge pages": {
			machine{
				cpus: 2, kernel: old, socket: div(2), core: div(2), threads: by(2),
				change: tree{"proc/meminfo": "MemTotal: 80000 kB\nHugePages_Total:    12\nHugepagesize:     4096 kB\n"},
			},
			summary{
				Sockets: 1, Cores: 1, Threads: 2, Nodes: []string{"0: 0-1, 80000 kB, pages map[4096:12]"},
				Warned: []string{cpuDir + "/online", cpuDir + "/present"},
			},
		},
		"a kernel whose nodes' meminfo counts huge pages": {
			machine{
				cpus: 2, kernel: middle, socket: div(1), core: div(2), threads: by(1), nodes: map[int]string{0: "0", 1: "1"},
				rows: map[int]string{0: "10 20", 1: "20 10"},
				change: tree{
					"proc/meminfo":          "MemTotal: 18000 kB\nHugePages_Total:    3\nHugepagesize:     2048 kB\n",
					nodePath(0, "/meminfo"): "Node 0 MemTotal: 9000 kB\nNode 0 HugePages_Total:    3\n",
					nodePath(1, "/meminfo"): "Node 1 MemTotal: 9000 kB\nNode 1 HugePages_Total:    0\n",
				},
			},
			summary{
				Sockets: 2, Cores: 2, Threads: 2, Nodes: []string{"0: 0, 9000 kB, pages map[2048:3]", "1: 1, 9000 kB"},
				Distances: [][]int{{10, 20}, {20, 10}},
			},
		},
		"huge pages that no node claims are warned about": {
			machine{
				cpus: 2, socket: div(1), core: div(2), threads: by(1), nodes: map[int]string{0: "0", 1: "1"},
				memory: map[int]int{0: 9, 1: 9}, pages: map[int]int{-1: 4}, rows: map[int]string{0: "10 20", 1: "20 10"},
			},
			summary{
				Sockets: 2, Cores: 2, Threads: 2, Nodes: []string{"0: 0, 9 kB", "1: 1, 9 kB"},
				Distances: [][]int{{10, 20}, {20, 10}}, Warned: []string{globalHugepages},
			},
		},
		"the only node has the host's memory and huge pages where its own files are absent": {
			machine{
				cpus: 2, socket: div(2), core: div(1), threads: by(1), nodes: map[int]string{0: "0-1"},
				memory: map[int]int{-1: 77 << 20}, pages: map[int]int{-1: 4}, rows: map[int]string{0: "10"},
			},
			summary{Sockets: 1, Cores: 2, Threads: 2, Nodes: []string{"0: 0-1, 80740352 kB, pages map[2048:4]"}, Distances: [][]int{{10}}},
		},
		"lscpu's dump: nodes with a mask and nothing else": {
			machine{
				cpus: 4, kernel: middle, socket: div(2), core: func(cpu int) int { return cpu % 2 }, threads: by(1), l3: by(2),
				nodes: map[int]string{0: "0-1", 1: "2-3"},
				gone:  []string{nodeDir + "/online", nodePath(0, "/cpulist"), nodePath(1, "/cpulist"), "proc/cmdline"},
			},
			summary{
				Sockets: 2, Cores: 4, Threads: 4, L3Groups: 2, Nodes: []string{"0: 0-1, 0 kB", "1: 2-3, 0 kB"},
				Warned: []string{noIsolated, nodeDir, nodePath(0, "/distance"), nodeDir + "/online"},
			},
		},
		"an L3 cache behind a hole in the indices, and an instruction cache of level 3": {
			machine{
				cpus: 2, socket: div(2), core: div(1), threads: by(1), l3: by(2), memory: map[int]int{-1: 8},
				gone: []string{cpuPath(0, "/cache/index1"), cpuPath(1, "/cache/index0"), cpuPath(1, "/cache/index2")},
				change: tree{
					cpuPath(0, "/cache/index2/level"): "3\n", cpuPath(0, "/cache/index2/type"): "Instruction\n",
				},
			},
			summary{Sockets: 1, Cores: 2, Threads: 2, L3Groups: 1, Nodes: []string{"0: 0-1, 8 kB"}},
		},
		"only proc/stat tells the CPUs": {
			machine{cpus: 2, gone: []string{cpuDir}, memory: map[int]int{-1: 8}, change: tree{"proc/stat": "cpu  9\ncpu0 4\ncpu1 5\n"}},
			summary{
				Sockets: 1, Cores: 2, Threads: 2, Nodes: []string{"0: 0-1, 8 kB"},
				Warned: []string{cpuDir, noIsolated, cpuDir + "/online", cpuDir + "/present"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology, warnings, err := Read(test.machine.tree().fs())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, summaryOf(topology, warnings)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, warnings)
			}
		})
	}
}

func TestAnOfflineCPUKeepsTheNodeOfItsLink(t *testing.T) {
	topology, _, err := Read(machine{
		cpus: 4, offline: []int{2, 3}, socket: div(2), core: div(1), threads: by(1),
		nodes: map[int]string{0: "0-1", 1: "2-3"}, memory: map[int]int{0: 8, 1: 8}, rows: map[int]string{0: "10 20", 1: "20 10"},
	}.tree().fs())
	if err != nil {
		t.Fatal(err)
	}
	if c := topology.CPUs[3]; c.NUMA != 1 || c.Online || !topology.Nodes[1].CPUs.IsEmpty() || topology.Nodes[1].MemoryOnly {
		t.Errorf("cpu %+v, node %+v: want the CPU on node 1, which lists none and has ordinary memory", c, topology.Nodes[1])
	}
}

func TestSocketNumbersStayWhereBooksDoNotRepeatThem(t *testing.T) {
	topology, warnings, err := Read(machine{
		cpus: 4, socket: func(cpu int) int { return 4 + cpu/2 }, core: div(1), threads: by(1), memory: map[int]int{-1: 8},
		extra: func(t tree, cpu int) { t[cpuPath(cpu, "/topology/book_id")] = strconv.Itoa(cpu/2) + "\n" },
	}.tree().fs())
	if err != nil || warnings != nil {
		t.Fatalf("%v, warnings %v", err, warnings)
	}
	for _, c := range topology.CPUs {
		if c.Socket != 4+c.ID/2 {
			t.Errorf("cpu %d is on socket %d, want %d", c.ID, c.Socket, 4+c.ID/2)
		}
	}
}
