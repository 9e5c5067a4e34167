package sysfs

import (
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/numa"
)

// A naive tree is read without any of this package's code, and from other
// files where the kernel tells the same twice: masks in place of lists, each
// CPU's own online file in place of the list of all.
type naive struct{ dir string }

func (n naive) text(path ...string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(append([]string{n.dir, "sys/devices/system"}, path...)...))
	return strings.TrimSpace(strings.Trim(string(data), "\x00\n")), err == nil
}

// set reads a file as a mask, or the file of the same name with "list" as a
// list; nil where there is neither.
func (n naive) set(maskName, listName string, path ...string) []int {
	if text, ok := n.text(append(path, maskName)...); ok && maskName != "" {
		bits, ok := new(big.Int).SetString(strings.ReplaceAll(text, ",", ""), 16)
		if !ok {
			return nil
		}
		members := []int{}
		for i := range bits.BitLen() {
			if bits.Bit(i) == 1 {
				members = append(members, i)
			}
		}
		return members
	}
	text, ok := n.text(append(path, listName)...)
	if !ok {
		return nil
	}
	members := []int{}
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' }) {
		low, high, isRange := strings.Cut(part, "-")
		first, _ := strconv.Atoi(low)
		last := first
		if isRange {
			last, _ = strconv.Atoi(high)
		}
		for i := first; i <= last; i++ {
			members = append(members, i)
		}
	}
	slices.Sort(members)
	return members
}

func (n naive) numbered(dir, prefix string) []int {
	entries, _ := os.ReadDir(filepath.Join(n.dir, "sys/devices/system", dir))
	var ids []int
	for _, e := range entries {
		if id, err := strconv.Atoi(strings.TrimPrefix(e.Name(), prefix)); err == nil && strings.HasPrefix(e.Name(), prefix) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// told is what a naive reader makes of a tree.
type told struct {
	Present, Online         []int
	Sockets, Cores, Threads int
	Siblings, SharesL3      map[int][]int // of online CPUs
	NodeCPUs                map[int][]int
	MemoryKB                map[int]int64
	MemoryOnly              []int
	Hugepages               map[int]map[int]int64
	Distances               [][]int
}

func (n naive) read() told {
	t := told{
		Siblings: map[int][]int{}, SharesL3: map[int][]int{}, NodeCPUs: map[int][]int{}, MemoryKB: map[int]int64{}, Hugepages: map[int]map[int]int64{},
	}
	listed := n.set("", "present", "cpu")
	for _, id := range n.numbered("cpu", "cpu") {
		if listed != nil && !slices.Contains(listed, id) {
			continue
		}
		t.Present = append(t.Present, id)
		if state, ok := n.text("cpu", "cpu"+strconv.Itoa(id), "online"); !ok || state == "1" {
			t.Online = append(t.Online, id)
		}
	}
	sockets, cores := map[string]bool{}, map[int]bool{}
	for _, id := range t.Online {
		cpu := "cpu" + strconv.Itoa(id)
		socket, _ := n.text("cpu", cpu, "topology/physical_package_id")
		sockets[socket] = true
		mates := n.among(t.Present, firstOf(n.set("thread_siblings", "thread_siblings_list", "cpu", cpu, "topology"), n.set("core_cpus", "core_cpus_list", "cpu", cpu, "topology"), []int{id}))
		t.Siblings[id] = mates
		cores[mates[0]] = true
		for index := range 16 {
			cache := "cache/index" + strconv.Itoa(index)
			if level, _ := n.text("cpu", cpu, cache, "level"); level == "3" {
				t.SharesL3[id] = n.among(t.Present, n.set("shared_cpu_map", "shared_cpu_list", "cpu", cpu, cache))
			}
		}
	}
	t.Sockets, t.Cores, t.Threads = len(sockets), len(cores), len(t.Online)
	for _, id := range n.numbered("node", "node") {
		node := "node" + strconv.Itoa(id)
		t.NodeCPUs[id] = n.among(t.Present, n.set("cpumap", "cpulist", "node", node))
		memory, _ := n.text("node", node, "meminfo")
		t.MemoryKB[id] = amountOf(memory)
		if t.MemoryKB[id] > 0 && len(t.NodeCPUs[id]) == 0 {
			t.MemoryOnly = append(t.MemoryOnly, id)
		}
		if pages := n.pages(filepath.Join("node", node, "hugepages")); len(pages) > 0 {
			t.Hugepages[id] = pages
		}
		if row, ok := n.text("node", node, "distance"); ok {
			var distances []int
			for _, field := range strings.Fields(row) {
				d, _ := strconv.Atoi(field)
				distances = append(distances, d)
			}
			t.Distances = append(t.Distances, distances)
		}
	}
	return t
}

func (n naive) among(present, members []int) []int {
	kept := []int{}
	for _, id := range members {
		if slices.Contains(present, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

func firstOf(sets ...[]int) []int {
	for _, s := range sets {
		if len(s) > 0 {
			return s
		}
	}
	return nil
}

func amountOf(meminfo string) int64 {
	_, rest, _ := strings.Cut(meminfo, "MemTotal:")
	digits, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kB, _ := strconv.ParseInt(digits, 10, 64)
	return kB
}

func (n naive) pages(dir string) map[int]int64 {
	pages := map[int]int64{}
	entries, _ := os.ReadDir(filepath.Join(n.dir, "sys/devices/system", dir))
	for _, e := range entries {
		size, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"))
		count, _ := n.text(dir, e.Name(), "nr_hugepages")
		pages[size], _ = strconv.ParseInt(count, 10, 64)
	}
	return pages
}

// toldBy says the same of a Topology.
func toldBy(t *numa.Topology) told {
	r := told{
		Sockets: t.Sockets(), Cores: t.Cores(), Threads: t.Threads(), Distances: t.Distances,
		Siblings: map[int][]int{}, SharesL3: map[int][]int{}, NodeCPUs: map[int][]int{}, MemoryKB: map[int]int64{}, Hugepages: map[int]map[int]int64{},
	}
	groups := map[int][]int{}
	for _, c := range t.CPUs {
		r.Present = append(r.Present, c.ID)
		if c.L3 != numa.Unknown {
			groups[c.L3] = append(groups[c.L3], c.ID)
		}
		if c.Online {
			r.Online = append(r.Online, c.ID)
			r.Siblings[c.ID] = c.Siblings.Members()
		}
	}
	for _, c := range t.CPUs {
		if c.Online && c.L3 != numa.Unknown {
			r.SharesL3[c.ID] = groups[c.L3]
		}
	}
	for _, n := range t.Nodes {
		r.NodeCPUs[n.ID] = append([]int{}, n.CPUs.Members()...)
		r.MemoryKB[n.ID] = int64(n.Memory >> 10)
		if n.MemoryOnly {
			r.MemoryOnly = append(r.MemoryOnly, n.ID)
		}
		if len(n.Hugepages) > 0 {
			r.Hugepages[n.ID] = maps.Clone(n.Hugepages)
		}
	}
	return r
}

// The machines built by tests are read alike, which checks their builder.
func TestAMachineReadsAsANaiveReaderDoes(t *testing.T) {
	dir := twoNodes().write(t)
	topology, _, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(naive{dir}.read(), toldBy(topology)); diff != "" {
		t.Errorf("(-naive +sysfs):\n%s", diff)
	}
}
