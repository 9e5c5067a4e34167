// Package bounds says what binds the processes of one member on this host: which CPUs,
// NUMA nodes and device files they may use, and how much of the rest. It writes the
// limits in the words of the kernel's cgroups (the unified hierarchy, cgroup-v2.rst of the
// kernel's documentation), and names those that a host cannot enforce. It starts nothing
// and limits nothing itself.
package bounds

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Bounds bind the processes of one member. The zero value binds nothing.
type Bounds struct {
	// CPUs and Nodes are the CPUs and the NUMA nodes of memory, by the kernel's numbers;
	// none: all.
	CPUs  []int `json:"cpus,omitempty"`
	Nodes []int `json:"nodes,omitempty"`
	// Millicores is the time on the CPUs, in thousandths of one; 0: all of CPUs.
	Millicores resource.Millicores `json:"millicores,omitempty"`
	// Memory is in ordinary pages; 0: no bound.
	Memory resource.Bytes `json:"memory,omitempty"`
	// Hugepages are ascending by Size, one for each size of the host.
	Hugepages []Hugepages `json:"hugepages,omitempty"`
	// Tasks bounds processes and threads together; 0: no bound.
	Tasks int64 `json:"tasks,omitempty"`
	// Devices are the files that the processes may open, nil for all files. Those
	// that every program needs, such as /dev/null, come on top.
	Devices []string `json:"devices"`
}

// Hugepages is the bound of the huge pages of one size.
type Hugepages struct {
	Size  resource.Bytes `json:"size"`
	Bytes resource.Bytes `json:"bytes"`
}

// Limits are the greatest amounts where they are greater than the requests; 0 stands for
// the request.
type Limits struct {
	CPU    resource.Millicores
	Memory resource.Bytes
}

// Of returns the bounds of a member by what it is assigned, and by its limits.
// pageSizes are the sizes of huge pages that the host has. Devices stay nil.
func Of(a resource.Assignment, l Limits, pageSizes []resource.Bytes) Bounds {
	var b Bounds
	var nodes bitset.Set
	b.CPUs = a.CPUSet().Members()
	for _, c := range a.CPUs {
		b.Millicores += c.Milli
	}
	for _, m := range a.Memory {
		nodes.Add(m.Node)
		b.Memory += m.Bytes
	}
	huge := map[resource.Bytes]resource.Bytes{}
	for _, size := range pageSizes {
		huge[size] = 0
	}
	for _, h := range a.Hugepages {
		nodes.Add(h.Node)
		huge[h.Size] += h.Bytes
	}
	for size, bytes := range huge {
		b.Hugepages = append(b.Hugepages, Hugepages{size, bytes})
	}
	slices.SortFunc(b.Hugepages, func(a, b Hugepages) int { return cmp.Compare(a.Size, b.Size) })
	b.Nodes = nodes.Members()
	b.Millicores = max(b.Millicores, l.CPU)
	if b.Millicores >= resource.WholeCPU*resource.Millicores(len(b.CPUs)) { // the CPUs bind enough
		b.Millicores = 0
	}
	b.Memory = max(b.Memory, l.Memory)
	return b
}

// Bounds of Bounds.
const (
	maxID      = 1024 // of a CPU or NUMA node, as of shim.Spec
	maxDevices = 4096
	maxPath    = 256
)

// Check judges bounds that another process has sent. The error names the field.
func (b *Bounds) Check() error {
	for _, list := range []struct {
		name string
		ids  []int
	}{{"cpus", b.CPUs}, {"nodes", b.Nodes}} {
		if len(list.ids) > maxID {
			return fmt.Errorf("%s: %d, want at most %d", list.name, len(list.ids), maxID)
		}
		for _, id := range list.ids {
			if id < 0 || id >= maxID {
				return fmt.Errorf("%s: %d is outside 0..%d", list.name, id, maxID-1)
			}
		}
	}
	if b.Millicores < 0 || b.Memory < 0 || b.Tasks < 0 {
		return fmt.Errorf("millicores %d, memory %d or tasks %d is negative", b.Millicores, b.Memory, b.Tasks)
	}
	if len(b.Hugepages) > 16 || len(b.Devices) > maxDevices {
		return fmt.Errorf("%d sizes of huge pages and %d devices, want at most 16 and %d", len(b.Hugepages), len(b.Devices), maxDevices)
	}
	for _, h := range b.Hugepages {
		if h.Size <= 0 || h.Bytes < 0 {
			return fmt.Errorf("hugepages: %d bytes in pages of %d", h.Bytes, h.Size)
		}
	}
	for _, path := range b.Devices {
		if len(path) > maxPath || !strings.HasPrefix(path, "/dev/") || filepath.Clean(path) != path {
			return fmt.Errorf("devices: %.80q is no path below /dev", path)
		}
	}
	return nil
}

// Controllers are the controllers of cgroups that a host has for members.
type Controllers []string

// Has reports whether the host has a controller.
func (c Controllers) Has(name string) bool { return slices.Contains(c, name) }

// period is the time in which cpu.max counts, in microseconds: the kernel's default.
const period = 100_000

// Files are the files of a member's cgroup with what is written into them, by name, as
// far as the host has the controllers.
func (b *Bounds) Files(has Controllers) map[string]string {
	files := map[string]string{}
	put := func(controller, name, value string) {
		if has.Has(controller) {
			files[controller+"."+name] = value
		}
	}
	if len(b.CPUs) > 0 {
		put("cpuset", "cpus", list(b.CPUs))
	}
	if len(b.Nodes) > 0 {
		put("cpuset", "mems", list(b.Nodes))
	}
	if b.Millicores > 0 {
		put("cpu", "max", fmt.Sprintf("%d %d", max(int64(b.Millicores)*period/int64(resource.WholeCPU), 1000), period)) // the kernel's least quota
	}
	if b.Memory > 0 {
		put("memory", "max", strconv.FormatInt(int64(b.Memory), 10))
	}
	for _, h := range b.Hugepages {
		put("hugetlb", pageName(h.Size)+".max", strconv.FormatInt(int64(h.Bytes), 10))
	}
	if b.Tasks > 0 {
		put("pids", "max", strconv.FormatInt(b.Tasks, 10))
	}
	return files
}

// pageName is the kernel's name of a size of huge pages: 64KB, 2MB, 1GB.
func pageName(size resource.Bytes) string {
	switch {
	case size >= 1<<30:
		return strconv.FormatInt(int64(size>>30), 10) + "GB"
	case size >= 1<<20:
		return strconv.FormatInt(int64(size>>20), 10) + "MB"
	default:
		return strconv.FormatInt(int64(size>>10), 10) + "KB"
	}
}

// list prints numbers in the kernel's list format.
func list(ids []int) string {
	var s bitset.Set
	for _, id := range ids {
		s.Add(id)
	}
	return s.String()
}

// NotEnforced names the parts of a grant that bind no process on a host with these
// controllers. affinity: processes get the affinity of their CPUs. devices: they cannot
// open the files of other devices.
func NotEnforced(has Controllers, affinity, devices bool) []string {
	var missing []string
	for _, part := range []struct {
		name     string
		enforced bool
	}{
		{"cpus", affinity || has.Has("cpuset")},
		{"cpu-time", has.Has("cpu")},
		{"numa-memory", has.Has("cpuset")},
		{"memory", has.Has("memory")},
		{"hugepages", has.Has("hugetlb")},
		{"tasks", has.Has("pids")},
		{"devices", devices},
	} {
		if !part.enforced {
			missing = append(missing, part.name)
		}
	}
	return missing
}
