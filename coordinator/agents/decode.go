package agents

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// errUnknown ends a stream over a message without a body: an agent of a later
// version may send kinds of messages that this one does not know.
var errUnknown = errors.New("the kind of a message is unknown")

// decode turns a message of the node into an event. A message that breaks the
// vocabulary's rules is an error; the stream is then closed.
func decode(node resource.NodeID, m *musterv1.AgentMessage) (grant.Event, error) {
	hash := m.GetLedgerHash()
	switch body := m.GetMessage().(type) {
	case *musterv1.AgentMessage_Hello:
		return decodeHello(node, body.Hello, hash)
	case *musterv1.AgentMessage_Reply:
		return decodeReply(node, body.Reply, hash)
	case *musterv1.AgentMessage_Occupancy:
		o, err := decodeOccupancy(body.Occupancy)
		return grant.Occupied{Node: node, Occupancy: o, LedgerHash: hash}, err
	case *musterv1.AgentMessage_Registered:
		return decodeRegistered(node, body.Registered)
	case *musterv1.AgentMessage_Health:
		h, err := decodeHealth(body.Health.GetDevices())
		return grant.HealthChanged{Node: node, Health: h, Cordoned: body.Health.GetCordoned(), DiskFull: body.Health.GetDiskFull(), MemoryPressure: body.Health.GetMemoryPressure(), Quarantine: body.Health.GetQuarantine()}, err
	}
	if body, ok := m.GetMessage().(*musterv1.AgentMessage_Work); ok {
		return decodeWork(node, body.Work)
	}
	return nil, errUnknown
}

// decodeWork reads the state of a transaction's processes.
func decodeWork(node resource.NodeID, m *musterv1.Work) (grant.Worked, error) {
	w := grant.Worked{Node: node, Tx: resource.TxID(m.GetTx())}
	if w.Tx == "" {
		return w, errors.New("work.tx: empty")
	}
	for i, s := range m.GetStates() {
		state := grant.WorkState{
			Member: int(s.GetMember()), Restart: int(s.GetRestart()), Phase: grant.WorkPhase(s.GetPhase()), Code: int(s.GetCode()), Signal: int(s.GetSignal()),
			Reason: s.GetReason(), Message: s.GetMessage(), Signaled: s.GetSignaled(), EpilogFault: s.GetEpilogFault(),
		}
		if u := s.GetUse(); u != nil {
			var err error
			if state.Use, err = decodeUse(u); err != nil {
				return w, fmt.Errorf("work on %s: states[%d].use: %w", w.Tx, i, err)
			}
		}
		if state.Phase < grant.WorkStarting || state.Phase > grant.WorkEnded {
			return w, fmt.Errorf("work on %s: states[%d].phase: %s", w.Tx, i, s.GetPhase())
		}
		if (state.Phase == grant.WorkEnded) != (state.Reason != "") {
			return w, fmt.Errorf("work on %s: states[%d]: phase %s with reason %q", w.Tx, i, state.Phase, state.Reason)
		}
		if i > 0 && state.Compare(w.States[i-1]) <= 0 {
			return w, fmt.Errorf("work on %s: states[%d]: member %d, restart %d are not in order", w.Tx, i, state.Member, state.Restart)
		}
		w.States = append(w.States, state)
	}
	return w, nil
}

// decodeUse reads the measured use of a member. A host may claim any amount.
func decodeUse(m *musterv1.WorkUse) (*grant.WorkUse, error) {
	u := &grant.WorkUse{CPU: millis(m.GetCpuMillis()), Memory: resource.Bytes(m.GetMemoryBytes()), PeakMemory: resource.Bytes(m.GetPeakMemoryBytes()), OOMKills: grant.UnknownKills}
	if m.OomKills != nil {
		u.OOMKills = int(min(m.GetOomKills(), grant.MaxKills))
	}
	for i, d := range m.GetDevices() {
		if i > 0 && d.GetUuid() <= u.Devices[i-1].UUID || d.GetUuid() == "" {
			return nil, fmt.Errorf("devices[%d].uuid: %q: want ascending UUIDs", i, d.GetUuid())
		}
		u.Devices = append(u.Devices, grant.DeviceUse{UUID: d.GetUuid(), Busy: millis(d.GetBusyMillis()), Measured: millis(d.GetMeasuredMillis()), Memory: resource.Bytes(d.GetMemoryBytes()), PeakMemory: resource.Bytes(d.GetPeakMemoryBytes())})
	}
	return u, nil
}

// millis is a time of so many milliseconds, or the longest one that there is.
func millis(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

func decodeHello(node resource.NodeID, h *musterv1.AgentHello, hash uint64) (grant.Event, error) {
	if got := resource.NodeID(h.GetNodeId()); got != node {
		return nil, fmt.Errorf("hello.node_id: %q answers at the address of %q", got, node)
	}
	incarnation, err := wire.FromIncarnation(h.GetIncarnation())
	if err != nil {
		return nil, fmt.Errorf("hello.%w", err)
	}
	host, err := wire.FromHost(h.GetHost())
	if err != nil {
		return nil, fmt.Errorf("hello.%w", err)
	}
	o, err := decodeOccupancy(h.GetOccupancy())
	if err != nil {
		return nil, fmt.Errorf("hello.%w", err)
	}
	return Connected{Hello: grant.Hello{
		Node: node, Incarnation: incarnation, Revision: resource.Revision(h.GetRegisteredRevision()),
		Host: host, Occupancy: o, LedgerHash: hash, Quarantine: h.GetQuarantine(),
	}}, nil
}

func decodeRegistered(node resource.NodeID, r *musterv1.Registered) (grant.Event, error) {
	incarnation, err := wire.FromIncarnation(r.GetIncarnation())
	if err != nil {
		return nil, fmt.Errorf("registered.%w", err)
	}
	if incarnation.IsZero() || r.GetRevision() <= 0 {
		return nil, fmt.Errorf("registered: incarnation %q at revision %d: want both", incarnation, r.GetRevision())
	}
	return grant.Registered{Node: node, Incarnation: incarnation, Revision: resource.Revision(r.GetRevision())}, nil
}

func decodeReply(node resource.NodeID, r *musterv1.Reply, hash uint64) (grant.Event, error) {
	if r.GetTx() == "" {
		return nil, fmt.Errorf("reply.tx: empty in an answer of %s", r.GetState())
	}
	state, err := wire.FromState(r.GetState())
	if err != nil {
		return nil, fmt.Errorf("reply on %s: %w", r.GetTx(), err)
	}
	incarnation, err := wire.FromIncarnation(r.GetIncarnation())
	if err != nil {
		return nil, fmt.Errorf("reply on %s: %w", r.GetTx(), err)
	}
	members, err := decodeMembers(r.GetMembers())
	if err != nil {
		return nil, fmt.Errorf("reply on %s: %w", r.GetTx(), err)
	}
	reasons, err := wire.FromReasons(r.GetReasons())
	if err != nil {
		return nil, fmt.Errorf("reply on %s: %w", r.GetTx(), err)
	}
	return grant.Replied{
		Node: node, Tx: resource.TxID(r.GetTx()), State: state, Incarnation: incarnation,
		Revision: resource.Revision(r.GetRegisteredRevision()), Members: members, Reasons: reasons, LedgerHash: hash,
	}, nil
}

func decodeOccupancy(o *musterv1.Occupancy) (grant.Occupancy, error) {
	health, err := decodeHealth(o.GetHealth())
	if err != nil {
		return grant.Occupancy{}, err
	}
	result := grant.Occupancy{Cordoned: o.GetCordoned(), DiskFull: o.GetDiskFull(), MemoryPressure: o.GetMemoryPressure(), Health: health}
	result.KubeletPool = grant.KubeletPool{Add: o.GetKubeletPool().GetAdd(), Remove: o.GetKubeletPool().GetRemove()}
	for _, m := range o.GetWork() {
		w, err := decodeWork("", m)
		if err != nil {
			return grant.Occupancy{}, err
		}
		result.Work = append(result.Work, w)
	}
	seen := make(map[string]bool, len(o.GetGrants()))
	for i, g := range o.GetGrants() {
		if g.GetTx() == "" || seen[g.GetTx()] {
			return grant.Occupancy{}, fmt.Errorf("grants[%d].tx: %q is empty or told twice", i, g.GetTx())
		}
		seen[g.GetTx()] = true
		state, err := wire.FromState(g.GetState())
		if err != nil {
			return grant.Occupancy{}, fmt.Errorf("grant %s: %w", g.GetTx(), err)
		}
		members, err := decodeMembers(g.GetMembers())
		if err != nil {
			return grant.Occupancy{}, fmt.Errorf("grant %s: %w", g.GetTx(), err)
		}
		if g.GetUnitMembers() < 0 {
			return grant.Occupancy{}, fmt.Errorf("grant %s: its unit has %d members", g.GetTx(), g.GetUnitMembers())
		}
		result.Grants = append(result.Grants, grant.Grant{
			Tx: resource.TxID(g.GetTx()), Unit: resource.UnitUID(g.GetUnit()), Epoch: resource.Epoch(g.GetEpoch()),
			State: state, Members: members, Name: g.GetName(), Tenant: resource.TenantID(g.GetTenant()), Origin: origin(g.GetOrigin()),
			UnitMembers: int(g.GetUnitMembers()),
		})
	}
	return result, nil
}

func decodeMembers(ms []*musterv1.MemberAssignment) ([]grant.Member, error) {
	var members []grant.Member
	for _, m := range ms {
		index, a, err := wire.FromMember(m)
		if err != nil {
			return nil, err
		}
		if n := len(members); n > 0 && index <= members[n-1].Index {
			return nil, fmt.Errorf("member %d follows member %d, want ascending", index, members[n-1].Index)
		}
		members = append(members, grant.Member{Index: index, Assignment: a})
	}
	return members, nil
}

func decodeHealth(ds []*musterv1.DeviceHealth) (map[int]grant.DeviceHealth, error) {
	if len(ds) == 0 {
		return nil, nil
	}
	health := make(map[int]grant.DeviceHealth, len(ds))
	for _, d := range ds {
		h, err := devices.ParseHealth(d.GetHealth())
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", d.GetIndex(), err)
		}
		index := int(d.GetIndex())
		if _, twice := health[index]; twice || index < 0 {
			return nil, fmt.Errorf("device %d: told twice or below 0", index)
		}
		health[index] = grant.DeviceHealth{Health: h, Reason: d.GetReason()}
	}
	return health, nil
}

// origin is "" for a transaction of a leader, which the wire may also call "txn".
func origin(name string) string {
	if name == "txn" {
		return ""
	}
	return name
}
