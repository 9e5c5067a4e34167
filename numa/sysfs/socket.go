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

// setSocketsBySiblings gives CPUs without a physical_package_id the socket that
// package_cpus, once core_siblings, draws: kernels of POWER and s390 show -1 for
// every CPU beside the true siblings. A package whose other CPUs have a number
// has the same one; others are counted behind the greatest.
//
// Kernels that know no packages show each CPU, or each core, as a package of its
// own (include/linux/topology.h): where no CPU is drawn with one of another core
// the files report nothing.
func (r *reader) setSocketsBySiblings(cpus []numa.CPU, sets cpuSets) {
	packages := newPartition(packageFiles, sets.present)
	for _, c := range cpus {
		if c.Socket == numa.Unknown && c.Online && sets.folders.Has(c.ID) {
			r.claim(packages, c.ID, cpuPath(c.ID, "/topology/"))
		}
	}
	if len(packages.claims) == 0 {
		return
	}
	r.settle(packages, "a package; their sockets are unknown")
	sockets := map[int]int{} // by number of the package
	next, telling := 0, false
	for _, c := range cpus {
		number, members, ok := packages.group(c.ID)
		if c.Socket != numa.Unknown {
			next = max(next, c.Socket+1)
			if ok {
				sockets[number] = c.Socket
			}
		}
		telling = telling || ok && c.Online && !members.Minus(c.Siblings).Intersect(sets.online).IsEmpty()
	}
	if !telling {
		return
	}
	for i := range cpus {
		c := &cpus[i]
		number, _, ok := packages.group(c.ID)
		if !ok || !c.Online || c.Socket != numa.Unknown {
			continue
		}
		socket, known := sockets[number]
		if !known {
			socket = next
			sockets[number] = socket
			next++
		}
		c.Socket = socket
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
