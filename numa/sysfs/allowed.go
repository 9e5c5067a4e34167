package sysfs

import (
	"io/fs"
	"slices"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// AllowedCPUs reads the CPUs that the reading process may run on, by its
// affinity and its cgroup's cpuset: Cpus_allowed_list of proc/self/status
// (proc_pid_status(5)). ok is false where the tree does not tell; only a file
// that is there and broken gives a Warning.
func AllowedCPUs(fsys fs.FS) (cpus bitset.Set, ok bool, warnings []Warning) {
	const path = "proc/self/status"
	r := newReader(fsys)
	text, err := r.text(path)
	if absent(err) {
		return bitset.Set{}, false, nil
	}
	if err == nil {
		cpus, err = r.bounded(path, maxCPU)(parseAllowed(text, maxCPU))
	}
	if err != nil {
		r.warn(path, "%v; the CPUs that this process may use are unknown", err)
		return bitset.Set{}, false, r.faults()
	}
	return cpus, true, r.faults()
}

// Restrict returns a topology in which the CPUs outside allowed are isolated
// too: shown, but never handed out. t is not changed; the result shares its
// nodes and distances.
func Restrict(t *numa.Topology, allowed bitset.Set) *numa.Topology {
	restricted := *t
	restricted.CPUs = slices.Clone(t.CPUs)
	for i := range restricted.CPUs {
		c := &restricted.CPUs[i]
		c.Isolated = c.Isolated || !allowed.Has(c.ID)
	}
	return &restricted
}
