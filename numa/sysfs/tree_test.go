package sysfs

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/musterd/muster/numa"
)

// A tree is a small sysfs: content by path.
type tree map[string]string

func (t tree) fs() fstest.MapFS {
	m := fstest.MapFS{}
	for path, content := range t {
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			m[path] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
			continue
		}
		m[path] = &fstest.MapFile{Data: []byte(content), Mode: 0o444}
	}
	return m
}

// with returns a copy without the files below gone, and with those of put.
func (t tree) with(put tree, gone ...string) tree {
	changed := maps.Clone(t)
	maps.DeleteFunc(changed, func(path, _ string) bool {
		return slices.ContainsFunc(gone, func(prefix string) bool {
			return path == prefix || strings.HasPrefix(path, prefix+"/")
		})
	})
	maps.Copy(changed, put)
	return changed
}

// only returns a copy without the paths that no folder could hold: those that
// are malformed, or stand below another file.
func (t tree) only() tree {
	kept := tree{}
	for path, content := range t {
		good := fs.ValidPath(path) && path != "."
		for at := range len(path) {
			if path[at] == '/' {
				_, isFile := t[path[:at]]
				good = good && !isFile
			}
		}
		if good {
			kept[path] = content
		}
	}
	return kept
}

// twoNodes is a host of two sockets, each a node of two cores with two
// threads: CPUs 0,1 and their siblings 4,5 on node 0, 2,3 and 6,7 on node 1.
func twoNodes() tree {
	t := tree{
		cpuDir + "/possible": "0-7\n", cpuDir + "/present": "0-7\n", cpuDir + "/online": "0-7\n",
		cpuDir + "/offline": "\n", cpuDir + "/isolated": "\n",
		nodeDir + "/online": "0-1\n", nodeDir + "/has_cpu": "0-1\n", nodeDir + "/has_memory": "0-1\n",
		"proc/meminfo":                   "MemTotal:       12582912 kB\nMemFree: 1 kB\n",
		"proc/sys/kernel/hostname":       "node-7\n",
		"proc/sys/kernel/osrelease":      "6.1.0-28-amd64\n",
		"proc/sys/kernel/random/boot_id": "0d8f2c6e-6a0b-4f0e-9d5b-6b1c7c3f2a10\n",
		"proc/self/status":               "Name:\tagent\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3\n",
	}
	for node, cpus := range []string{"0-1,4-5", "2-3,6-7"} {
		t[nodePath(node, "/cpulist")] = cpus + "\n"
		t[nodePath(node, "/meminfo")] = fmt.Sprintf("\nNode %d MemTotal:       %d kB\nNode %d MemFree: 5 kB\n", node, (node+1)<<22, node)
		t[nodePath(node, "/distance")] = []string{"10 21\n", "21 10\n"}[node]
		t[nodePath(node, "/hugepages/hugepages-2048kB/nr_hugepages")] = "512\n"
		t[nodePath(node, "/hugepages/hugepages-1048576kB/nr_hugepages")] = "0\n"
	}
	for cpu := range 8 {
		socket := cpu % 4 / 2
		t[cpuPath(cpu, "/topology/physical_package_id")] = strconv.Itoa(socket) + "\n"
		t[cpuPath(cpu, "/topology/core_id")] = strconv.Itoa(cpu%2) + "\n"
		t[cpuPath(cpu, "/topology/core_cpus_list")] = fmt.Sprintf("%d,%d\n", cpu%4, cpu%4+4)
		for index, level := range []string{"1", "1", "2", "3"} {
			dir := cpuPath(cpu, "/cache/index"+strconv.Itoa(index))
			t[dir+"/level"] = level + "\n"
			t[dir+"/shared_cpu_list"] = t[cpuPath(cpu, "/topology/core_cpus_list")]
		}
		t[cpuPath(cpu, "/cache/index3/shared_cpu_list")] = t[nodePath(socket, "/cpulist")]
		t[cpuPath(cpu, "/node"+strconv.Itoa(socket))] = "-> ../../node/node" + strconv.Itoa(socket)
	}
	return t
}

// transcript tells a topology line by line.
func transcript(t *numa.Topology) []string {
	var lines []string
	for _, n := range t.Nodes {
		lines = append(lines, fmt.Sprintf("node %d cpus %q memory %dGi only=%t pages %v", n.ID, n.CPUs, n.Memory>>30, n.MemoryOnly, n.Hugepages))
	}
	for _, c := range t.CPUs {
		lines = append(lines, fmt.Sprintf("cpu %d socket %d core %d l3 %d node %d siblings %q online=%t isolated=%t",
			c.ID, c.Socket, c.Core, c.L3, c.NUMA, c.Siblings, c.Online, c.Isolated))
	}
	return append(lines, fmt.Sprintf("distances %v", t.Distances))
}
