package sysfs

import (
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

// setSockets makes socket numbers unique on the host.
//
// On s390 packages are counted within a book and books within a drawer
// (Documentation/admin-guide/cputopology.rst), so that numbers may repeat;
// where one does, all sockets are numbered anew by their least CPU.
func (r *reader) setSockets(cpus []numa.CPU, sets cpuSets) {
	first := sets.online.Intersect(sets.folders)
	if first.IsEmpty() {
		return
	}
	if _, err := r.text(cpuPath(first.Min(), "/topology/book_id")); absent(err) {
		return
	}
	type place struct{ drawer, book, socket int }
	places := make([]place, len(cpus))
	numbers := map[place]int{}
	sockets := map[int]bool{}
	for i, c := range cpus {
		if c.Socket == numa.Unknown {
			continue
		}
		at := place{socket: c.Socket}
		at.book, _ = r.topologyNumber(c.ID, "book_id")
		at.drawer, _ = r.topologyNumber(c.ID, "drawer_id")
		places[i] = at
		if _, known := numbers[at]; !known {
			numbers[at] = len(numbers)
		}
		sockets[c.Socket] = true
	}
	if len(sockets) == len(numbers) {
		return
	}
	for i := range cpus {
		if cpus[i].Socket != numa.Unknown {
			cpus[i].Socket = numbers[places[i]]
		}
	}
}

// checkPackages warns where package_cpus, once core_siblings, draws other
// packages than physical_package_id does. Some kernels cut core_siblings at
// NUMA nodes or clusters; the numbers are believed.
func (r *reader) checkPackages(cpus []numa.CPU, sets cpuSets) {
	byNumber := map[int]bitset.Set{}
	for _, c := range cpus {
		if c.Socket != numa.Unknown {
			set := byNumber[c.Socket]
			set.Add(c.ID)
			byNumber[c.Socket] = set
		}
	}
	packages := newPartition(packageFiles, sets.present)
	compared := map[[2]int]bool{} // (group, socket)
	var odd bitset.Set
	for _, c := range cpus {
		if c.Socket == numa.Unknown || r.claim(packages, c.ID, cpuPath(c.ID, "/topology/")) != inGroup {
			continue
		}
		pair := [2]int{packages.claims[c.ID], c.Socket}
		differ, known := compared[pair]
		if !known {
			drawn := packages.groups[pair[0]].Intersect(sets.online)
			differ = !drawn.Equal(byNumber[c.Socket])
			compared[pair] = differ
		}
		if differ {
			odd.Add(c.ID)
		}
	}
	if !odd.IsEmpty() {
		r.warn(cpuDir, "topology/package_cpus or core_siblings of cpus %s draws other packages than their physical_package_id, which is believed", brief(odd))
	}
}
