package shim

import "golang.org/x/sys/unix"

// preferNodes has this thread, and what it forks, take memory from some nodes as long as
// they have some. It is a preference and no limit: a kernel before Linux 5.15 does not have
// it, and a container may not be allowed to set it; then the memory comes from the node of
// the CPU that touches it first, which the affinity keeps near.
func preferNodes(nodes []int) {
	if len(nodes) == 0 {
		return
	}
	var mask unix.CPUSet
	for _, node := range nodes {
		mask.Set(node)
	}
	_ = unix.SetMemPolicy(unix.MPOL_PREFERRED_MANY, &mask)
}
