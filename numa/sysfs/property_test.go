package sysfs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"
)

// oddContent is what a file may hold that no healthy kernel writes there.
var oddContent = []string{
	"", "\n", "0", "1", "-1", "-2", "9223372036854775807", "18446744073709551616", "0-65535", "0-4294967295", "3-1", "1,1", "ff", "ffffffff,ffffffff",
	"\xff\xfe", "no number", "0-7,", "10 10", "Node 0 MemTotal: 18446744073709551615 kB", "Node 0 MemTotal: 1099511627776 kB", "MemTotal: -1 kB",
	strings.Repeat("0,", 40000), strings.Repeat("9", 400),
}

// denied holds paths that cannot be opened.
type denied struct {
	fs.FS
	paths map[string]bool
}

func (d denied) Open(name string) (fs.File, error) {
	if d.paths[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

// drawHost makes a healthy host of a few sockets, nodes, cores and threads, whose
// numbers may have holes.
func drawHost(t *rapid.T) map[string]string {
	nodes := rapid.SampledFrom([]int{0, 1, 2, 3, 8, 70}).Draw(t, "nodes")
	perNode := rapid.IntRange(0, 4).Draw(t, "cpus of a node")
	stride := rapid.IntRange(1, 3).Draw(t, "stride of the numbers")
	threads := rapid.IntRange(1, 2).Draw(t, "threads of a core")
	count := max(1, nodes) * max(1, perNode)
	files := map[string]string{}
	var online []string
	for i := range count {
		id := i * stride
		online = append(online, fmt.Sprint(id))
		dir := fmt.Sprintf("%s/cpu%d/", cpuDir, id)
		first := i / threads * threads
		var mates []string
		for j := first; j < min(first+threads, count); j++ {
			mates = append(mates, fmt.Sprint(j*stride))
		}
		files[dir+"topology/core_cpus_list"] = strings.Join(mates, ",")
		files[dir+"topology/physical_package_id"] = fmt.Sprint(i / max(1, perNode))
		files[dir+"topology/core_id"] = fmt.Sprint(i / threads)
		files[dir+"topology/package_cpus_list"] = strings.Join(mates, ",")
		files[dir+"cache/index0/level"] = "3"
		files[dir+"cache/index0/shared_cpu_list"] = strings.Join(mates, ",")
		files[dir+"online"] = "1"
	}
	files[cpuDir+"/present"], files[cpuDir+"/possible"], files[cpuDir+"/online"] = strings.Join(online, ","), strings.Join(online, ","), strings.Join(online, ",")
	total := 0
	var ids []string
	for n := range nodes {
		id := n * stride
		ids = append(ids, fmt.Sprint(id))
		dir := fmt.Sprintf("%s/node%d/", nodeDir, id)
		kB := rapid.SampledFrom([]int{0, 1 << 20, 1 << 24}).Draw(t, "memory")
		total += kB
		if rapid.Bool().Draw(t, "node has CPUs") {
			files[dir+"cpulist"] = strings.Join(online[n*perNode:(n+1)*perNode], ",")
		} else {
			files[dir+"cpulist"] = ""
		}
		files[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal: %d kB\nNode %d HugePages_Total: 3\n", id, kB, id)
		files[dir+"distance"] = strings.TrimSpace(strings.Repeat("10 ", nodes))
		files[dir+"hugepages/hugepages-2048kB/nr_hugepages"] = fmt.Sprint(rapid.SampledFrom([]int64{0, 4, 1 << 20, 1<<63 - 1}).Draw(t, "pages"))
	}
	if nodes > 0 {
		files[nodeDir+"/online"] = strings.Join(ids, ",")
	}
	files["proc/meminfo"] = fmt.Sprintf("MemTotal: %d kB\nHugepagesize: 2048 kB\n", max(1<<20, total))
	files["sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"] = "12"
	files["proc/stat"] = "cpu  1\ncpu0 1\n"
	files["sys/bus/pci/devices/0000:07:00.0/local_cpulist"] = "0"
	return files
}

// TestAnyTreeIsReadOrRefused: whatever files of a host are gone, empty, broken or
// unreadable, the reading ends without a panic and within its bounds; where it
// ends with a topology, an agent can start on that, a coordinator takes it, and
// the nodes have no more memory than the host.
func TestAnyTreeIsReadOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := drawHost(t)
		present := files[cpuDir+"/present"]
		paths := slices.Sorted(maps.Keys(files))
		closed := map[string]bool{}
		for range rapid.IntRange(0, 6).Draw(t, "faults") {
			path := rapid.SampledFrom(paths).Draw(t, "path")
			switch rapid.IntRange(0, 3).Draw(t, "fault") {
			case 0:
				delete(files, path)
			case 1:
				closed[path] = true
			case 2:
				// The same file of every CPU or node.
				content := rapid.SampledFrom(oddContent).Draw(t, "content")
				for _, other := range paths {
					if other[strings.LastIndexByte(other, '/'):] == path[strings.LastIndexByte(path, '/'):] {
						files[other] = content
					}
				}
			default:
				files[path] = rapid.SampledFrom(oddContent).Draw(t, "content")
			}
		}
		tree := fstest.MapFS{}
		for path, content := range files {
			tree[path] = &fstest.MapFile{Data: []byte(content), Mode: 0o444}
		}
		fsys := denied{tree, closed}
		topology, warnings, err := sysfs.Read(fsys)
		sysfs.PCINode(fsys, "0000:07:00.0")
		if len(warnings) > 201 {
			t.Fatalf("%d warnings", len(warnings))
		}
		if err != nil {
			if files[cpuDir+"/present"] == present {
				checkNothingIsUsable(t, files, err)
			}
			return
		}
		checkServes(t, topology)
		if host, ok := totalOf(files["proc/meminfo"]); ok && !closed["proc/meminfo"] && topology.Memory() > host+host/16 {
			t.Fatalf("nodes have %d bytes of memory, the host has %d; warnings %v", topology.Memory(), host, warnings)
		}
	})
}

// checkNothingIsUsable: an error is right only where no file names a CPU, or all
// that do say that they are offline.
func checkNothingIsUsable(t *rapid.T, files map[string]string, err error) {
	for path, content := range files {
		if strings.HasSuffix(path, "/online") && strings.Contains(path, "cpu/cpu") && strings.TrimSpace(content) == "1" {
			t.Fatalf("%s is 1, and the host is refused: %v", path, err)
		}
	}
}

// checkServes: what was read makes a host for the agent, and passes the limits
// of the message that registers it.
func checkServes(t *rapid.T, topology *numa.Topology) {
	if err := topology.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := fit.NewHost(topology, &devices.Inventory{}, fit.Reserved{}); err != nil {
		t.Fatal(err)
	}
	message := wire.ToHost(grant.Host{Hostname: "h", Topology: topology, Inventory: &devices.Inventory{}})
	if err := limits.Admit(message); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.FromHost(message); err != nil {
		t.Fatal(err)
	}
	if topology.Threads() < 1 || topology.Cores() > topology.Threads() || topology.Sockets() > topology.Threads() {
		t.Fatalf("%d sockets, %d cores, %d threads", topology.Sockets(), topology.Cores(), topology.Threads())
	}
	listed := 0
	for _, n := range topology.Nodes {
		listed += n.CPUs.Len()
		pages := resource.Bytes(0)
		for kB, count := range n.Hugepages {
			pages += resource.Bytes(kB) << 10 * resource.Bytes(count)
		}
		if pages < 0 || n.Memory > 0 && pages > n.Memory {
			t.Fatalf("node %d has %d bytes of memory and %d in huge pages", n.ID, n.Memory, pages)
		}
	}
	// A CPU that two nodes list is on neither.
	homeless := 0
	for _, c := range topology.CPUs {
		if c.NUMA == numa.Unknown {
			homeless++
		}
	}
	if homeless == 0 && listed > len(topology.CPUs) {
		t.Fatalf("nodes list %d CPUs of %d", listed, len(topology.CPUs))
	}
}

// totalOf reads MemTotal as a naive reader does.
func totalOf(meminfo string) (resource.Bytes, bool) {
	var kB int64
	if n, err := fmt.Sscanf(meminfo, "MemTotal: %d kB", &kB); n != 1 || err != nil || kB <= 0 || kB > int64(resource.MaxMemory>>10) {
		return 0, false
	}
	return resource.Bytes(kB) << 10, true
}
