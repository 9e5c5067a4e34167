package wire

import (
	"fmt"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// ToIncarnation builds the message; the zero incarnation becomes nil.
func ToIncarnation(i resource.Incarnation) *musterv1.Incarnation {
	if i.IsZero() {
		return nil
	}
	return &musterv1.Incarnation{JournalId: i.JournalID, BootId: i.BootID}
}

// FromIncarnation reads the message; nil becomes the zero incarnation. Half an
// incarnation is refused.
func FromIncarnation(m *musterv1.Incarnation) (resource.Incarnation, error) {
	if m == nil {
		return resource.Incarnation{}, nil
	}
	i := resource.Incarnation{JournalID: m.GetJournalId(), BootID: m.GetBootId()}
	if (i.JournalID == "") != (i.BootID == "") {
		return resource.Incarnation{}, fmt.Errorf("incarnation: journal_id %q and boot_id %q must both be set", i.JournalID, i.BootID)
	}
	return i, nil
}

// ToRequest builds the message.
func ToRequest(r resource.Request) *musterv1.Request {
	return &musterv1.Request{
		Cpu: int64(r.CPU), Memory: int64(r.Memory), Gpus: int32(r.GPUs), GpuShare: int64(r.GPUShare),
		GpuModel: r.GPUModel, GpuMemory: int64(r.GPUMemory), NumaPolicy: uint32(r.NUMA), Link: uint32(r.Link),
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
		CPU: resource.Millicores(m.GetCpu()), Memory: resource.Bytes(m.GetMemory()),
		GPUs: int(m.GetGpus()), GPUShare: resource.Milli(m.GetGpuShare()),
		GPUModel: m.GetGpuModel(), GPUMemory: resource.Bytes(m.GetGpuMemory()),
		NUMA: resource.NUMAPolicy(m.GetNumaPolicy()), Link: resource.LinkRequirement(m.GetLink()),
	}
	if err := r.Validate(); err != nil {
		return resource.Request{}, fmt.Errorf("request.%w", err)
	}
	return r, nil
}

// ToAssignment builds the message.
func ToAssignment(a resource.Assignment) *musterv1.Assignment {
	m := &musterv1.Assignment{}
	if len(a.CPUs) > 0 {
		m.Cpus = make([]*musterv1.CPUGrant, len(a.CPUs))
		backing := make([]musterv1.CPUGrant, len(a.CPUs))
		for i, c := range a.CPUs {
			backing[i].Id, backing[i].Milli = int32(c.ID), int64(c.Milli)
			m.Cpus[i] = &backing[i]
		}
	}
	for _, g := range a.Memory {
		m.Memory = append(m.Memory, &musterv1.MemoryGrant{Node: int32(g.Node), Bytes: int64(g.Bytes)})
	}
	for _, g := range a.GPUs {
		m.Gpus = append(m.Gpus, &musterv1.GPUGrant{Index: int32(g.Index), Uuid: g.UUID, Milli: int64(g.Milli)})
	}
	return m
}

// FromAssignment reads the message and checks the invariant of
// resource.Assignment; nil is the empty assignment.
func FromAssignment(m *musterv1.Assignment) (resource.Assignment, error) {
	var a resource.Assignment
	last := -1
	for i, c := range m.GetCpus() {
		if err := ascending("cpus", i, "id", int(c.GetId()), &last); err != nil {
			return resource.Assignment{}, err
		}
		if c.GetMilli() < 1 || c.GetMilli() > int64(resource.WholeCPU) {
			return resource.Assignment{}, fmt.Errorf("assignment.cpus[%d].milli: %d is outside 1..%d", i, c.GetMilli(), resource.WholeCPU)
		}
		a.CPUs = append(a.CPUs, resource.CPUGrant{ID: int(c.GetId()), Milli: resource.Millicores(c.GetMilli())})
	}
	last = -1
	for i, g := range m.GetMemory() {
		if err := ascending("memory", i, "node", int(g.GetNode()), &last); err != nil {
			return resource.Assignment{}, err
		}
		if g.GetBytes() < 1 {
			return resource.Assignment{}, fmt.Errorf("assignment.memory[%d].bytes: %d is not positive", i, g.GetBytes())
		}
		a.Memory = append(a.Memory, resource.MemoryGrant{Node: int(g.GetNode()), Bytes: resource.Bytes(g.GetBytes())})
	}
	last = -1
	for i, g := range m.GetGpus() {
		if err := ascending("gpus", i, "index", int(g.GetIndex()), &last); err != nil {
			return resource.Assignment{}, err
		}
		if g.GetUuid() == "" {
			return resource.Assignment{}, fmt.Errorf("assignment.gpus[%d].uuid: empty", i)
		}
		if g.GetMilli() < 1 || g.GetMilli() > int64(resource.WholeDevice) {
			return resource.Assignment{}, fmt.Errorf("assignment.gpus[%d].milli: %d is outside 1..%d", i, g.GetMilli(), resource.WholeDevice)
		}
		a.GPUs = append(a.GPUs, resource.GPUGrant{Index: int(g.GetIndex()), UUID: g.GetUuid(), Milli: resource.Milli(g.GetMilli())})
	}
	return a, nil
}

// ascending checks that value follows *last and is a small number.
func ascending(list string, i int, field string, value int, last *int) error {
	if value <= *last || value > bitset.MaxMember {
		return fmt.Errorf("assignment.%s[%d].%s: %d is outside %d..%d (entries ascend)", list, i, field, value, *last+1, bitset.MaxMember)
	}
	*last = value
	return nil
}

// ToMember builds the message of one member's assignment; member counts from 0
// within the unit.
func ToMember(member int, a resource.Assignment) *musterv1.MemberAssignment {
	return &musterv1.MemberAssignment{Member: int32(member), Assignment: ToAssignment(a)}
}

// FromMember reads one member's assignment.
func FromMember(m *musterv1.MemberAssignment) (member int, a resource.Assignment, err error) {
	if m.GetMember() < 0 {
		return 0, resource.Assignment{}, fmt.Errorf("member: %d is negative", m.GetMember())
	}
	if a, err = FromAssignment(m.GetAssignment()); err != nil {
		return 0, resource.Assignment{}, fmt.Errorf("member %d: %w", m.GetMember(), err)
	}
	return int(m.GetMember()), a, nil
}

// ToReasons builds the messages.
func ToReasons(reasons []resource.Reason) []*musterv1.Reason {
	if len(reasons) == 0 {
		return nil
	}
	ms := make([]*musterv1.Reason, len(reasons))
	for i, r := range reasons {
		ms[i] = &musterv1.Reason{Code: r.Code, Resource: string(r.Resource), Want: r.Want, Have: r.Have, Detail: r.Detail}
	}
	return ms
}

// FromReasons reads the messages; a reason without a code is refused.
func FromReasons(ms []*musterv1.Reason) ([]resource.Reason, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	reasons := make([]resource.Reason, len(ms))
	for i, m := range ms {
		if m.GetCode() == "" {
			return nil, fmt.Errorf("reasons[%d].code: empty", i)
		}
		reasons[i] = resource.Reason{
			Code: m.GetCode(), Resource: resource.Name(m.GetResource()),
			Want: m.GetWant(), Have: m.GetHave(), Detail: m.GetDetail(),
		}
	}
	return reasons, nil
}
