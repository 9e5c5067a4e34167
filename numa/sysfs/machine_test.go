package sysfs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource/bitset"
)

// A machine describes a tree the way real ones are: by what is true of the
// hardware, and by the age of the kernel that shows it.
type machine struct {
	cpus     int
	socket   func(cpu int) int     // physical_package_id; nil: no such file
	core     func(cpu int) int     // core_id
	threads  func(cpu int) []int   // the CPU's core; nil: no such file
	l3       func(cpu int) []int   // nil, or nil CPUs: none
	nodes    map[int]string        // CPUs by node; nil: no folder of nodes
	memory   map[int]int           // kB by node, or of the host under -1
	rows     map[int]string        // distances by node
	pages    map[int]int           // huge pages of 2048 kB by node, or of the host under -1
	offline  []int                 // CPUs
	kernel   age                   //
	change   tree                  // put at the end
	gone     []string              // removed before
	noFolder func(cpu int) bool    // CPUs without a topology folder
	extra    func(t tree, cpu int) // more files of a CPU
}

// age is how a kernel prints sets of CPUs.
type age uint8

const (
	modern age = iota // core_cpus_list and the like, since 5.3
	middle            // thread_siblings_list, since 2.6.26
	old               // masks alone, no lists of CPUs and nodes
)

// mask prints a set as the kernel does, in words of 32 bits.
func mask(s bitset.Set) string {
	last := 0
	for i := range s.All() {
		last = i
	}
	words := make([]string, last/32+1)
	for w := range words {
		var bits uint32
		for bit := range 32 {
			if s.Has(32*w + bit) {
				bits |= 1 << bit
			}
		}
		words[len(words)-1-w] = fmt.Sprintf("%08x", bits)
	}
	return strings.Join(words, ",") + "\n"
}

// put writes a set under the names that a kernel of this age has.
func (a age) put(t tree, dir, newName, oldName string, s bitset.Set) {
	if a == modern {
		t[dir+newName] = mask(s)
		t[dir+newName+"_list"] = s.String() + "\n"
	}
	t[dir+oldName] = mask(s)
	if a != old {
		t[dir+oldName+"_list"] = s.String() + "\n"
	}
}

func (m machine) tree() tree {
	t := tree{}
	all := bitset.Of(ascending(0, m.cpus)...)
	offline := bitset.Of(m.offline...)
	online := all.Minus(offline)
	if m.kernel != old {
		t[cpuDir+"/present"], t[cpuDir+"/possible"] = all.String()+"\n", all.String()+"\n"
		t[cpuDir+"/online"], t[cpuDir+"/offline"] = online.String()+"\n", offline.String()+"\n"
	}
	if m.kernel == modern {
		t[cpuDir+"/isolated"] = "\n"
	} else {
		t["proc/cmdline"] = "ro quiet\n"
	}
	for cpu := range m.cpus {
		m.putCPU(t, cpu, online)
	}
	m.putNodes(t, all, online)
	if kB, ok := m.memory[-1]; ok {
		t["proc/meminfo"] = fmt.Sprintf("MemTotal:      %d kB\n", kB)
	}
	if n, ok := m.pages[-1]; ok {
		t[globalHugepages+"/hugepages-2048kB/nr_hugepages"] = strconv.Itoa(n) + "\n"
	}
	return t.with(m.change, m.gone...)
}

func (m machine) putCPU(t tree, cpu int, online bitset.Set) {
	dir := cpuPath(cpu, "/topology/")
	t[cpuPath(cpu, "/crash_notes")] = "0\n"
	if cpu > 0 {
		t[cpuPath(cpu, "/online")] = "1\n"
	}
	if !online.Has(cpu) {
		t[cpuPath(cpu, "/online")] = "0\n"
		return
	}
	if m.extra != nil {
		m.extra(t, cpu)
	}
	if m.noFolder != nil && m.noFolder(cpu) {
		return
	}
	if m.socket != nil {
		t[dir+"physical_package_id"] = strconv.Itoa(m.socket(cpu)) + "\n"
		var mates bitset.Set
		for other := range online.All() {
			if m.socket(other) == m.socket(cpu) {
				mates.Add(other)
			}
		}
		m.kernel.put(t, dir, "package_cpus", "core_siblings", mates)
	}
	if m.core != nil {
		t[dir+"core_id"] = strconv.Itoa(m.core(cpu)) + "\n"
	}
	if m.threads != nil {
		m.kernel.put(t, dir, "core_cpus", "thread_siblings", bitset.Of(m.threads(cpu)...).Intersect(online))
	}
	for index, level := range []string{"1", "1", "2", "3"} {
		cache := cpuPath(cpu, "/cache/index"+strconv.Itoa(index)+"/")
		mates := bitset.Of(cpu)
		if level == "3" {
			if m.l3 == nil || m.l3(cpu) == nil {
				continue
			}
			mates = bitset.Of(m.l3(cpu)...).Intersect(online)
		}
		t[cache+"level"] = level + "\n"
		t[cache+"type"] = []string{"Data", "Instruction", "Unified", "Unified"}[index] + "\n"
		t[cache+"size"] = []string{"32K", "32K", "1024K", "16384K"}[index] + "\n"
		m.kernel.put(t, cache, "shared_cpu_map", "shared_cpu_map", mates)
		delete(t, cache+"shared_cpu_map_list")
		if m.kernel != old {
			t[cache+"shared_cpu_list"] = mates.String() + "\n"
		}
	}
}

func (m machine) putNodes(t tree, all, online bitset.Set) {
	ids := bitset.Of(slices.Collect(maps.Keys(m.nodes))...)
	if m.nodes != nil && m.kernel != old {
		t[nodeDir+"/online"], t[nodeDir+"/possible"] = ids.String()+"\n", ids.String()+"\n"
	}
	for id, list := range m.nodes {
		listed, err := bitset.Parse(list)
		if err != nil {
			panic(err)
		}
		shown := listed.Minus(all).Union(listed.Intersect(online))
		t[nodePath(id, "/cpumap")] = mask(shown)
		if m.kernel != old {
			t[nodePath(id, "/cpulist")] = shown.String() + "\n"
		}
		for cpu := range listed.Intersect(all).All() {
			if m.kernel != old {
				t[cpuPath(cpu, "/node"+strconv.Itoa(id))] = "-> ../../node/node" + strconv.Itoa(id)
			}
		}
		if kB, ok := m.memory[id]; ok {
			t[nodePath(id, "/meminfo")] = fmt.Sprintf("\nNode %d MemTotal:      %d kB\nNode %d MemFree:  1 kB\n", id, kB, id)
		}
		if row, ok := m.rows[id]; ok {
			t[nodePath(id, "/distance")] = row + "\n"
		}
		if n, ok := m.pages[id]; ok {
			t[nodePath(id, "/hugepages/hugepages-2048kB/nr_hugepages")] = strconv.Itoa(n) + "\n"
		}
	}
}

func ascending(first, end int) []int {
	var s []int
	for i := first; i < end; i++ {
		s = append(s, i)
	}
	return s
}

// by returns the block of n CPUs that holds a CPU.
func by(n int) func(int) []int {
	return func(cpu int) []int { return ascending(cpu/n*n, cpu/n*n+n) }
}

func div(n int) func(int) int { return func(cpu int) int { return cpu / n } }
