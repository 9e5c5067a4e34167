package wire

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/devices"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/wire/limits"
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
	for _, g := range a.Hugepages {
		m.Hugepages = append(m.Hugepages, &musterv1.HugepageGrant{Node: int32(g.Node), Size: int64(g.Size), Bytes: int64(g.Bytes)})
	}
	for _, g := range a.GPUs {
		m.Gpus = append(m.Gpus, &musterv1.GPUGrant{Index: int32(g.Index), Uuid: g.UUID, Milli: int64(g.Milli)})
	}
	for _, g := range a.MIG {
		m.Mig = append(m.Mig, &musterv1.MIGGrant{Gpu: int32(g.GPU), Instance: int32(g.Instance), Uuid: g.UUID, Profile: g.Profile})
	}
	for _, g := range a.Counts {
		m.Counts = append(m.Counts, &musterv1.CountGrant{Name: string(g.Name), Amount: g.Amount})
	}
	return m
}

// FromAssignment reads the message and checks the invariant of
// resource.Assignment; nil is the empty assignment.
func FromAssignment(m *musterv1.Assignment) (resource.Assignment, error) {
	var a resource.Assignment
	for _, read := range [...]func(*musterv1.Assignment, *resource.Assignment) error{
		fromCPUs, fromMemory, fromHugepages, fromGPUs, fromMIG, fromCounts,
	} {
		if err := read(m, &a); err != nil {
			return resource.Assignment{}, fmt.Errorf("assignment.%w", err)
		}
	}
	return a, nil
}

func fromCPUs(m *musterv1.Assignment, a *resource.Assignment) error {
	last := -1
	for i, c := range m.GetCpus() {
		if err := ascending("cpus", i, "id", c.GetId(), &last); err != nil {
			return err
		}
		if c.GetMilli() < 1 || c.GetMilli() > int64(resource.WholeCPU) {
			return fmt.Errorf("cpus[%d].milli: %d is outside 1..%d", i, c.GetMilli(), resource.WholeCPU)
		}
		a.CPUs = append(a.CPUs, resource.CPUGrant{ID: int(c.GetId()), Milli: resource.Millicores(c.GetMilli())})
	}
	return nil
}

func fromMemory(m *musterv1.Assignment, a *resource.Assignment) error {
	last := -1
	for i, g := range m.GetMemory() {
		if err := ascending("memory", i, "node", g.GetNode(), &last); err != nil {
			return err
		}
		if g.GetBytes() < 1 || g.GetBytes() > int64(resource.MaxMemory) {
			return fmt.Errorf("memory[%d].bytes: %d is outside 1..%d", i, g.GetBytes(), resource.MaxMemory)
		}
		a.Memory = append(a.Memory, resource.MemoryGrant{Node: int(g.GetNode()), Bytes: resource.Bytes(g.GetBytes())})
	}
	return nil
}

func fromHugepages(m *musterv1.Assignment, a *resource.Assignment) error {
	for i, g := range m.GetHugepages() {
		grant := resource.HugepageGrant{Node: int(g.GetNode()), Size: resource.Bytes(g.GetSize()), Bytes: resource.Bytes(g.GetBytes())}
		switch {
		case grant.Node < 0 || grant.Node > bitset.MaxMember:
			return fmt.Errorf("hugepages[%d].node: %d is outside 0..%d", i, grant.Node, bitset.MaxMember)
		case grant.Size < 1 || grant.Size > resource.MaxHugepageSize || grant.Size%1024 != 0:
			return fmt.Errorf("hugepages[%d].size: %d; want whole KiB up to %d", i, grant.Size, resource.MaxHugepageSize)
		case grant.Bytes > resource.MaxMemory:
			return fmt.Errorf("hugepages[%d].bytes: %d is more than %d", i, grant.Bytes, resource.MaxMemory)
		case grant.Bytes < 1 || grant.Bytes%grant.Size != 0:
			return fmt.Errorf("hugepages[%d].bytes: %d is no positive multiple of the page size %d", i, grant.Bytes, grant.Size)
		}
		if n := len(a.Hugepages); n > 0 {
			before := a.Hugepages[n-1]
			if cmp.Or(cmp.Compare(before.Node, grant.Node), cmp.Compare(before.Size, grant.Size)) >= 0 {
				return fmt.Errorf("hugepages[%d]: node %d, size %d follows node %d, size %d (entries ascend)", i, grant.Node, grant.Size, before.Node, before.Size)
			}
		}
		a.Hugepages = append(a.Hugepages, grant)
	}
	return nil
}

func fromGPUs(m *musterv1.Assignment, a *resource.Assignment) error {
	last := -1
	for i, g := range m.GetGpus() {
		if err := ascending("gpus", i, "index", g.GetIndex(), &last); err != nil {
			return err
		}
		if g.GetUuid() == "" {
			return fmt.Errorf("gpus[%d].uuid: empty", i)
		}
		if g.GetMilli() < 1 || g.GetMilli() > int64(resource.WholeDevice) {
			return fmt.Errorf("gpus[%d].milli: %d is outside 1..%d", i, g.GetMilli(), resource.WholeDevice)
		}
		a.GPUs = append(a.GPUs, resource.GPUGrant{Index: int(g.GetIndex()), UUID: g.GetUuid(), Milli: resource.Milli(g.GetMilli())})
	}
	return nil
}

// maxProfile bounds the name of a MIG profile.
const maxProfile = 2 * resource.MaxMIGProfile

func fromMIG(m *musterv1.Assignment, a *resource.Assignment) error {
	for i, g := range m.GetMig() {
		grant := resource.MIGGrant{GPU: int(g.GetGpu()), Instance: int(g.GetInstance()), UUID: g.GetUuid(), Profile: g.GetProfile()}
		switch {
		case grant.GPU < 0 || grant.GPU > bitset.MaxMember:
			return fmt.Errorf("mig[%d].gpu: %d is outside 0..%d", i, grant.GPU, bitset.MaxMember)
		case grant.Instance < 0 || grant.Instance >= devices.MaxMIGInstances:
			return fmt.Errorf("mig[%d].instance: %d is outside 0..%d", i, grant.Instance, devices.MaxMIGInstances-1)
		case grant.UUID == "":
			return fmt.Errorf("mig[%d].uuid: empty", i)
		case grant.Profile == "" || len(grant.Profile) > maxProfile: // as the driver calls it now
			return fmt.Errorf("mig[%d].profile: %d bytes is outside 1..%d", i, len(grant.Profile), maxProfile)
		}
		if n := len(a.MIG); n > 0 {
			before := a.MIG[n-1]
			if cmp.Or(cmp.Compare(before.GPU, grant.GPU), cmp.Compare(before.Instance, grant.Instance)) >= 0 {
				return fmt.Errorf("mig[%d]: GPU %d, instance %d follows GPU %d, instance %d (entries ascend)", i, grant.GPU, grant.Instance, before.GPU, before.Instance)
			}
		}
		a.MIG = append(a.MIG, grant)
	}
	return nil
}

func fromCounts(m *musterv1.Assignment, a *resource.Assignment) error {
	for i, g := range m.GetCounts() {
		grant := resource.CountGrant{Name: resource.Name(g.GetName()), Amount: g.GetAmount()}
		if err := resource.CheckCount(grant.Name, grant.Amount); err != nil {
			return fmt.Errorf("counts[%d]: %w", i, err)
		}
		if n := len(a.Counts); n > 0 && a.Counts[n-1].Name >= grant.Name {
			return fmt.Errorf("counts[%d]: %s follows %s (entries ascend)", i, grant.Name, a.Counts[n-1].Name)
		}
		a.Counts = append(a.Counts, grant)
	}
	return nil
}

// ascending checks that value follows *last and is a small number.
func ascending(list string, i int, field string, value int32, last *int) error {
	if int(value) <= *last || value > bitset.MaxMember {
		return fmt.Errorf("%s[%d].%s: %d is outside %d..%d (entries ascend)", list, i, field, value, *last+1, bitset.MaxMember)
	}
	*last = int(value)
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

// ToReasons builds the messages, at most limits.MaxReasons of them, with details
// of at most limits.MaxDetail bytes.
func ToReasons(reasons []resource.Reason) []*musterv1.Reason {
	if len(reasons) == 0 {
		return nil
	}
	reasons = reasons[:min(len(reasons), limits.MaxReasons)]
	ms := make([]*musterv1.Reason, len(reasons))
	for i, r := range reasons {
		ms[i] = &musterv1.Reason{Code: r.Code, Resource: string(r.Resource), Want: r.Want, Have: r.Have, Detail: limits.Plain(r.Detail, limits.MaxDetail)}
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
