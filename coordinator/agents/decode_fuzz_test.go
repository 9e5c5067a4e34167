package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

// encoded is an event as its agent would have sent it.
func encoded(e grant.Event) *musterv1.AgentMessage {
	switch e := e.(type) {
	case Connected:
		return &musterv1.AgentMessage{LedgerHash: e.LedgerHash, Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{
			NodeId: string(e.Node), Incarnation: wire.ToIncarnation(e.Incarnation), RegisteredRevision: int64(e.Revision),
			Host: wire.ToHost(e.Host), Occupancy: occupancyOf(e.Occupancy), Quarantine: e.Quarantine,
		}}}
	case grant.Registered:
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Registered{Registered: &musterv1.Registered{
			Incarnation: wire.ToIncarnation(e.Incarnation), Revision: int64(e.Revision),
		}}}
	case grant.Replied:
		return &musterv1.AgentMessage{LedgerHash: e.LedgerHash, Message: &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{
			Tx: string(e.Tx), State: wire.ToState(e.State), Incarnation: wire.ToIncarnation(e.Incarnation),
			RegisteredRevision: int64(e.Revision), Members: membersOf(e.Members), Reasons: wire.ToReasons(e.Reasons),
		}}}
	case grant.Occupied:
		return &musterv1.AgentMessage{LedgerHash: e.LedgerHash, Message: &musterv1.AgentMessage_Occupancy{Occupancy: occupancyOf(e.Occupancy)}}
	case grant.HealthChanged:
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{
			Devices: healthOf(e.Health), Cordoned: e.Cordoned, DiskFull: e.DiskFull, MemoryPressure: e.MemoryPressure, Quarantine: e.Quarantine,
		}}}
	case grant.Worked:
		return &musterv1.AgentMessage{Message: &musterv1.AgentMessage_Work{Work: workOf(e)}}
	}
	return nil
}

func workOf(w grant.Worked) *musterv1.Work {
	m := &musterv1.Work{Tx: string(w.Tx)}
	for _, s := range w.States {
		state := &musterv1.WorkState{
			Member: int32(s.Member), Restart: int32(s.Restart), Phase: musterv1.WorkState_Phase(s.Phase), Code: int32(s.Code), Signal: int32(s.Signal),
			Reason: s.Reason, Message: s.Message, Signaled: s.Signaled, EpilogFault: s.EpilogFault,
		}
		if u := s.Use; u != nil {
			state.Use = &musterv1.WorkUse{CpuMillis: u.CPU.Milliseconds(), MemoryBytes: int64(u.Memory), PeakMemoryBytes: int64(u.PeakMemory)}
			if u.OOMKills != grant.UnknownKills {
				kills := int64(u.OOMKills)
				state.Use.OomKills = &kills
			}
			for _, d := range u.Devices {
				state.Use.Devices = append(state.Use.Devices, &musterv1.WorkDevice{
					Uuid: d.UUID, BusyMillis: d.Busy.Milliseconds(), MeasuredMillis: d.Measured.Milliseconds(), MemoryBytes: int64(d.Memory), PeakMemoryBytes: int64(d.PeakMemory),
				})
			}
		}
		m.States = append(m.States, state)
	}
	return m
}

func occupancyOf(o grant.Occupancy) *musterv1.Occupancy {
	m := &musterv1.Occupancy{Cordoned: o.Cordoned, DiskFull: o.DiskFull, MemoryPressure: o.MemoryPressure, Health: healthOf(o.Health)}
	if len(o.KubeletPool.Add)+len(o.KubeletPool.Remove) > 0 {
		m.KubeletPool = &musterv1.KubeletPool{Add: o.KubeletPool.Add, Remove: o.KubeletPool.Remove}
	}
	for _, w := range o.Work {
		m.Work = append(m.Work, workOf(w))
	}
	for _, g := range o.Grants {
		m.Grants = append(m.Grants, &musterv1.Grant{
			Tx: string(g.Tx), Unit: string(g.Unit), Epoch: int64(g.Epoch), State: wire.ToState(g.State),
			Members: membersOf(g.Members), Origin: g.Origin, Name: g.Name, Tenant: string(g.Tenant), UnitMembers: int32(g.UnitMembers),
		})
	}
	return m
}

func membersOf(members []grant.Member) (ms []*musterv1.MemberAssignment) {
	for _, m := range members {
		ms = append(ms, wire.ToMember(m.Index, m.Assignment))
	}
	return ms
}

func healthOf(health map[int]grant.DeviceHealth) (ms []*musterv1.DeviceHealth) {
	for i, h := range health {
		ms = append(ms, &musterv1.DeviceHealth{Index: int32(i), Health: h.Health.String(), Reason: h.Reason})
	}
	return ms
}

// FuzzEvent: from the bytes of an agent's message to an event and back. An
// accepted event stays the same over repeated encodings.
func FuzzEvent(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &musterv1.AgentMessage{}
		if limits.Decode(data, m) != nil {
			return
		}
		if hello := m.GetHello(); hello != nil {
			hello.NodeId = "n1"
		}
		event, err := decode("n1", m)
		if err != nil {
			if len(err.Error()) > 1<<20 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		bytes, err := proto.Marshal(encoded(event))
		if err != nil {
			t.Fatal(err)
		}
		next := &musterv1.AgentMessage{}
		if err := limits.Decode(bytes, next); err != nil {
			t.Fatalf("what was taken is refused: %v", err)
		}
		again, err := decode("n1", next)
		if diff := cmp.Diff(event, again); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}
