package rpc

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

// Body is the content of one message to the leader: a Reply, an Occupancy, an
// Enrolled, a HealthChange or a Work.
type Body interface{ fill(*musterv1.AgentMessage) }

type (
	// Reply is the answer to a command, or the news of one transaction.
	Reply ledger.Reply
	// Occupancy is everything the ledger holds, tombstones included.
	Occupancy struct {
		Grants             []ledger.Grant // in ascending order of Tx
		Cordoned, DiskFull bool
		MemoryPressure     bool
		Health             []DeviceHealth // ascending; devices that are ok are left out
		Work               []Work         // ascending by Tx
		KubeletPool        grant.KubeletPool
	}
	// Work is the state of a transaction's processes.
	Work struct {
		Tx     resource.TxID
		States []grant.WorkState // ascending
	}
	// Enrolled reports that this incarnation has registered.
	Enrolled struct {
		Incarnation resource.Incarnation
		Revision    resource.Revision
	}
	// HealthChange reports the health of all devices that are not ok, and
	// whether the host takes new work.
	HealthChange struct {
		Health             []DeviceHealth
		Cordoned, DiskFull bool
		MemoryPressure     bool
		Quarantine         string // why, "" while there is none
	}
)

// DeviceHealth is one device's health, and why it is not ok.
type DeviceHealth struct {
	Index  int
	Health devices.Health
	Reason string
}

func (e Envelope) message() *musterv1.AgentMessage {
	m := &musterv1.AgentMessage{LedgerHash: e.LedgerHash}
	e.Body.fill(m)
	return m
}

func (r Reply) fill(m *musterv1.AgentMessage) {
	state := wire.ToState(r.State)
	if len(r.Reasons) > 0 {
		state = musterv1.Reply_NO
	}
	m.Message = &musterv1.AgentMessage_Reply{Reply: &musterv1.Reply{
		Tx: string(r.Tx), State: state, Incarnation: wire.ToIncarnation(r.Incarnation), RegisteredRevision: int64(r.Registered),
		Members: membersMessage(r.Members), Reasons: wire.ToReasons(r.Reasons),
	}}
}

func (o Occupancy) fill(m *musterv1.AgentMessage) {
	m.Message = &musterv1.AgentMessage_Occupancy{Occupancy: o.message()}
}

func (o Occupancy) message() *musterv1.Occupancy {
	m := &musterv1.Occupancy{Cordoned: o.Cordoned, DiskFull: o.DiskFull, MemoryPressure: o.MemoryPressure, Health: healthMessage(o.Health)}
	if pool := o.KubeletPool; !pool.IsZero() {
		m.KubeletPool = &musterv1.KubeletPool{Add: pool.Add, Remove: pool.Remove}
	}
	for _, g := range o.Grants {
		m.Grants = append(m.Grants, &musterv1.Grant{
			Tx: string(g.Tx), Unit: string(g.Unit), Epoch: int64(g.Epoch),
			State: wire.ToState(g.State), Members: membersMessage(g.Members),
			Origin: originMessage(g.Origin), Name: g.Name, Tenant: string(g.Tenant),
			UnitMembers: int32(g.UnitMembers),
		})
	}
	for _, w := range o.Work {
		m.Work = append(m.Work, w.message())
	}
	return m
}

func (w Work) fill(m *musterv1.AgentMessage) {
	m.Message = &musterv1.AgentMessage_Work{Work: w.message()}
}

func (w Work) message() *musterv1.Work {
	m := &musterv1.Work{Tx: string(w.Tx)}
	for _, s := range w.States {
		m.States = append(m.States, &musterv1.WorkState{
			Use: useMessage(s.Use), Signaled: s.Signaled, EpilogFault: limits.Plain(s.EpilogFault, limits.MaxReason),
			Member: int32(s.Member), Restart: int32(s.Restart), Phase: musterv1.WorkState_Phase(s.Phase), Code: int32(s.Code), Signal: int32(s.Signal),
			Reason: limits.Plain(s.Reason, limits.MaxReason), Message: limits.Plain(s.Message, limits.MaxReason),
		})
	}
	return m
}

func useMessage(u *grant.WorkUse) *musterv1.WorkUse {
	if u == nil {
		return nil
	}
	m := &musterv1.WorkUse{CpuMillis: u.CPU.Milliseconds(), MemoryBytes: int64(u.Memory), PeakMemoryBytes: int64(u.PeakMemory)}
	if u.OOMKills != grant.UnknownKills {
		kills := int64(u.OOMKills)
		m.OomKills = &kills
	}
	for _, d := range u.Devices {
		m.Devices = append(m.Devices, &musterv1.WorkDevice{Uuid: d.UUID, BusyMillis: d.Busy.Milliseconds(), MeasuredMillis: d.Measured.Milliseconds(), MemoryBytes: int64(d.Memory), PeakMemoryBytes: int64(d.PeakMemory)})
	}
	return m
}

func (e Enrolled) fill(m *musterv1.AgentMessage) {
	m.Message = &musterv1.AgentMessage_Registered{Registered: &musterv1.Registered{
		Incarnation: wire.ToIncarnation(e.Incarnation), Revision: int64(e.Revision),
	}}
}

func (h HealthChange) fill(m *musterv1.AgentMessage) {
	m.Message = &musterv1.AgentMessage_Health{Health: &musterv1.HealthChange{
		Devices: healthMessage(h.Health), Cordoned: h.Cordoned, DiskFull: h.DiskFull, MemoryPressure: h.MemoryPressure, Quarantine: limits.Plain(h.Quarantine, limits.MaxReason),
	}}
}

func welcomeMessage(w Welcome) *musterv1.AgentMessage {
	return &musterv1.AgentMessage{LedgerHash: w.LedgerHash, Message: &musterv1.AgentMessage_Hello{Hello: &musterv1.AgentHello{
		NodeId: string(w.Node), Incarnation: wire.ToIncarnation(w.Incarnation), RegisteredRevision: int64(w.Revision),
		Host: wire.ToHost(w.Host), Occupancy: w.Occupancy.message(), Quarantine: limits.Plain(w.Quarantine, limits.MaxReason),
	}}}
}

// originMessage is "" for the origin of nearly all grants.
func originMessage(o ledger.Origin) string {
	if o == ledger.OriginTxn {
		return ""
	}
	return o.String()
}

func membersMessage(members []ledger.Holding) []*musterv1.MemberAssignment {
	if len(members) == 0 {
		return nil
	}
	ms := make([]*musterv1.MemberAssignment, len(members))
	for i, m := range members {
		ms[i] = wire.ToMember(m.Index, m.Assignment)
	}
	return ms
}

func healthMessage(health []DeviceHealth) []*musterv1.DeviceHealth {
	var ms []*musterv1.DeviceHealth
	for _, h := range health {
		ms = append(ms, &musterv1.DeviceHealth{Index: int32(h.Index), Health: h.Health.String(), Reason: limits.Plain(h.Reason, limits.MaxReason)})
	}
	return ms
}
