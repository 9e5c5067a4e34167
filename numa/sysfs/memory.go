package sysfs

import (
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// memory reads MemTotal; known is false, and a warning given, where the file
// does not report.
func (r *reader) memory(path string) (total resource.Bytes, known bool) {
	text, err := r.text(path)
	if err == nil {
		total, err = parseMemTotal(text)
	}
	if err != nil {
		r.warn(path, "%v; the memory is unknown and shown as 0", err)
		return 0, false
	}
	return total, true
}

// nodesMemory reads the memory of each node; a node whose files do not report is
// absent from the result. A tree's only node has all of the host's memory.
func (r *reader) nodesMemory(nodes []int) map[int]resource.Bytes {
	memory := make(map[int]resource.Bytes, len(nodes))
	var silent bitset.Set
	for _, id := range nodes {
		path := nodePath(id, "/meminfo")
		text, err := r.text(path)
		if absent(err) {
			silent.Add(id)
			continue
		}
		var total resource.Bytes
		if err == nil {
			total, err = parseMemTotal(text)
		}
		if err != nil {
			r.warn(path, "%v; the memory is unknown and shown as 0", err)
			continue
		}
		memory[id] = total
	}
	switch {
	case silent.IsEmpty():
	case len(nodes) == 1:
		if total, known := r.memory("proc/meminfo"); known {
			memory[nodes[0]] = total
		}
	default:
		r.warn(nodeDir, "nodes %s have no meminfo; their memory is unknown and shown as 0", brief(silent))
	}
	return memory
}
