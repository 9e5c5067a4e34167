package sysfs

import (
	"io/fs"
	"slices"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// AllowedCPUs reads the CPUs that the process that the tree shows as itself may
// run on: the reader on a running host, the capturing process in a captured tree. It
// takes the kernel's own conclusion from affinity and cpuset,
// Cpus_allowed_list of proc/self/status (proc_pid_status(5)), or else the value that the
// cpuset of the process's cgroup allows. ok is false where the tree does not
// report; files that are there and broken give a Warning, and so does memory of
// the host that the same cpuset denies, since a Topology cannot say that.
func AllowedCPUs(fsys fs.FS) (cpus bitset.Set, ok bool, warnings []Warning) {
	r := newReader(fsys)
	const path = "proc/self/status"
	text, err := r.text(path)
	if err == nil {
		if cpus, err = r.allowedList(text, "Cpus_allowed_list", maxCPU); err == nil {
			if mems, err := r.allowedList(text, "Mems_allowed_list", maxNode); err == nil {
				r.checkMems(path, mems)
			}
			return cpus, true, r.faults()
		}
	}
	if !absent(err) {
		r.warn(path, "%v; its cgroup is asked instead", err)
	}
	cpus, ok = r.cpusetAllows()
	return cpus, ok, r.faults()
}

// allowedList reads one list of proc/self/status; it is never empty there.
func (r *reader) allowedList(text, name string, limit int) (bitset.Set, error) {
	s, err := r.bounded("proc/self/status", limit)(parseAllowed(text, name, limit))
	if err == nil && s.IsEmpty() {
		err = errEmptySet
	}
	return s, err
}

// checkMems warns where nodes that have memory are outside a cpuset.
func (r *reader) checkMems(path string, mems bitset.Set) {
	nodes, err := r.list(nodeDir+"/has_memory", maxNode)
	if err != nil {
		if nodes, err = r.list(nodeDir+"/online", maxNode); err != nil {
			return
		}
	}
	if denied := nodes.Minus(mems); !denied.IsEmpty() {
		r.warn(path, "denies this process the memory of nodes %s, which is counted all the same", brief(denied))
	}
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
