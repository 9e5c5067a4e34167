package sysfs

import (
	"slices"
	"strconv"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

const nodeDir = "sys/devices/system/node"

// nodeLayout is which nodes there are.
//
// Invariant: columns ascend; nodes are the columns that have a folder, the
// first numa.MaxNodes of them.
type nodeLayout struct {
	columns []int // the kernel's online nodes, in the order of a distance row
	nodes   []int // those that can be read
}

func nodePath(id int, rest string) string { return nodeDir + "/node" + strconv.Itoa(id) + rest }

// nodeLayout finds the nodes; ok is false on a host without NUMA.
func (r *reader) nodeLayout() (layout nodeLayout, ok bool) {
	folders, err := r.folders(nodeDir, "node", maxNode)
	if absent(err) {
		return nodeLayout{}, false
	}
	if err != nil {
		r.warn(nodeDir, "%v; taken as a host without NUMA", err)
		return nodeLayout{}, false
	}
	online, err := r.list(nodeDir+"/online", maxNode)
	if err != nil {
		r.warn(nodeDir+"/online", "%v; the nodes that have a folder are taken instead: %q", err, brief(folders))
		online = folders
	}
	if missing := online.Minus(folders); !missing.IsEmpty() {
		r.warn(nodeDir+"/online", "nodes %s have no folder; they are left out", brief(missing))
	}
	if excess := folders.Minus(online); !excess.IsEmpty() {
		r.warn(nodeDir+"/online", "nodes %s have a folder but are not online; they are left out", brief(excess))
	}
	nodes := online.Intersect(folders)
	if nodes.IsEmpty() {
		r.warn(nodeDir, "shows no node; taken as a host without NUMA")
		return nodeLayout{}, false
	}
	layout = nodeLayout{columns: online.Members(), nodes: nodes.Members()}
	if excess := len(layout.nodes) - numa.MaxNodes; excess > 0 {
		r.warn(nodeDir, "shows %d nodes, more than %d; the last %d, from node %d on, are left out, and the node of their CPUs is unknown", len(layout.nodes), numa.MaxNodes, excess, layout.nodes[numa.MaxNodes])
		layout.nodes = layout.nodes[:numa.MaxNodes]
	}
	return layout, true
}

// onlyNode is the one node of a host without NUMA.
func (r *reader) onlyNode(sets cpuSets) []numa.Node {
	memory, known := r.memory("proc/meminfo")
	pages := pool{from: globalHugepages}
	var told bool
	if pages.counts, told = r.hugepages(globalHugepages); !told {
		pages = pool{r.hugepagesOfMeminfo("proc/meminfo"), "proc/meminfo"}
	}
	nodes := []numa.Node{{ID: 0, CPUs: sets.present.Clone(), Memory: memory}}
	r.settlePages(nodes, map[int]pool{0: pages}, func(int) bool { return !known })
	return nodes
}

// homes is where CPUs belong.
//
// Invariant: an online CPU's node lists it.
type homes struct {
	of     map[int]int        // the node of a CPU; absent where unknown
	lists  map[int]bitset.Set // the present CPUs that a node lists
	unread bitset.Set         // nodes whose CPUs could not be read
}

// homes finds the node of each present CPU: from the nodes' CPU lists, which
// leave out offline CPUs, then from the link in the CPU's own folder, which
// stays. A CPU that two nodes list has none.
func (r *reader) homes(layout nodeLayout, sets cpuSets) homes {
	h := homes{of: make(map[int]int, sets.present.Len()), lists: make(map[int]bitset.Set, len(layout.nodes))}
	var contested, homeless bitset.Set
	for _, node := range layout.nodes {
		listed, path, ok := r.nodeCPUs(node)
		if !ok {
			h.unread.Add(node)
			continue
		}
		if excess := listed.Minus(sets.present); !excess.IsEmpty() {
			r.warn(path, "cpus %s are not present; they are left out", brief(excess))
		}
		h.lists[node] = listed.Intersect(sets.present)
		for id := range h.lists[node].All() {
			if _, taken := h.of[id]; taken {
				contested.Add(id)
			}
			h.of[id] = node
		}
	}
	for id := range sets.present.All() {
		if contested.Has(id) {
			delete(h.of, id)
			continue
		}
		if _, known := h.of[id]; known {
			continue
		}
		node, ok := r.linkedNode(id, sets)
		if !ok || !slices.Contains(layout.nodes, node) {
			node = numa.Unknown
		}
		// The link of an online CPU that its node does not list is believed
		// only where that list cannot be read.
		switch {
		case node != numa.Unknown && h.unread.Has(node):
			set := h.lists[node]
			set.Add(id)
			h.lists[node] = set
			h.of[id] = node
		case sets.online.Has(id):
			homeless.Add(id)
		case node != numa.Unknown:
			h.of[id] = node
		}
	}
	if !contested.IsEmpty() {
		r.warn(nodeDir, "several nodes list cpus %s; their node is unknown", brief(contested))
	}
	if !homeless.IsEmpty() {
		r.warn(nodeDir, "no node lists cpus %s; their node is unknown", brief(homeless))
	}
	return h
}

// nodeCPUs reads a node's CPUs and says from which file.
func (r *reader) nodeCPUs(node int) (cpus bitset.Set, path string, ok bool) {
	path = nodePath(node, "/cpulist")
	cpus, err := r.list(path, maxCPU)
	if err == nil {
		return cpus, path, true
	}
	mapPath := nodePath(node, "/cpumap")
	cpus, mapErr := r.mask(mapPath, maxCPU)
	if !absent(err) || mapErr != nil {
		r.warn(path, "%v", err)
	}
	if mapErr == nil {
		return cpus, mapPath, true
	}
	r.warn(mapPath, "%v; the CPUs of node %d are unknown", mapErr, node)
	return bitset.Set{}, path, false
}

// linkedNode is the one node that a CPU's folder links to.
func (r *reader) linkedNode(id int, sets cpuSets) (node int, ok bool) {
	if !sets.folders.Has(id) {
		return numa.Unknown, false
	}
	links, err := r.folders(cpuPath(id, ""), "node", maxNode)
	if err != nil {
		r.warn(cpuPath(id, ""), "%v; its node is unknown", err)
		return numa.Unknown, false
	}
	if links.Len() > 1 {
		r.warn(cpuPath(id, ""), "links to nodes %s; its node is unknown", brief(links))
		return numa.Unknown, false
	}
	return links.Min(), links.Len() == 1
}

// nodes reads memory and hugepages of each node and compares the kernel's
// summaries with the files of the nodes themselves.
func (r *reader) nodes(layout nodeLayout, sets cpuSets, homes homes) []numa.Node {
	hasCPU, hasCPUErr := r.list(nodeDir+"/has_cpu", maxNode)
	hasMemory, hasMemoryErr := r.list(nodeDir+"/has_memory", maxNode)
	var withCPU, withOnline bitset.Set // nodes
	unplaced := sets.present.Minus(sets.online)
	for id, node := range homes.of {
		unplaced.Remove(id)
		withCPU.Add(node)
		if sets.online.Has(id) {
			withOnline.Add(node)
		}
	}
	memory := r.nodesMemory(layout.nodes)
	pages := r.nodesHugepages(layout.nodes)
	var cpuOdd, memoryOdd bitset.Set
	var ordinary, special bool // whether any memory is
	nodes := make([]numa.Node, 0, len(layout.nodes))
	for _, id := range layout.nodes {
		total, known := memory[id]
		n := numa.Node{ID: id, CPUs: homes.lists[id], Memory: total}
		hasSome := total > 0 || !known && hasMemory.Has(id)
		if known && hasMemoryErr == nil && hasMemory.Has(id) != hasSome {
			memoryOdd.Add(id)
		}
		if !homes.unread.Has(id) && hasCPUErr == nil && hasCPU.Has(id) != withOnline.Has(id) {
			cpuOdd.Add(id)
		}
		// has_cpu decides only where the node's own list cannot be read.
		cpuless := n.CPUs.IsEmpty() && !withCPU.Has(id) && (!homes.unread.Has(id) || !hasCPU.Has(id))
		n.MemoryOnly = cpuless && hasSome
		ordinary = ordinary || hasSome && !n.MemoryOnly
		special = special || n.MemoryOnly
		if n.MemoryOnly && !unplaced.IsEmpty() {
			r.warn(nodePath(id, ""), "has memory and no CPU, while the node of the offline cpus %s is unknown; taken as memory only", brief(unplaced))
		}
		nodes = append(nodes, n)
	}
	if !ordinary && special {
		r.warn(nodeDir, "no node that has CPUs has memory, so none of the host's memory is ordinary and none can be offered")
	}
	r.summary("has_cpu", hasCPUErr, cpuOdd)
	r.summary("has_memory", hasMemoryErr, memoryOdd)
	r.settleMemory(nodes, len(memory) == len(layout.columns))
	r.settlePages(nodes, pages, func(id int) bool { _, known := memory[id]; return !known })
	return nodes
}

// summary warns where one of the kernel's summary files is broken or disagrees
// with odd nodes. Kernels before 3.8 lack has_memory, some captures both.
func (r *reader) summary(name string, err error, odd bitset.Set) {
	path := nodeDir + "/" + name
	switch {
	case err != nil && !absent(err):
		r.warn(path, "%v; not needed", err)
	case !odd.IsEmpty():
		r.warn(path, "disagrees with the files of nodes %s, which are believed", brief(odd))
	}
}
