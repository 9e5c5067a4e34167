package sim

import (
	"errors"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file stands for the wire between a leader and the agents: what an agent
// says becomes an input, what the leader says goes out on its stream.

// hear hands the leader what an agent said.
func (t *term) hear(st *stream, e event) {
	h := st.agent.h
	at := t.links[h.node]
	if at.stream != st {
		return
	}
	switch e := e.(type) {
	case connected:
		st.open = true
		t.renumbered = t.renumbered || at.host != nil && at.host != e.host
		at.host = e.host
		t.heard(lead.StreamOpened{Hello: grant.Hello{
			Node: h.node, Incarnation: e.incarnation, Revision: e.registered, LedgerHash: e.hash, Quarantine: quarantine(e.quarantined),
			Host:      grant.Host{Hostname: string(h.node), Topology: e.host.Topology(), Inventory: e.host.Inventory()},
			Occupancy: e.occupancy.words(),
		}, Fit: e.host})
	case disconnected:
		at.stream = nil
		t.heard(grant.Disconnected{Node: h.node, Err: errors.New("the stream broke")})
	case enrolled:
		t.heard(grant.Registered{Node: h.node, Incarnation: e.incarnation, Revision: e.revision})
	case replied:
		t.replied(h, e)
	case occupied:
		t.heard(grant.Occupied{Node: h.node, Occupancy: e.words(), LedgerHash: e.hash})
	case health:
		t.heard(grant.HealthChanged{Node: h.node, Health: sickOf(e.unhealthy), Cordoned: e.cordoned, Quarantine: quarantine(e.quarantined)})
	}
}

func (t *term) heard(e grant.Event) { t.apply(lead.AgentEvent{Event: e}) }

func (t *term) replied(h *host, e replied) {
	r := grant.Replied{
		Node: h.node, Tx: e.Tx, State: e.State, Incarnation: e.Incarnation, Revision: e.Registered, Members: membersOf(e.Members), Reasons: e.Reasons, LedgerHash: e.hash,
	}
	if e.Refused() {
		r.State, r.Members = grant.No, nil
	}
	t.heard(r)
	t.afterReply(r)
}

func quarantine(is bool) string {
	if is {
		return "the store went back"
	}
	return ""
}

// words are an occupancy as a leader hears it.
func (o occupied) words() grant.Occupancy {
	words := grant.Occupancy{Cordoned: o.cordoned, Health: sickOf(o.unhealthy)}
	for _, g := range o.grants {
		w := grant.Grant{Tx: g.Tx, Unit: g.Unit, Epoch: g.Epoch, State: g.State, Members: membersOf(g.Members), Name: g.Name, Tenant: g.Tenant, UnitMembers: g.UnitMembers}
		if g.Origin != ledger.OriginTxn {
			w.Origin = g.Origin.String()
		}
		words.Grants = append(words.Grants, w)
	}
	return words
}

// sickOf are the devices that take no new work.
func sickOf(mask uint64) map[int]grant.DeviceHealth {
	sick := map[int]grant.DeviceHealth{}
	for i := range 64 {
		if mask&(1<<i) != 0 {
			sick[i] = grant.DeviceHealth{Health: devices.Tainted, Reason: "simulated"}
		}
	}
	return sick
}

func membersOf(members []ledger.Holding) []grant.Member {
	list := make([]grant.Member, len(members))
	for i, m := range members {
		list[i] = m.AsMember()
	}
	return list
}

// send gives an agent a command, if there is a stream to take it.
func (t *term) send(id resource.NodeID, c grant.Command) {
	if t.condition(id, c) {
		return
	}
	if _, is := c.(grant.Resync); is {
		t.tell(id, order{resync: true})
		return
	}
	t.tell(id, order{command: c.(ledger.Command)})
}

// tell queues an order, if there is a stream to take it.
func (t *term) tell(id resource.NodeID, o order) {
	if st := t.links[id].stream; st != nil && st.open && !st.ended {
		st.down = append(st.down, o)
	}
}

// cut ends a node's stream; another begins by itself.
func (t *term) cut(id resource.NodeID) {
	if st := t.links[id].stream; st != nil {
		st.cut()
	}
}

// distrust ends a node's stream until an operator lets the node back.
func (t *term) distrust(id resource.NodeID) {
	t.links[id].distrusted = true
	t.cut(id)
}

// hears reports whether the node's session is this term's.
func (t *term) hears(h *host) bool {
	st := t.links[h.node].stream
	return st != nil && st.open && !st.ended && h.agent != nil && h.agent.session == st
}
