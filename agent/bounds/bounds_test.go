package bounds_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

var all = bounds.Controllers{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// parts are CPUs of which a member has a part each.
func parts(milli resource.Millicores, ids ...int) (list []resource.CPUGrant) {
	for _, id := range ids {
		list = append(list, resource.CPUGrant{ID: id, Milli: milli})
	}
	return list
}

func TestTheBoundsOfAMember(t *testing.T) {
	sizes := []resource.Bytes{1 << 30, 2 << 20}
	none := []bounds.Hugepages{{Size: 2 << 20}, {Size: 1 << 30}}
	for name, c := range map[string]struct {
		assignment resource.Assignment
		limits     bounds.Limits
		want       bounds.Bounds
		files      map[string]string
	}{
		"whole CPUs bind by themselves": {
			resource.Assignment{CPUs: parts(1000, 2, 3, 8), Memory: []resource.MemoryGrant{{Node: 0, Bytes: 1 << 30}}}, bounds.Limits{},
			bounds.Bounds{CPUs: []int{2, 3, 8}, Nodes: []int{0}, Memory: 1 << 30, Hugepages: none},
			map[string]string{"cpuset.cpus": "2-3,8", "cpuset.mems": "0", "memory.max": "1073741824", "hugetlb.2MB.max": "0", "hugetlb.1GB.max": "0"},
		},
		"parts of CPUs": {
			resource.Assignment{CPUs: parts(250, 2, 3)}, bounds.Limits{}, bounds.Bounds{CPUs: []int{2, 3}, Millicores: 500, Hugepages: none},
			map[string]string{"cpuset.cpus": "2-3", "cpu.max": "50000 100000", "hugetlb.2MB.max": "0", "hugetlb.1GB.max": "0"},
		},
		"a limit above the request": {
			resource.Assignment{CPUs: parts(250, 2, 3), Memory: []resource.MemoryGrant{{Node: 1, Bytes: 1 << 20}}}, bounds.Limits{CPU: 750, Memory: 5 << 20},
			bounds.Bounds{CPUs: []int{2, 3}, Nodes: []int{1}, Millicores: 750, Memory: 5 << 20, Hugepages: none},
			map[string]string{"cpuset.cpus": "2-3", "cpuset.mems": "1", "cpu.max": "75000 100000", "memory.max": "5242880", "hugetlb.2MB.max": "0", "hugetlb.1GB.max": "0"},
		},
		"a limit above the CPUs": {
			resource.Assignment{CPUs: parts(250, 2)}, bounds.Limits{CPU: 4000}, bounds.Bounds{CPUs: []int{2}, Hugepages: none},
			map[string]string{"cpuset.cpus": "2", "hugetlb.2MB.max": "0", "hugetlb.1GB.max": "0"},
		},
		"memory of two nodes, and huge pages": {
			resource.Assignment{Memory: []resource.MemoryGrant{{Node: 1, Bytes: 5}, {Node: 0, Bytes: 6}}, Hugepages: []resource.HugepageGrant{{Node: 3, Size: 2 << 20, Bytes: 4 << 20}}}, bounds.Limits{},
			bounds.Bounds{Nodes: []int{0, 1, 3}, Memory: 11, Hugepages: []bounds.Hugepages{{2 << 20, 4 << 20}, {1 << 30, 0}}},
			map[string]string{"cpuset.mems": "0-1,3", "memory.max": "11", "hugetlb.2MB.max": "4194304", "hugetlb.1GB.max": "0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := bounds.Of(c.assignment, c.limits, sizes)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("bounds (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.files, got.Files(all)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if err := got.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoBoundIsWiderThanTheGrant: whatever is assigned, a member gets no CPU, node, page or
// byte beyond it, unless a limit says so.
func TestNoBoundIsWiderThanTheGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a resource.Assignment
		var milli resource.Millicores
		for id := range rapid.IntRange(0, 6).Draw(t, "cpus") {
			part := resource.Millicores(rapid.IntRange(1, 1000).Draw(t, "milli"))
			milli += part
			a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id * 3, Milli: part})
		}
		var memory resource.Bytes
		for node := range rapid.IntRange(0, 3).Draw(t, "nodes") {
			bytes := resource.Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "bytes"))
			memory += bytes
			a.Memory = append(a.Memory, resource.MemoryGrant{Node: node, Bytes: bytes})
		}
		limit := bounds.Limits{CPU: resource.Millicores(rapid.IntRange(0, 8000).Draw(t, "limit")), Memory: resource.Bytes(rapid.Int64Range(0, 1<<41).Draw(t, "memory limit"))}
		b := bounds.Of(a, limit, nil)
		if len(b.CPUs) != len(a.CPUs) || len(b.Nodes) != len(a.Memory) {
			t.Fatalf("CPUs %v, nodes %v of %+v", b.CPUs, b.Nodes, a)
		}
		time := b.Millicores
		if time == 0 {
			time = resource.Millicores(1000 * len(b.CPUs))
		}
		if most := min(max(milli, limit.CPU), resource.Millicores(1000*len(a.CPUs))); time != most {
			t.Fatalf("%d millicores, want %d", time, most)
		}
		if b.Memory != max(memory, limit.Memory) {
			t.Fatalf("%d bytes of memory, want the greater one of %d and %d", b.Memory, memory, limit.Memory)
		}
	})
}

func TestAHostNamesWhatItDoesNotEnforce(t *testing.T) {
	for name, c := range map[string]struct {
		has               bounds.Controllers
		affinity, devices bool
		want              []string
	}{
		"nothing":                      {nil, false, false, []string{"cpus", "cpu-time", "numa-memory", "memory", "hugepages", "tasks", "devices"}},
		"affinity alone":               {nil, true, false, []string{"cpu-time", "numa-memory", "memory", "hugepages", "tasks", "devices"}},
		"a part of the controllers":    {bounds.Controllers{"memory", "pids"}, true, true, []string{"cpu-time", "numa-memory", "hugepages"}},
		"everything":                   {all, true, true, nil},
		"everything but huge pages":    {bounds.Controllers{"cpu", "cpuset", "memory", "pids"}, false, true, []string{"hugepages"}},
		"simulated hardware, no files": {all, false, false, []string{"devices"}},
	} {
		if diff := cmp.Diff(c.want, bounds.NotEnforced(c.has, c.affinity, c.devices)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		b := bounds.Bounds{CPUs: []int{1}, Nodes: []int{0}, Millicores: 5, Memory: 1, Tasks: 7, Hugepages: []bounds.Hugepages{{64 << 10, 0}}}
		if got := len(b.Files(c.has)); c.has == nil && got > 0 || len(c.has) == 5 && got != 6 {
			t.Errorf("%s: %d files", name, got)
		}
	}
}

// driver is a host with two GPUs as NVIDIA's driver lists them; the second one has MIG
// instances.
func driver() (fstest.MapFS, *devices.Inventory) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	host := fstest.MapFS{
		"proc/driver/nvidia/gpus/0000:07:00.0/information":        file("Model: \t\t NVIDIA A100\nIRQ:   \t\t 16\nBus Location: \t 0000:07:00.0\nDevice Minor: \t 3\n"),
		"proc/driver/nvidia/gpus/0000:0a:00.0/information":        file("Device Minor: \t 0\nGPU Excluded:\t No\n"),
		"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access":     file("DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1\n"),
		"proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access": file("DeviceFileMinor: 13\nDeviceFileMode: 292\n"),
		"dev/infiniband/uverbs0":                                  file(""), "dev/infiniband/rdma_cm": file(""), "dev/sda": file(""),
	}
	return host, &devices.Inventory{Devices: []devices.Device{
		{Index: 0, UUID: "GPU-a", PCIBusID: "0000:07:00.0"}, {Index: 1, UUID: "GPU-b", PCIBusID: "0000:0A:00.0"}, {Index: 2, UUID: "GPU-c", PCIBusID: "0000:0B:00.0"},
	}}
}

func TestTheDeviceFilesOfAMember(t *testing.T) {
	common := []string{"/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
	for name, c := range map[string]struct {
		assignment resource.Assignment
		extra      []string
		want       []string
		unknown    bool
	}{
		"no GPU":           {want: []string{}},
		"no GPU, and RDMA": {extra: []string{"/dev/infiniband/*"}, want: []string{"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"}},
		"a GPU":            {assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0, UUID: "GPU-a"}}}, want: append(append([]string{}, common...), "/dev/nvidia3", "/dev/nvidiactl")},
		"MIG instances": {
			assignment: resource.Assignment{MIG: []resource.MIGGrant{{GPU: 1, UUID: "MIG-x"}, {GPU: 1, Instance: 1, UUID: "MIG-y"}}},
			want:       []string{"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidiactl"},
		},
		"a GPU that the driver does not list":    {assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 2, UUID: "GPU-c"}}}, unknown: true},
		"a GPU that the host does not have":      {assignment: resource.Assignment{GPUs: []resource.GPUGrant{{Index: 9}}}, unknown: true},
		"MIG instances of a GPU that lists none": {assignment: resource.Assignment{MIG: []resource.MIGGrant{{GPU: 0}}}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			host, inventory := driver()
			got, err := bounds.DeviceNodes(host, c.assignment, inventory, c.extra)
			if errors.Is(err, bounds.ErrUnknownNode) != c.unknown || err != nil && !c.unknown {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if err := (&bounds.Bounds{Devices: got}).Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADriverThatListsNonsenseIsNotTaken(t *testing.T) {
	for name, text := range map[string]string{"no number": "Device Minor: x\n", "negative": "Device Minor: -1\n", "too great": "Device Minor: 99999999\n", "no line": "Model: y\n", "nothing": ""} {
		host, inventory := driver()
		host["proc/driver/nvidia/gpus/0000:07:00.0/information"] = &fstest.MapFile{Data: []byte(text)}
		if _, err := bounds.DeviceNodes(host, resource.Assignment{GPUs: []resource.GPUGrant{{Index: 0}}}, inventory, nil); !errors.Is(err, bounds.ErrUnknownNode) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadBoundsNameTheField(t *testing.T) {
	for want, b := range map[string]bounds.Bounds{
		"cpus: 1024 is outside 0..1023": {CPUs: []int{1024}}, "nodes: -1 is outside": {Nodes: []int{-1}}, "memory -5": {Memory: -5}, "tasks -1": {Tasks: -1},
		`devices: "/etc/passwd" is no path below /dev`: {Devices: []string{"/etc/passwd"}}, `devices: "/dev/../etc/x"`: {Devices: []string{"/dev/../etc/x"}},
		"hugepages: 4 bytes in pages of 0": {Hugepages: []bounds.Hugepages{{0, 4}}},
	} {
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
}
