package sysfs

import (
	"fmt"
	"strconv"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

const cpuDir = "sys/devices/system/cpu"

func cpuPath(id int, rest string) string { return cpuDir + "/cpu" + strconv.Itoa(id) + rest }

// A CPU's topology folder as it is read: which CPUs lack which file. Kernels
// and ports without a file lack it for every CPU, which is one fault.
type topologyGaps struct {
	all                  bitset.Set // CPUs with nothing at all
	socket, core, thread bitset.Set
}

// cpus reads every present CPU; its node is left unknown.
func (r *reader) cpus(sets cpuSets) []numa.CPU {
	cpus := make([]numa.CPU, 0, sets.present.Len())
	cores := newPartition(coreFiles, sets.present)
	cores.most = numa.MaxSiblings
	l3 := newPartition(l3Files, sets.present)
	var gaps topologyGaps
	var hint l3Index
	for id := range sets.present.All() {
		c := numa.CPU{
			ID: id, Socket: numa.Unknown, Core: numa.Unknown, L3: numa.Unknown, NUMA: numa.Unknown,
			Online: sets.online.Has(id), Isolated: sets.isolated.Has(id),
		}
		// The kernel removes the topology and caches of a CPU that goes
		// offline, so the file of an offline CPU is stale.
		if c.Online && sets.folders.Has(id) {
			r.place(&c, cores, &gaps)
			if dir, ok := r.l3Folder(id, &hint); ok && r.claim(l3, id, dir) == unclaimed {
				r.warn(dir, "no file names the CPUs that share it; the L3 group is unknown")
			}
		}
		cpus = append(cpus, c)
	}
	r.settle(cores, "a core; each is taken as a core of its own")
	r.settle(l3, "an L3 cache; their groups are unknown")
	for i := range cpus {
		c := &cpus[i]
		var ok bool
		if _, c.Siblings, ok = cores.group(c.ID); !ok {
			c.Siblings = bitset.Of(c.ID)
		}
		if number, _, ok := l3.group(c.ID); ok {
			c.L3 = number
		}
	}
	r.setSockets(cpus, sets)
	r.setSocketsBySiblings(cpus, sets)
	for _, c := range cpus {
		if c.Socket != numa.Unknown {
			gaps.socket.Remove(c.ID)
		}
	}
	r.report(gaps)
	r.checkPackages(cpus, sets)
	r.setKinds(cpus, sets)
	return cpus
}

// place reads the topology folder of a CPU that is online.
func (r *reader) place(c *numa.CPU, cores *partition, gaps *topologyGaps) {
	var hasSocket, hasCore bool
	c.Socket, hasSocket = r.topologyNumber(c.ID, "physical_package_id")
	c.Core, hasCore = r.topologyNumber(c.ID, "core_id")
	outcome := r.claim(cores, c.ID, cpuPath(c.ID, "/topology/"))
	if outcome == unclaimed {
		r.warn(cpuPath(c.ID, "/topology"), "no file names its sibling threads; it is taken as a core of its own unless another CPU names it")
	}
	switch {
	case !hasSocket && !hasCore && outcome == unmentioned:
		gaps.all.Add(c.ID)
		return
	case outcome == unmentioned:
		gaps.thread.Add(c.ID)
	}
	if !hasSocket {
		gaps.socket.Add(c.ID)
	}
	if !hasCore {
		gaps.core.Add(c.ID)
	}
}

// report warns once about each file that CPUs lack.
func (r *reader) report(gaps topologyGaps) {
	lack := func(which bitset.Set, what, unknown string) {
		if !which.IsEmpty() {
			r.warn(cpuDir, "cpus %s show no %s; %s", brief(which), what, unknown)
		}
	}
	lack(gaps.all, "topology", "their sockets and cores are unknown, and each is taken as a core of its own unless another CPU names it")
	lack(gaps.socket, "topology/physical_package_id", "their sockets are unknown")
	lack(gaps.core, "topology/core_id", "their core numbers are unknown")
	lack(gaps.thread, "sibling threads", "each is taken as a core of its own unless another CPU names it")
}

// topologyNumber reads a number of a CPU's topology folder. The kernel prints
// -1 where the platform does not report, which is no fault. exists is false where
// the file is absent, which the caller reports; other faults are warned about.
func (r *reader) topologyNumber(id int, name string) (n int, exists bool) {
	path := cpuPath(id, "/topology/"+name)
	n, err := r.number(path)
	if err == nil {
		return n, true
	}
	if !absent(err) {
		r.warn(path, "%v; unknown", err)
	}
	return numa.Unknown, !absent(err)
}

// brief prints a set, shortened where a hostile tree makes it long.
func brief(s bitset.Set) string {
	const most = 200
	text := s.String()
	if len(text) > most {
		return fmt.Sprintf("%s… (%d in all)", text[:most], s.Len())
	}
	return text
}
