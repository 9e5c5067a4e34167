package cluster

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// machine is the host that every agent finds: small enough that its description
// is written in no time, large enough that GPUs run out first.
const machine = `{
  "name": "small-8", "driver": "550.54.15", "threadsPerCore": 2, "coresPerL3": 8,
  "nodes": [{"socket": 0, "cores": 8, "memory": "256Gi"}, {"socket": 1, "cores": 8, "memory": "256Gi"}],
  "distances": [[10, 21], [21, 10]],
  "gpus": [%s],
  "nvlinks": {"switched": 12}
}`

// profileOf is a machine with so many GPUs, half of them on each socket.
func profileOf(t testing.TB, gpus int) fake.Profile {
	t.Helper()
	var cards []string
	for i := range gpus {
		cards = append(cards, fmt.Sprintf(`{"model": "NVIDIA A100-SXM4-80GB", "memory": "81920Mi", "pciBusID": "0000:%02x:00.0", "numaNode": %d, "path": "rc%d/sw0"}`,
			i+1, i*2/gpus, i))
	}
	p, err := fake.ParseProfile(fmt.Appendf(nil, machine, strings.Join(cards, ", ")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// writeTree writes the parts of /sys and /proc that discovery reads.
func writeTree(t testing.TB, root, hostname string, topology *numa.Topology) {
	t.Helper()
	const cpuDir, nodeDir = "sys/devices/system/cpu", "sys/devices/system/node"
	var all, nodes bitset.Set
	files := map[string]string{}
	caches := map[int]bitset.Set{}
	for _, c := range topology.CPUs {
		all.Add(c.ID)
		l3 := caches[c.L3]
		l3.Add(c.ID)
		caches[c.L3] = l3
	}
	for _, c := range topology.CPUs {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c.ID)
		files[dir+"/topology/physical_package_id"] = strconv.Itoa(c.Socket)
		files[dir+"/topology/core_id"] = strconv.Itoa(c.Core)
		files[dir+"/topology/core_cpus_list"] = c.Siblings.String()
		files[dir+"/cache/index3/level"] = "3"
		files[dir+"/cache/index3/shared_cpu_list"] = caches[c.L3].String()
	}
	memory := int64(0)
	for i, n := range topology.Nodes {
		nodes.Add(n.ID)
		dir := fmt.Sprintf("%s/node%d", nodeDir, n.ID)
		files[dir+"/cpulist"] = n.CPUs.String()
		files[dir+"/meminfo"] = fmt.Sprintf("Node %d MemTotal: %d kB", n.ID, int64(n.Memory)>>10)
		files[dir+"/distance"] = strings.Trim(fmt.Sprint(topology.Distances[i]), "[]")
		memory += int64(n.Memory)
	}
	for _, name := range []string{"possible", "present", "online"} {
		files[cpuDir+"/"+name] = all.String()
	}
	for _, name := range []string{"online", "has_cpu", "has_memory"} {
		files[nodeDir+"/"+name] = nodes.String()
	}
	files["proc/meminfo"] = fmt.Sprintf("MemTotal: %d kB", memory>>10)
	files[cpuDir+"/isolated"] = ""
	files["proc/sys/kernel/hostname"] = hostname
	files["proc/sys/kernel/osrelease"] = "6.1.0-28-amd64"
	files["proc/sys/kernel/random/boot_id"] = "0d8f2c6e-6a0b-4f0e-9d5b-6b1c7c3f2a10" // read of the running kernel instead
	files["proc/self/status"] = "Cpus_allowed_list:\t" + all.String()
	for path, text := range files {
		writeFile(t, filepath.Join(root, path), text+"\n")
	}
}

// writeBoot draws the boot id of a kernel that has just started.
func writeBoot(t testing.TB, path string) {
	t.Helper()
	var b [16]byte
	rand.Read(b[:])
	writeFile(t, path, fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Devices are the UUIDs of the GPUs of a node, by index.
func Devices(t testing.TB, node resource.NodeID, gpus int) []string {
	t.Helper()
	var list []string
	for _, d := range profileOf(t, gpus).Inventory(string(node)).Devices {
		list = append(list, d.UUID)
	}
	return list
}
