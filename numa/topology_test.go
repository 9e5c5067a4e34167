package numa_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

func TestSockets(t *testing.T) {
	cpu := func(id, socket int, online bool) numa.CPU {
		return numa.CPU{ID: id, Socket: socket, NUMA: numa.Unknown, Online: online, Siblings: bitset.Of(id)}
	}
	tests := map[string]struct {
		cpus []numa.CPU
		want int
	}{
		"no CPU":                              {nil, 0},
		"two packages":                        {[]numa.CPU{cpu(0, 0, true), cpu(1, 1, true), cpu(2, 0, true)}, 2},
		"an offline CPU adds none":            {[]numa.CPU{cpu(0, 0, true), cpu(1, 1, false)}, 1},
		"a CPU that does not tell adds none":  {[]numa.CPU{cpu(0, 0, true), cpu(1, numa.Unknown, true)}, 1},
		"CPUs that do not tell are in one":    {[]numa.CPU{cpu(0, numa.Unknown, true), cpu(1, numa.Unknown, true)}, 1},
		"only offline CPUs are in no package": {[]numa.CPU{cpu(0, 0, false)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology := numa.Topology{CPUs: test.cpus}
			if err := topology.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := topology.Sockets(); got != test.want {
				t.Errorf("Sockets() = %d, want %d", got, test.want)
			}
		})
	}
}

// smt is two cores of two threads on one node, and an offline CPU that the node
// does not list.
func smt() *numa.Topology {
	t := &numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: bitset.Of(0, 1, 2, 3)}, {ID: 3, Memory: 1}}, Distances: [][]int{{10, 20}, {20, 10}}}
	for id := range 5 {
		c := numa.CPU{ID: id, NUMA: 0, Online: id < 4, Siblings: bitset.Of(id%2, id%2+2)}
		if id == 4 {
			c.Siblings = bitset.Of(4)
		}
		t.CPUs = append(t.CPUs, c)
	}
	return t
}

func TestCoresAreGroupsOfOnlineSiblings(t *testing.T) {
	topology := smt()
	if err := topology.Validate(); err != nil {
		t.Fatal(err)
	}
	if cores, threads := topology.Cores(), topology.Threads(); cores != 2 || threads != 4 {
		t.Errorf("%d cores and %d threads, want 2 and 4", cores, threads)
	}
	// The first thread of a core goes offline, then the second one.
	topology.CPUs[0].Online = false
	if cores, threads := topology.Cores(), topology.Threads(); cores != 2 || threads != 3 {
		t.Errorf("%d cores and %d threads, want 2 and 3", cores, threads)
	}
	topology.CPUs[2].Online = false
	if cores, threads := topology.Cores(), topology.Threads(); cores != 1 || threads != 2 {
		t.Errorf("%d cores and %d threads, want 1 and 2", cores, threads)
	}
}

func TestValidateNamesTheFirstFault(t *testing.T) {
	tests := map[string]struct {
		damage func(*numa.Topology)
		want   string // "" where there is no fault
	}{
		"sound": {func(*numa.Topology) {}, ""},
		"a CPU that a node lists may be on no known node": {
			func(t *numa.Topology) { t.CPUs[1].NUMA = numa.Unknown }, "",
		},
		"an offline CPU may be on a node that does not list it": {
			func(t *numa.Topology) { t.CPUs[4].NUMA = 3 }, "",
		},
		"an online CPU may not": {
			func(t *numa.Topology) { t.CPUs[4].Online = true }, "cpu 4 is on node 0, which lists cpus \"0-3\"",
		},
		"a node with more memory than any host has": {
			func(t *numa.Topology) { t.Nodes[1].Memory = 1<<63 - 1 }, "node 3 has 9223372036854775807 bytes of memory, outside 0..1125899906842624",
		},
		"nodes with more memory together than any host has": {
			func(t *numa.Topology) { t.Nodes[0].Memory = resource.MaxMemory }, "nodes up to 3 have 1125899906842625 bytes of memory together, more than 1125899906842624",
		},
		"more nodes than any host has": {
			func(t *numa.Topology) { t.Nodes = make([]numa.Node, numa.MaxNodes+1) }, "257 nodes, more than 256",
		},
		"more CPUs than any kernel takes": {
			func(t *numa.Topology) { t.CPUs = make([]numa.CPU, numa.MaxCPUs+1) }, "8193 cpus, more than 8192",
		},
		"a core of more threads than any has": {
			func(t *numa.Topology) {
				for id := range numa.MaxSiblings + 1 {
					t.CPUs[0].Siblings.Add(id)
				}
			}, "cpu 0 has 257 siblings, more than 256",
		},
		"a node lists a CPU that is on another": {
			func(t *numa.Topology) { t.Nodes[1].CPUs = bitset.Of(1) }, "node 3 lists cpu 1, which is on node 0",
		},
		"a node lists a CPU that is not": {
			func(t *numa.Topology) { t.Nodes[1].CPUs = bitset.Of(9) }, "node 3 lists cpu 9, which does not exist",
		},
		"a CPU on a node that is not": {func(t *numa.Topology) { t.CPUs[0].NUMA = 7 }, "cpu 0 is on node 7"},
		"CPUs out of order":           {func(t *numa.Topology) { t.CPUs[2].ID = 1 }, "cpu 1 listed after cpu 1"},
		"nodes out of order":          {func(t *numa.Topology) { t.Nodes[1].ID = 0 }, "node 0 listed after node 0"},
		"a CPU without itself":        {func(t *numa.Topology) { t.CPUs[0].Siblings = bitset.Of(1) }, "not among its own siblings"},
		"memory below nothing":        {func(t *numa.Topology) { t.Nodes[0].Memory = -1 }, "-1 bytes"},
		"distances that are no square": {
			func(t *numa.Topology) { t.Distances[1] = []int{10} }, "distance row 1 has 1 columns for 2 nodes",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			topology := smt()
			test.damage(topology)
			err := topology.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate() = %v, want %q", err, test.want)
			}
		})
	}
}

func TestMemoryOfMemoryOnlyNodesIsNotOrdinary(t *testing.T) {
	topology := numa.Topology{Nodes: []numa.Node{{ID: 0, Memory: 8}, {ID: 2, Memory: 64, MemoryOnly: true}, {ID: 5, Memory: 1}}}
	if got := topology.Memory(); got != 9 {
		t.Errorf("Memory() = %d, want 9", got)
	}
	if at, none := topology.NodeIndex(5), topology.NodeIndex(1); at != 2 || none != numa.Unknown {
		t.Errorf("NodeIndex: %d and %d, want 2 and %d", at, none, numa.Unknown)
	}
}
