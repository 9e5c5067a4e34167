package sysfs_test

import (
	"fmt"
	"testing/fstest"

	"github.com/musterd/muster/numa/sysfs"
)

func ExampleRead() {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	captured := fstest.MapFS{
		"sys/devices/system/cpu/possible":                          file("0-1\n"),
		"sys/devices/system/cpu/present":                           file("0-1\n"),
		"sys/devices/system/cpu/online":                            file("0-1\n"),
		"sys/devices/system/cpu/offline":                           file("\n"),
		"sys/devices/system/cpu/isolated":                          file("1\n"),
		"sys/devices/system/cpu/cpu0/topology/core_id":             file("0\n"),
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list":      file("0-1\n"),
		"sys/devices/system/cpu/cpu0/topology/physical_package_id": file("0\n"),
		"sys/devices/system/cpu/cpu1/topology/core_id":             file("0\n"),
		"sys/devices/system/cpu/cpu1/topology/core_cpus_list":      file("0-1\n"),
		"proc/meminfo": file("MemTotal: 4194304 kB\n"),
	}
	topology, warnings, err := sysfs.Read(captured)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(topology.Threads(), "threads,", topology.Cores(), "core,", topology.Memory()>>30, "GiB")
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// 2 threads, 1 core, 4 GiB
	// sys/devices/system/cpu: cpus 1 show no topology/physical_package_id; their sockets are unknown
}
