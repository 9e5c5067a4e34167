package wire

import (
	"fmt"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// ToRequest builds the message.
func ToRequest(r resource.Request) *musterv1.Request {
	return &musterv1.Request{
		Cpu: int64(r.CPU), Cores: int32(r.Cores), Memory: int64(r.Memory),
		Hugepages: int64(r.Hugepages), HugepageSize: int64(r.HugepageSize),
		Gpus: int32(r.GPUs), GpuShare: int64(r.GPUShare), Mig: int32(r.MIG), MigProfile: r.MIGProfile,
		GpuModel: r.GPUModel, GpuMemory: int64(r.GPUMemory), NumaPolicy: uint32(r.NUMA), Link: uint32(r.Link), Counts: string(r.Counts),
	}
}

// FromRequest reads the message and applies resource.Request.Validate.
func FromRequest(m *musterv1.Request) (resource.Request, error) {
	if m == nil {
		return resource.Request{}, fmt.Errorf("request: missing")
	}
	if m.GetNumaPolicy() > 255 {
		return resource.Request{}, fmt.Errorf("request.numa_policy: %d is unknown", m.GetNumaPolicy())
	}
	if m.GetLink() > 255 {
		return resource.Request{}, fmt.Errorf("request.link: %d is unknown", m.GetLink())
	}
	r := resource.Request{
		CPU: resource.Millicores(m.GetCpu()), Cores: int(m.GetCores()), Memory: resource.Bytes(m.GetMemory()),
		Hugepages: resource.Bytes(m.GetHugepages()), HugepageSize: resource.Bytes(m.GetHugepageSize()),
		GPUs: int(m.GetGpus()), GPUShare: resource.Milli(m.GetGpuShare()), MIG: int(m.GetMig()), MIGProfile: m.GetMigProfile(),
		GPUModel: m.GetGpuModel(), GPUMemory: resource.Bytes(m.GetGpuMemory()),
		NUMA: resource.NUMAPolicy(m.GetNumaPolicy()), Link: resource.LinkRequirement(m.GetLink()),
		Counts: resource.Counts(m.GetCounts()),
	}
	if err := r.Validate(); err != nil {
		return resource.Request{}, fmt.Errorf("request.%w", err)
	}
	return r, nil
}
