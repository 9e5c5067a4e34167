package fit

import (
	"math"
	"math/bits"

	"github.com/musterd/muster/resource"
)

// Capacity returns all that a host of the kind can hand out of each resource that
// req asks for, while the host is empty and healthy. Devices and MIG instances
// count where they have the model and the memory of req. Counted resources are left out.
func (k *Kind) Capacity(req *resource.Request) resource.Vector {
	h, v := k.host, resource.Vector{}
	for name := range req.Vector() {
		v[name] = 0
	}
	for _, c := range h.fullCPU {
		v[resource.CPU] += int64(c)
	}
	for _, c := range h.fullCores {
		v[resource.Cores] += int64(c)
	}
	for _, m := range h.fullMemory {
		v[resource.Memory] += int64(m)
	}
	v[resource.GPU] = int64(bits.OnesCount64(h.matching(req))) * int64(resource.WholeDevice)
	if req.Hugepages > 0 {
		v[resource.Hugepages(req.HugepageSize)] = int64(h.FreeHugepages(k.empty, req.HugepageSize))
	}
	if req.MIG > 0 {
		v[resource.MIG(req.MIGProfile)] = int64(h.instances(req))
	}
	wanted := req.Vector()
	for name := range v {
		if wanted[name] == 0 || resource.IsCounted(name) {
			delete(v, name)
		}
	}
	if req.Cores > 0 {
		delete(v, resource.CPU) // a core is charged as a CPU and takes its threads
	}
	return v
}

// instances counts the MIG instances that satisfy a request.
func (h *Host) instances(req *resource.Request) int {
	var count [MaxGPUs]uint8
	h.countMIG(req, &count)
	sum := 0
	for _, c := range count {
		sum += int(c)
	}
	return sum
}

// AtMost returns a number of members that no host of the kind exceeds, with any
// resources free on the host and in any order of the members. NUMA nodes and links
// may make the true number smaller.
func (k *Kind) AtMost(req *resource.Request) int {
	if !k.MayHold(*req) {
		return 0
	}
	capacity, wanted := k.Capacity(req), req.Vector()
	if req.GPUShare > 0 {
		perDevice := int64(resource.WholeDevice / req.GPUShare)
		capacity[resource.GPU] = capacity[resource.GPU] / int64(resource.WholeDevice) * perDevice
		wanted[resource.GPU] = 1
	}
	most := int64(math.MaxInt32)
	for name, have := range capacity {
		most = min(most, have/wanted[name])
	}
	return int(most)
}
