package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource/bitset"
)

var errEmptySet = errors.New("an empty set")

// cpusetFlavour is how a hierarchy of cpusets names its files; the first name
// that exists is read. Sources: Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/cpusets.rst.
type cpusetFlavour uint8

const (
	noCpuset     cpusetFlavour = iota
	cpusetV2                   // cgroup2
	cpusetV1                   // cgroup with the controller cpuset
	cpusetLegacy               // cpuset, or cgroup with noprefix
)

var cpusetFiles = [...]struct{ cpus, mems []string }{
	cpusetV2:     {[]string{"cpuset.cpus.effective"}, []string{"cpuset.mems.effective"}},
	cpusetV1:     {[]string{"cpuset.effective_cpus", "cpuset.cpus"}, []string{"cpuset.effective_mems", "cpuset.mems"}},
	cpusetLegacy: {[]string{"effective_cpus", "cpus"}, []string{"effective_mems", "mems"}},
}

// A cpusetMount is where a hierarchy of cpusets is mounted.
type cpusetMount struct {
	flavour cpusetFlavour
	point   string // without its leading slash
	root    string // the cgroup that is seen there, "/" for all
}

// cpusetAllows reads the CPUs that the cpuset of the tree's own process allows.
func (r *reader) cpusetAllows() (cpus bitset.Set, ok bool) {
	mount, ok := r.cpusetMount()
	if !ok {
		return bitset.Set{}, false
	}
	group, ok := r.cpusetOfSelf(mount.flavour)
	if !ok {
		return bitset.Set{}, false
	}
	dir := path.Join(mount.point, belowMount(group, mount.root))
	if !fs.ValidPath(dir) {
		r.warn("proc/self", "the cgroup %.80q is no path", dir)
		return bitset.Set{}, false
	}
	files := cpusetFiles[mount.flavour]
	cpus, _, ok = r.climb(dir, mount.point, files.cpus, maxCPU)
	if mems, file, known := r.climb(dir, mount.point, files.mems, maxNode); known {
		r.checkMems(file, mems)
	}
	return cpus, ok
}

// belowMount is where a cgroup stands below a mount that shows root alone. A
// cgroup outside it, as seen from within a cgroup namespace, is taken for the
// mount itself, which bounds it.
func belowMount(group, root string) string {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' || slices.Contains(strings.Split(rest, "/"), "..") {
		return ""
	}
	return rest
}

// climb reads the first of names in dir, or else in the folders above it up to
// top: a cgroup without the controller is bound by the next one that has it.
func (r *reader) climb(dir, top string, names []string, limit int) (s bitset.Set, file string, ok bool) {
	const most = 64 // levels
	for range most {
		for _, name := range names {
			file = dir + "/" + name
			s, err := r.list(file, limit)
			if err == nil && s.IsEmpty() {
				err = errEmptySet
			}
			if err == nil {
				return s, file, true
			}
			if !absent(err) {
				r.warn(file, "%v; what the cgroup allows is unknown", err)
				return bitset.Set{}, file, false
			}
		}
		if dir == top || len(dir) < len(top) {
			break
		}
		dir = path.Dir(dir)
	}
	return bitset.Set{}, "", false
}

// cpusetMount finds the hierarchy that has the cpuset controller: one of
// version 1 where there is one, else the unified one.
func (r *reader) cpusetMount() (found cpusetMount, ok bool) {
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
			// The more special flavour wins, in any order.
			m, ok := parse(line)
			if !ok {
				continue
			}
			if c, ok := m.cpusets(); ok && c.flavour > found.flavour {
				found = c
			}
		}
		if found.flavour != noCpuset {
			return found, true
		}
	}
	return cpusetMount{}, false
}

// mount is a line of a table of mounts.
type mount struct {
	point   string // without its leading slash
	root    string // the folder of the file system that is seen there, "/" for all
	kind    string
	options string // of the file system
}

func newMount(point, root, kind, options string) mount {
	return mount{strings.TrimPrefix(path.Clean("/"+unescape(point)), "/"), unescape(root), kind, options}
}

// mountOf reads a line of /proc/mounts: device, mount point, type, options
// (proc_mounts(5)).
func mountOf(line string) (m mount, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return mount{}, false
	}
	return newMount(fields[1], "/", fields[2], fields[3]), true
}

// mountinfoOf reads a line of /proc/self/mountinfo: id, parent, device, root,
// mount point, options, optional fields, "-", type, source, options of the file
// system (proc_pid_mountinfo(5)).
func mountinfoOf(line string) (m mount, ok bool) {
	before, super, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(super)
	if !ok || len(left) < 6 || len(right) < 3 {
		return mount{}, false
	}
	return newMount(left[4], left[3], right[0], right[2]), true
}

// cpusets is the hierarchy of cpusets that a mount shows; ok is false for mounts
// without cpusets.
func (m mount) cpusets() (c cpusetMount, ok bool) {
	c = cpusetMount{point: m.point, root: m.root}
	has := func(option string) bool { return slices.Contains(strings.Split(m.options, ","), option) }
	switch {
	case m.kind == "cgroup2":
		c.flavour = cpusetV2
	case m.kind == "cpuset", m.kind == "cgroup" && has("cpuset") && has("noprefix"):
		c.flavour = cpusetLegacy
	case m.kind == "cgroup" && has("cpuset"):
		c.flavour = cpusetV1
	}
	return c, c.flavour != noCpuset && c.point != "" && fs.ValidPath(c.point)
}

// unescape replaces the octal escapes of white space in mount tables.
func unescape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		if text[0] == '\\' && len(text) >= 4 {
			if code, err := strconv.ParseUint(text[1:4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				text = text[4:]
				continue
			}
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String()
}

// cpusetOfSelf is the cgroup of the tree's own process in the hierarchy of
// cpusets.
func (r *reader) cpusetOfSelf(flavour cpusetFlavour) (group string, ok bool) {
	const cgroups, cpuset = "proc/self/cgroup", "proc/self/cpuset"
	text, err := r.text(cgroups)
	if err == nil {
		if group, err = parseCgroup(text, flavour == cpusetV2); err == nil {
			return group, true
		}
	}
	if !absent(err) {
		r.warn(cgroups, "%v", err)
	}
	if group, err = r.text(cpuset); err == nil && strings.HasPrefix(group, "/") {
		return group, true
	}
	if err == nil {
		err = fmt.Errorf("%.80q is no path", group)
	}
	if !absent(err) {
		r.warn(cpuset, "%v", err)
	}
	return "", false
}

// parseCgroup finds the line of a hierarchy in /proc/self/cgroup
// ("id:controllers:path", cgroups(7)): the unified one, or that of cpuset.
func parseCgroup(text string, unified bool) (group string, err error) {
	controller := "cpuset"
	if unified {
		controller = ""
	}
	if group, ok := groupOf(text, controller); ok {
		return group, nil
	}
	return "", errors.New("no line of the hierarchy that has cpusets")
}
