package sysfs

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// Limits are the smallest limits of the cgroups that hold a process: of its own
// cgroup and of those above it. A field is 0, and its file "", without a limit.
// Sources: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and
// scheduler/sched-bwc.rst.
type Limits struct {
	Memory     resource.Bytes
	MemoryFile string
	CPU        resource.Millicores // processors that may be busy at a time, 1000 for one
	CPUFile    string
}

// noMemoryLimit: version 1 of cgroups writes the greatest whole number of pages
// where there is no limit. Nothing has as much memory.
const noMemoryLimit = math.MaxInt64 &^ (1<<20 - 1)

// ReadLimits reads the limits on memory and processor time of the process that
// the tree shows as itself. A file that is there and broken gives a Warning.
// A cgroup above the mount, as that around a container, is seen only as far as
// the mount shows it. It blocks on the file system alone.
func ReadLimits(fsys fs.FS) (Limits, []Warning) {
	r := newReader(fsys)
	var l Limits
	mounts := r.cgroupMounts()
	memory, file := r.least(r.groupDirs(mounts, "memory"), r.memoryLimit)
	l.Memory, l.MemoryFile = resource.Bytes(memory), file
	cpu, file := r.least(r.groupDirs(mounts, "cpu"), r.cpuLimit)
	l.CPU, l.CPUFile = resource.Millicores(cpu), file
	return l, r.faults()
}

// cgroupMounts lists the mounted hierarchies of cgroups, in the order of the
// first table that has any.
func (r *reader) cgroupMounts() (mounts []mount) {
	for _, file := range []string{"proc/self/mountinfo", "proc/self/mounts", "proc/mounts"} {
		text, _, err := r.head(file)
		if err != nil {
			if !absent(err) {
				r.warn(file, "%v", err)
			}
			continue
		}
		parse := mountOf
		if path.Base(file) == "mountinfo" {
			parse = mountinfoOf
		}
		for line := range strings.Lines(text) {
			if m, ok := parse(line); ok && (m.kind == "cgroup" || m.kind == "cgroup2") && m.point != "" && fs.ValidPath(m.point) {
				mounts = append(mounts, m)
			}
		}
		if mounts != nil {
			return mounts
		}
	}
	return nil
}

// groupDirs lists the folders of the process's cgroup with a controller, from its
// own to the mount. A hierarchy of version 1 that has the controller comes before
// the unified one.
func (r *reader) groupDirs(mounts []mount, controller string) (dirs []string) {
	has := func(m mount) bool {
		return m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), controller)
	}
	i := slices.IndexFunc(mounts, has)
	if i < 0 {
		i = slices.IndexFunc(mounts, func(m mount) bool { return m.kind == "cgroup2" })
	}
	if i < 0 {
		return nil
	}
	m := mounts[i]
	const cgroups = "proc/self/cgroup"
	text, err := r.text(cgroups)
	if err != nil {
		if !absent(err) {
			r.warn(cgroups, "%v; the limits of this process are unknown", err)
		}
		return nil
	}
	if m.kind == "cgroup2" {
		controller = ""
	}
	group, ok := groupOf(text, controller)
	if !ok {
		return nil
	}
	dir := path.Join(m.point, belowMount(group, m.root))
	if !fs.ValidPath(dir) {
		r.warn(cgroups, "the cgroup %.80q is no path", dir)
		return nil
	}
	const most = 64 // levels
	for range most {
		dirs = append(dirs, dir)
		if dir == m.point || len(dir) < len(m.point) {
			break
		}
		dir = path.Dir(dir)
	}
	return dirs
}

// groupOf finds a process's cgroup in the hierarchy with a controller, or in the
// unified one for "" ("id:controllers:path", cgroups(7)).
func groupOf(text, controller string) (group string, ok bool) {
	for line := range strings.Lines(text) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok || !strings.HasPrefix(group, "/") {
			continue
		}
		if controller == "" && id == "0" && controllers == "" || controller != "" && slices.Contains(strings.Split(controllers, ","), controller) {
			return group, true
		}
	}
	return "", false
}

// least reads a limit from each folder and returns the smallest, and its file. A
// limit of 0 is none.
func (r *reader) least(dirs []string, limit func(dir string) (n int64, file string, err error)) (smallest int64, where string) {
	for _, dir := range dirs {
		n, file, err := limit(dir)
		switch {
		case err != nil && !absent(err):
			r.warn(file, "%v; this limit is unknown", err)
		case err == nil && n > 0 && (smallest == 0 || n < smallest):
			smallest, where = n, file
		}
	}
	return smallest, where
}

// memoryLimit reads memory.max of a folder, in bytes or "max", or
// memory.limit_in_bytes of version 1.
func (r *reader) memoryLimit(dir string) (n int64, file string, err error) {
	file = dir + "/memory.max"
	text, err := r.text(file)
	if absent(err) {
		file = dir + "/memory.limit_in_bytes"
		text, err = r.text(file)
	}
	if err != nil || text == "max" {
		return 0, file, err
	}
	bytes, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return 0, file, fmt.Errorf("%.40q is no number of bytes", text)
	case bytes >= noMemoryLimit:
		return 0, file, nil
	}
	return max(int64(bytes), 1), file, nil
}

// cpuLimit reads cpu.max of a folder, "QUOTA PERIOD" in microseconds or "max
// PERIOD", or cpu.cfs_quota_us, -1 for none, and cpu.cfs_period_us of version 1.
// The result is in millicores.
func (r *reader) cpuLimit(dir string) (n int64, file string, err error) {
	file = dir + "/cpu.max"
	text, err := r.text(file)
	quota, period, _ := strings.Cut(text, " ")
	if absent(err) {
		file = dir + "/cpu.cfs_quota_us"
		if quota, err = r.text(file); err == nil {
			period, err = r.text(dir + "/cpu.cfs_period_us")
		}
	}
	if err != nil || quota == "max" || quota == "-1" {
		return 0, file, err
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	if err != nil || q <= 0 {
		return 0, file, fmt.Errorf("%.40q is no quota in microseconds", quota)
	}
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil || p <= 0 || p > longestPeriod {
		return 0, file, fmt.Errorf("%.40q is no period of 1 to %d microseconds", period, longestPeriod)
	}
	if q/p >= maxCPU {
		return 0, file, nil // more than any host has
	}
	return max(q/p*1000+q%p*1000/p, 1), file, nil
}

// longestPeriod is a second, the kernel's own bound.
const longestPeriod = 1_000_000
