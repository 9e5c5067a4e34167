package sysfs

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

func FuzzList(f *testing.F) {
	for _, text := range []string{"", "0", "0-5,48-53", "16-19,56-59,36-39", "0-31:2/8", "65535", "0-65535", "3-1", "0-4294967295", "\xff", "0-2\n\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, beyond, err := parseList(text, maxCPU)
		if err != nil {
			return
		}
		again, _, err := parseList(s.String(), maxCPU)
		if err != nil || !again.Equal(s) {
			t.Errorf("list %q prints as %q, which reads as %q: %v", text, s, again, err)
		}
		if kernel, err := bitset.Parse(text); err == nil && !beyond && !kernel.Equal(s) {
			t.Errorf("list %q reads as %q, by bitset.Parse as %q", text, s, kernel)
		}
	})
}

func FuzzMask(f *testing.F) {
	for _, text := range []string{"", "0", "f", "0000,00000fff", "00000000,003f0000,0000003f", "ffffffff,ffffffff,,1", "0xff", "000000001", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const limit = maxNode
		s, beyond, err := parseMask(text, limit)
		if err != nil {
			return
		}
		if s.Len() > limit+1 || !beyond && s.Len() != ones(text) {
			t.Errorf("mask %q has %d members, its digits have %d ones", text, s.Len(), ones(text))
		}
	})
}

// ones counts the bits of hexadecimal digits.
func ones(text string) int {
	n := 0
	for _, c := range strings.ToLower(text) {
		if c != ',' {
			for v := strings.IndexRune("0123456789abcdef", c); v > 0; v >>= 1 {
				n += v & 1
			}
		}
	}
	return n
}

func FuzzMeminfo(f *testing.F) {
	for _, text := range []string{
		"\nNode 0 MemTotal:       32489480 kB\n", "MemTotal: 18446744073709551615 kB", "MemTotal: 5 MB", "MemTotal:",
		"Node 3 MemTotal: 1 kB\nNode 3 HugePages_Total:     7\n", "HugePages_Total: -1\nHugepagesize: 2048 kB\n", "Hugepagesize: 4294967296 kB",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseMemTotal(text); err == nil && (n < 0 || n > resource.MaxMemory || n%1024 != 0) {
			t.Errorf("meminfo %q reads as %d", text, n)
		}
		if n, err := parseHugePagesTotal(text); err == nil && n < 0 {
			t.Errorf("meminfo %q has %d huge pages", text, n)
		}
		if kb, err := parseHugePageSize(text); err == nil && kb < 1 {
			t.Errorf("meminfo %q has huge pages of %d kB", text, kb)
		}
	})
}

func FuzzDistances(f *testing.F) {
	for _, text := range []string{"10 21 21 31", "10 21\n", "10  16\t16 22 ", "0 1 2 3", "255 256 1 1", "-1 1 1 1", "ten"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, err := parseDistances(text, 4)
		if err == nil && len(row) != 4 {
			t.Errorf("row %q has %d distances", text, len(row))
		}
		for _, d := range row {
			if d < 1 || d > 255 {
				t.Errorf("row %q has distance %d", text, d)
			}
		}
	})
}

// FuzzNumbers reads what stands alone in a file: ids, counts, sizes.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{"", "0", "-1", "-2", "2147483647", "2147483648", "1e3", "0x10", "+5", " 5", "9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseNumber(text); err == nil && n < -1 {
			t.Errorf("number %q reads as %d", text, n)
		}
		if n, err := parseCount(text); err == nil && n < 0 {
			t.Errorf("count %q reads as %d", text, n)
		}
	})
}

// FuzzProc reads what the kernel tells of processes: their status, cgroups,
// mounts, the command line and the times of CPUs.
func FuzzProc(f *testing.F) {
	for _, text := range []string{
		"Cpus_allowed:\tff\nCpus_allowed_list:\t0-3\n", "cpu  1 2 3\ncpu0 1 2 3\ncpu4294967296 1\nintr 5 6\n",
		"ro isolcpus=nohz,domain,2-31:2/8 quiet", "isolcpus=", "isolcpus=domain,",
		"0::/user.slice\n", "5:cpuset:/jjh\n0::/\n", "4:cpu,cpuset:../..\n", "none /dev/cpuset cgroup rw,cpuset,noprefix 0 0\n",
		`cgroup /sys/fs/cgroup/cpu\040set cgroup rw,cpuset 0 0`, "cgroup2 \\777 cgroup2 rw 0 0", "cgroup2 / cgroup2 rw 0 0",
		"36 35 0:30 /docker/a /sys/fs/cgroup ro,nosuid shared:9 - cgroup2 cgroup rw\n", "36 35 0:30 / /a - cpuset",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, _, err := parseAllowed(text, "Cpus_allowed_list", maxCPU); err == nil && s.Len() > maxCPU+1 {
			t.Errorf("status %q has %d members", text, s.Len())
		}
		if s, err := parseStat(text, maxCPU); err == nil && (s.IsEmpty() || s.Len() > maxCPU+1) {
			t.Errorf("stat %q has %d CPUs", text, s.Len())
		}
		if s, found, err := parseIsolcpus(text, maxCPU); err == nil && (s.Len() > maxCPU+1 || !found && !s.IsEmpty()) {
			t.Errorf("command line %q isolates %q, found %t", text, s, found)
		}
		for _, parse := range []func(string) (mount, bool){mountOf, mountinfoOf} {
			m, _ := parse(text)
			if c, ok := m.cpusets(); ok && (c.point == "" || c.point[0] == '/' || c.flavour == noCpuset) {
				t.Errorf("mount %q is at %q, flavour %d", text, c.point, c.flavour)
			}
		}
		limited := tree{
			"proc/self/cgroup": "0::/\n", "proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
			"sys/fs/cgroup/memory.max": text, "sys/fs/cgroup/cpu.max": text,
		}
		if l, _ := ReadLimits(limited.fs()); l.Memory < 0 || l.CPU < 0 || (l.Memory > 0) != (l.MemoryFile != "") || (l.CPU > 0) != (l.CPUFile != "") {
			t.Errorf("limits %q are %+v", text, l)
		}
		for _, unified := range []bool{true, false} {
			if group, err := parseCgroup(text, unified); err == nil && !strings.HasPrefix(group, "/") {
				t.Errorf("cgroup %q is %q", text, group)
			}
		}
	})
}

// FuzzRead puts any content into any file of a healthy host.
func FuzzRead(f *testing.F) {
	host := twoNodes()
	paths := []string{
		cpuDir + "/present", cpuDir + "/online", cpuDir + "/offline", cpuDir + "/isolated", nodeDir + "/online",
		nodeDir + "/has_memory", nodePath(1, "/cpulist"), nodePath(1, "/meminfo"), nodePath(1, "/distance"),
		nodePath(1, "/hugepages/hugepages-2048kB/nr_hugepages"), cpuPath(2, "/topology/core_cpus_list"),
		cpuPath(2, "/topology/core_id"), cpuPath(2, "/cache/index3/level"), cpuPath(2, "/cache/index3/shared_cpu_list"),
		"proc/self/status", "proc/sys/kernel/hostname", "proc/sys/kernel/random/boot_id",
		cpuPath(2, "/topology/package_cpus"), cpuPath(0, "/topology/book_id"), cpuPath(2, "/cpu_capacity"), "sys/devices/cpu_core/cpus",
	}
	for i := range paths {
		f.Add(uint8(i), "")
		f.Add(uint8(i), host[paths[i]])
	}
	f.Add(uint8(0), "0-65535")
	f.Add(uint8(10), "0-7")
	f.Add(uint8(4), "1-9\n")
	f.Fuzz(func(t *testing.T, which uint8, content string) {
		if isLink(content) {
			return
		}
		path := paths[int(which)%len(paths)]
		checkRead(t, host.with(tree{path: content}).fs(), path)
	})
}

// FuzzTree reads whole trees: the fuzzer changes, removes and adds files of a
// healthy host. A line of the text is "path<TAB>content", with \n for a
// newline in it, or "-<TAB>path" for a file or folder that is gone.
func FuzzTree(f *testing.F) {
	for _, text := range []string{
		"",
		"-\tsys/devices/system/node",
		"-\tsys/devices/system/cpu/present\n-\tsys/devices/system/cpu/online\nsys/devices/system/cpu/cpu7/online\t0",
		"-\tsys/devices/system/cpu\nproc/stat\tcpu0 1\\ncpu1 2",
		"sys/devices/system/node/online\t0-1,3\nsys/devices/system/node/node3/cpulist\t",
		"sys/devices/cpu_core/cpus\t0-3\nsys/devices/cpu_atom/cpus\t3-7",
		"-\tproc/self/status\nproc/self/cgroup\t0::/a/b\nproc/mounts\tc /sys/fs/cgroup cgroup2 rw 0 0\nsys/fs/cgroup/a/cpuset.cpus.effective\t0-1",
		"sys/devices/system/cpu/cpu0/topology\tno folder",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		put, gone := tree{}, []string(nil)
		for line := range strings.SplitSeq(text, "\n") {
			path, content, _ := strings.Cut(line, "\t")
			if path == "-" {
				gone = append(gone, content)
				continue
			}
			if isLink(content) {
				continue
			}
			put[path] = strings.ReplaceAll(content, `\n`, "\n")
		}
		checkRead(t, twoNodes().with(put, gone...).only().fs(), text)
	})
}

// isLink reports whether a tree would make a link of a content. A MapFS follows
// links without end; what links can do is tried on a real file system.
func isLink(content string) bool { return strings.HasPrefix(content, "-> ") }

// checkRead holds what is true of every tree.
func checkRead(t *testing.T, fsys fs.FS, what string) {
	t.Helper()
	topology, warnings, err := Read(fsys)
	switch {
	case (err == nil) != (topology != nil):
		t.Errorf("%q: topology %v with error %v", what, topology, err)
	case err == nil && topology.Validate() != nil:
		t.Errorf("%q: %v", what, topology.Validate())
	case len(warnings) > maxWarnings+1:
		t.Errorf("%q: %d warnings", what, len(warnings))
	case err == nil && (topology.Threads() < 1 || topology.Cores() < 1 || topology.Cores() > topology.Threads() || topology.Sockets() > topology.Threads()):
		t.Errorf("%q: %d sockets, %d cores, %d threads", what, topology.Sockets(), topology.Cores(), topology.Threads())
	}
	ReadHost(fsys)
	PCINode(fsys, "0000:07:00.0")
	if allowed, ok, _ := AllowedCPUs(fsys); ok && allowed.IsEmpty() {
		t.Errorf("%q: no CPU is allowed", what)
	}
}
