package rpc

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// memberUses reads a host's claims about the use of members that run there, ascending by
// transaction and member. Each member counts once, and whether the host has such a member
// is compared where the member is shown.
func memberUses(told []*schedulerv1.PodStatus) []record.MemberUse {
	var list []record.MemberUse
	rows := 0
	for _, status := range told {
		for _, m := range status.GetUses() {
			if len(list) == limits.MaxMemberUses {
				break
			}
			use := useOf(m.GetUse())
			if rows += len(use.Devices); rows > limits.MaxUsedDevices {
				use.Devices = nil
			}
			list = append(list, record.MemberUse{Tx: resource.TxID(status.GetAllocationId()), Member: int(m.GetMember()), Use: use})
		}
	}
	list = slices.DeleteFunc(list, func(u record.MemberUse) bool { return u.Tx == "" })
	slices.SortStableFunc(list, func(a, b record.MemberUse) int { return a.CompareMember(b.Tx, b.Member) })
	return slices.CompactFunc(list, func(a, b record.MemberUse) bool { return a.CompareMember(b.Tx, b.Member) == 0 })
}

// useOf reads one use. Negative values were refused before (package limits). Devices have
// ascending UUIDs; others are left out.
func useOf(m *musterv1.WorkUse) record.Use {
	u := record.Use{CPUMillis: m.GetCpuMillis(), Memory: resource.Bytes(m.GetMemoryBytes()), PeakMemory: resource.Bytes(m.GetPeakMemoryBytes())}
	if m != nil && m.OomKills != nil {
		kills := m.GetOomKills()
		u.OOMKills = &kills
	}
	last := ""
	for _, d := range m.GetDevices()[:min(len(m.GetDevices()), devices.MaxUses)] {
		if d.GetUuid() > last {
			last = d.GetUuid()
			u.Devices = append(u.Devices, record.WorkDevice{UUID: last, BusyMillis: d.GetBusyMillis(), MeasuredMillis: d.GetMeasuredMillis(), Memory: resource.Bytes(d.GetMemoryBytes()), PeakMemory: resource.Bytes(d.GetPeakMemoryBytes())})
		}
	}
	return u
}
