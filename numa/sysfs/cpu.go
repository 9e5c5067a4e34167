package sysfs

import (
	"fmt"
	"strconv"

	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource/bitset"
)

const cpuDir = "sys/devices/system/cpu"

// cpuSets are the kernel's words about CPUs as a whole.
//
// Invariant: online and folders hold present CPUs only; present and online are
// not empty.
type cpuSets struct {
	present, online, isolated bitset.Set
	folders                   bitset.Set // those that have a cpuN folder
}

func cpuPath(id int, rest string) string { return cpuDir + "/cpu" + strconv.Itoa(id) + rest }

func (r *reader) cpuSets() (cpuSets, error) {
	folders, folderErr := r.folders(cpuDir, "cpu", maxCPU)
	present, err := r.list(cpuDir+"/present", maxCPU)
	if err == nil && present.IsEmpty() {
		err = fmt.Errorf("names no CPU")
	}
	if err != nil {
		if folders.IsEmpty() {
			return cpuSets{}, fmt.Errorf("read topology: no CPU found: %s/present: %w, and there is no cpuN folder; the root must be a folder that holds sys/", cpuDir, err)
		}
		r.warn(cpuDir+"/present", "%v; the CPUs that have a folder are taken instead: %s", err, brief(folders))
		present = folders
	}
	if folderErr != nil {
		r.warn(cpuDir, "%v; no CPU's topology can be read", folderErr)
	} else if missing := present.Minus(folders); !missing.IsEmpty() {
		r.warn(cpuDir+"/present", "cpus %s have no folder; their topology is unknown", brief(missing))
	}
	if possible, err := r.list(cpuDir+"/possible", maxCPU); err != nil {
		r.warn(cpuDir+"/possible", "%v; not needed", err)
	} else if excess := present.Minus(possible); !excess.IsEmpty() {
		r.warn(cpuDir+"/possible", "leaves out cpus %s, which are present", brief(excess))
	}
	sets := cpuSets{present: present, folders: folders.Intersect(present)}
	if sets.online, err = r.onlineCPUs(sets); err != nil {
		return cpuSets{}, err
	}
	sets.isolated, err = r.list(cpuDir+"/isolated", maxCPU)
	if err != nil {
		r.warn(cpuDir+"/isolated", "%v; isolated CPUs are unknown and none is marked", err)
	}
	return sets, nil
}

// onlineCPUs reads the list of online CPUs, or each CPU's own word where there
// is no list.
func (r *reader) onlineCPUs(sets cpuSets) (bitset.Set, error) {
	path := cpuDir + "/online"
	online, err := r.list(path, maxCPU)
	if err != nil {
		for id := range sets.folders.All() {
			if r.saysOnline(id) {
				online.Add(id)
			}
		}
		r.warn(path, "%v; by the files of each CPU these are online: %s", err, brief(online))
	}
	if excess := online.Minus(sets.present); !excess.IsEmpty() {
		r.warn(path, "cpus %s are not present; they are ignored", brief(excess))
	}
	online = online.Intersect(sets.present)
	if online.IsEmpty() {
		return online, fmt.Errorf("read topology: none of the present cpus %s is online by %s", brief(sets.present), path)
	}
	// Possible CPUs that are absent count as offline too, so only an overlap
	// with the online ones is a contradiction.
	if offline, err := r.list(cpuDir+"/offline", maxCPU); err != nil {
		r.warn(cpuDir+"/offline", "%v; not needed", err)
	} else if both := online.Intersect(offline); !both.IsEmpty() {
		for id := range both.All() {
			if !r.saysOnline(id) {
				online.Remove(id)
			}
		}
		r.warn(cpuDir+"/offline", "cpus %s are also listed online; by the files of each CPU these are offline: %q", brief(both), brief(both.Minus(online)))
		if online.IsEmpty() {
			return online, fmt.Errorf("read topology: every online cpu is also listed in %s/offline and no cpu's own files say that it is online", cpuDir)
		}
	}
	return online, nil
}

// saysOnline asks one CPU's files: its online file, which the boot CPU and
// kernels without hotplug lack, or else its topology, which the kernel shows
// for online CPUs only.
func (r *reader) saysOnline(id int) bool {
	state, err := r.text(cpuPath(id, "/online"))
	if err == nil {
		return state == "1"
	}
	if !absent(err) {
		r.warn(cpuPath(id, "/online"), "%v; taken as offline", err)
		return false
	}
	_, err = r.text(cpuPath(id, "/topology/physical_package_id"))
	return err == nil
}

// cpus reads every present CPU; its node is left unknown.
func (r *reader) cpus(sets cpuSets) []numa.CPU {
	cpus := make([]numa.CPU, 0, sets.present.Len())
	cores := newPartition(siblingFiles, sets.present)
	l3 := newPartition(l3Files, sets.present)
	var hint l3Index
	for id := range sets.present.All() {
		c := numa.CPU{
			ID: id, Socket: numa.Unknown, Core: numa.Unknown, L3: numa.Unknown, NUMA: numa.Unknown,
			Online: sets.online.Has(id), Isolated: sets.isolated.Has(id),
		}
		// The kernel removes the topology and caches of a CPU that goes
		// offline, so what a file of an offline CPU would tell is stale.
		if c.Online && sets.folders.Has(id) {
			c.Socket = r.topologyNumber(id, "physical_package_id")
			c.Core = r.topologyNumber(id, "core_id")
			if !r.claim(cores, id, cpuPath(id, "/topology/")) {
				r.warn(cpuPath(id, "/topology"), "no file names its sibling threads")
			}
			if dir, ok := r.l3Folder(id, &hint); ok && !r.claim(l3, id, dir) {
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
	return cpus
}

// topologyNumber reads a number of a CPU's topology folder. The kernel prints
// -1 where the platform does not tell, which is no fault.
func (r *reader) topologyNumber(id int, name string) int {
	path := cpuPath(id, "/topology/"+name)
	n, err := r.number(path)
	if err != nil {
		r.warn(path, "%v; unknown", err)
		return numa.Unknown
	}
	return n
}

// l3Index is the cache index that was level 3 on the CPU read before.
type l3Index int

const maxCacheIndex = 16

// l3Folder finds a CPU's level 3 cache; ok is false where there is none, as
// on many virtual machines.
func (r *reader) l3Folder(id int, hint *l3Index) (dir string, ok bool) {
	isL3 := func(index int) (yes, exists bool) {
		dir = cpuPath(id, "/cache/index"+strconv.Itoa(index)+"/")
		level, err := r.text(dir + "level")
		if err != nil && !absent(err) {
			r.warn(dir+"level", "%v; the cache is ignored", err)
		}
		return level == "3", !absent(err)
	}
	if *hint > 0 {
		if yes, _ := isL3(int(*hint)); yes {
			return dir, true
		}
	}
	for index := range maxCacheIndex {
		yes, exists := isL3(index)
		if yes {
			*hint = l3Index(index)
			return dir, true
		}
		if !exists {
			break
		}
	}
	return "", false
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
