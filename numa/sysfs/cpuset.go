package sysfs

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/musterd/muster/resource/bitset"
)

// cpuSets are the kernel's words about CPUs as a whole.
//
// Invariant: online and folders hold present CPUs only; present and online are
// not empty.
type cpuSets struct {
	present, online, isolated bitset.Set
	folders                   bitset.Set // those that have a cpuN folder
}

var (
	errNoCPU        = errors.New("names no CPU")
	errNoPresentCPU = errors.New("names no CPU that is present")
)

func (r *reader) cpuSets() (cpuSets, error) {
	sets, err := r.presentCPUs()
	if err != nil {
		return cpuSets{}, err
	}
	if possible, err := r.list(cpuDir+"/possible", maxCPU); err != nil {
		r.unneeded(cpuDir+"/possible", err)
	} else if excess := sets.present.Minus(possible); !excess.IsEmpty() {
		r.warn(cpuDir+"/possible", "leaves out cpus %s, which are present", brief(excess))
	}
	if sets.online, err = r.onlineCPUs(sets); err != nil {
		return cpuSets{}, err
	}
	sets.isolated = r.isolatedCPUs()
	return sets, nil
}

// unneeded warns about a file that is there and broken, though nothing depends
// on it. Many kernels lack such files.
func (r *reader) unneeded(path string, err error) {
	if !absent(err) {
		r.warn(path, "%v; not needed", err)
	}
}

// presentCPUs finds the CPUs that there are: by the kernel's list, which came
// with 2.6.29, or by the folders, or by proc/stat.
func (r *reader) presentCPUs() (sets cpuSets, err error) {
	folders, folderErr := r.folders(cpuDir, "cpu", maxCPU)
	present, err := r.list(cpuDir+"/present", maxCPU)
	switch {
	case err == nil && present.IsEmpty():
		err = errNoCPU
	case err == nil && !folders.IsEmpty() && present.Intersect(folders).IsEmpty():
		err = fmt.Errorf("names cpus %s, none of which has a folder", brief(present))
	}
	switch {
	case err == nil:
	case !folders.IsEmpty():
		r.warn(cpuDir+"/present", "%v; the CPUs that have a folder are taken instead: %s", err, brief(folders))
		present = folders
	default:
		stat, statErr := r.statCPUs()
		if statErr != nil {
			return cpuSets{}, fmt.Errorf("read topology: no CPU found: %s/present: %w, there is no cpuN folder, and proc/stat: %w; the root must be a folder that holds sys/", cpuDir, err, statErr)
		}
		r.warn(cpuDir+"/present", "%v, and there is no cpuN folder; the CPUs of proc/stat are taken instead: %s", err, brief(stat))
		present = stat
	}
	if folderErr != nil {
		r.warn(cpuDir, "%v; no CPU's topology can be read", folderErr)
	} else if missing := present.Minus(folders); !missing.IsEmpty() {
		r.warn(cpuDir, "cpus %s have no folder; their topology is unknown", brief(missing))
	}
	return cpuSets{present: present, folders: folders.Intersect(present)}, nil
}

// statCPUs reads the online CPUs that proc/stat counts the time of. The lines
// of CPUs come first in that file, which may be long.
func (r *reader) statCPUs() (bitset.Set, error) {
	text, _, err := r.head("proc/stat")
	if err != nil {
		return bitset.Set{}, err
	}
	return parseStat(text, maxCPU)
}

// onlineCPUs reads the list of online CPUs, or each CPU's own word where there
// is no list, or the list names no CPU that is present.
func (r *reader) onlineCPUs(sets cpuSets) (bitset.Set, error) {
	path := cpuDir + "/online"
	online, err := r.list(path, maxCPU)
	if err == nil && online.Intersect(sets.present).IsEmpty() {
		err = errNoPresentCPU
	}
	if err != nil {
		online = r.onlineOneByOne(sets, sets.present)
		r.warn(path, "%v; by the files of each CPU these are online: %q", err, brief(online))
		if online.IsEmpty() {
			return online, fmt.Errorf("read topology: none of the present cpus %s is online: %s: %w, and the online file of each CPU says 0", brief(sets.present), path, err)
		}
	}
	if excess := online.Minus(sets.present); !excess.IsEmpty() {
		r.warn(path, "cpus %s are not present; they are ignored", brief(excess))
	}
	online = online.Intersect(sets.present)
	// Possible CPUs that are absent count as offline too, so only an overlap
	// with the online ones is a contradiction.
	if offline, err := r.list(cpuDir+"/offline", maxCPU); err != nil {
		r.unneeded(cpuDir+"/offline", err)
	} else if both := online.Intersect(offline); !both.IsEmpty() {
		online = online.Minus(both).Union(r.onlineOneByOne(sets, both))
		r.warn(cpuDir+"/offline", "cpus %s are also listed online; by the files of each CPU these are offline: %q", brief(both), brief(both.Minus(online)))
		if online.IsEmpty() {
			return online, fmt.Errorf("read topology: every online cpu is also listed in %s/offline and no cpu's own files say that it is online", cpuDir)
		}
	}
	return online, nil
}

// onlineOneByOne asks for each of some CPUs its own online file. The boot CPU,
// and every CPU of a kernel without hotplug, has none, and some captures hold
// the file without its content: such a CPU is online where proc/stat has it, or
// where the kernel shows its topology, as it does for online CPUs only; on a
// kernel that shows no topology at all it is online, since nothing could have
// taken it offline.
func (r *reader) onlineOneByOne(sets cpuSets, which bitset.Set) bitset.Set {
	var online, silent, odd bitset.Set
	var example string
	for id := range which.All() {
		state, err := r.text(cpuPath(id, "/online"))
		switch {
		case absent(err):
			silent.Add(id)
		case err == nil && state == "1":
			online.Add(id)
		case err == nil && state == "0":
		default:
			if odd.IsEmpty() {
				example = fmt.Sprintf("%.40q is neither 0 nor 1", state)
				if err != nil {
					example = err.Error()
				}
			}
			odd.Add(id)
		}
	}
	if !odd.IsEmpty() {
		r.warn(cpuPath(odd.Min(), "/online"), "%s; cpus %s have such a file, which is taken as absent", example, brief(odd))
		silent = silent.Union(odd)
	}
	if silent.IsEmpty() {
		return online
	}
	if stat, err := r.statCPUs(); err == nil {
		if told := online.Union(silent.Intersect(stat)); !told.IsEmpty() {
			return told
		}
	}
	var told bitset.Set
	for id := range sets.folders.All() {
		if info, err := fs.Stat(r.fsys, cpuPath(id, "/topology")); err == nil && info.IsDir() {
			told.Add(id)
		}
	}
	if told.IsEmpty() {
		told = sets.folders
	}
	return online.Union(silent.Intersect(told))
}

// isolatedCPUs are those that the kernel keeps its scheduler from: by
// isolcpus=, which kernels before 4.2 have in their command line alone, or by a
// cgroup's isolated partition.
func (r *reader) isolatedCPUs() bitset.Set {
	path := cpuDir + "/isolated"
	isolated, err := r.list(path, maxCPU)
	if absent(err) {
		const cmdline = "proc/cmdline"
		text, textErr := r.text(cmdline)
		switch {
		case absent(textErr):
		case textErr != nil:
			r.warn(cmdline, "%v", textErr)
		default:
			if isolated, _, err = parseIsolcpus(text, maxCPU); err != nil {
				r.warn(cmdline, "%v", err)
			}
		}
	}
	if err != nil {
		r.warn(path, "%v; isolated CPUs are unknown and none is marked", err)
	}
	// Kernels since 6.7 list here the CPUs of isolated partitions.
	const partitions = "sys/fs/cgroup/cpuset.cpus.isolated"
	more, err := r.list(partitions, maxCPU)
	if err != nil && !absent(err) {
		r.warn(partitions, "%v; CPUs of isolated partitions are unknown and not marked", err)
	}
	return isolated.Union(more)
}
