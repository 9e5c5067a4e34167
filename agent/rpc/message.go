package rpc

import (
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

// Body is the content of one message to the leader: a Reply, an Occupancy, an
// Enrolled or a HealthChange.
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
	for _, g := range o.Grants {
		m.Grants = append(m.Grants, &musterv1.Grant{
			Tx: string(g.Tx), Unit: string(g.Unit), Epoch: int64(g.Epoch),
			State: wire.ToState(g.State), Members: membersMessage(g.Members),
			Origin: originMessage(g.Origin), Name: g.Name, Tenant: string(g.Tenant),
			UnitMembers: int32(g.UnitMembers),
		})
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
