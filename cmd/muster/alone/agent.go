package alone

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Agent is a ledger that answers at once. Nothing runs on its host: a transaction
// that is to stop has ended, and one that is evicted ends with its grace.
type Agent struct {
	node   resource.NodeID
	host   grant.Host
	fit    *fit.Host
	ledger *ledger.Ledger
}

// NewAgent starts the agent of a host that the store has registered.
func NewAgent(node resource.NodeID, host grant.Host, f *fit.Host, who resource.Incarnation, registered resource.Revision, now time.Time) *Agent {
	a := &Agent{node: node, host: host, fit: f, ledger: ledger.New(f)}
	a.decide(ledger.Start{Incarnation: who}, now)
	a.decide(ledger.Registered{Revision: registered}, now)
	return a
}

// decide decides and applies a command. It returns the answer, and the
// transactions that it ends.
func (a *Agent) decide(c ledger.Command, now time.Time) (reply ledger.Reply, ends []resource.TxID) {
	reply, events := a.ledger.Decide(now, c)
	for _, e := range events {
		must(a.ledger.Apply(e))
		if stop, is := e.(ledger.StopBegun); is {
			ends = append(ends, stop.Tx)
		}
	}
	for _, alarm := range reply.Alarms {
		panic(fmt.Sprintf("alone: node %s: %s", a.node, alarm))
	}
	return reply, append(ends, reply.Stop...)
}

// Obey carries out a command of the leader and returns the answers.
func (a *Agent) Obey(c grant.Command, now time.Time) []grant.Event {
	command, decides := c.(ledger.Command)
	if !decides { // Resync
		return []grant.Event{grant.Occupied{Node: a.node, Occupancy: a.occupancy(), LedgerHash: a.ledger.Hash()}}
	}
	reply, ends := a.decide(command, now)
	if _, cordons := c.(grant.Cordon); cordons {
		return []grant.Event{grant.HealthChanged{Node: a.node, Cordoned: a.ledger.Snapshot().Cordoned}}
	}
	if _, pools := c.(grant.KubeletPool); pools {
		return []grant.Event{grant.Occupied{Node: a.node, Occupancy: a.occupancy(), LedgerHash: a.ledger.Hash()}}
	}
	woken := a.woken(reply)
	if !slices.Contains(ends, reply.Tx) && reply.Tx != "" {
		woken = append([]grant.Event{a.replied(reply)}, woken...)
	}
	return append(woken, a.end(ends, now)...)
}

// Tick ends what is due.
func (a *Agent) Tick(now time.Time) []grant.Event {
	_, ends := a.decide(ledger.Tick{}, now)
	return a.end(ends, now)
}

// end ends transactions of which nothing runs.
func (a *Agent) end(ends []resource.TxID, now time.Time) (said []grant.Event) {
	for _, tx := range ends {
		reply, _ := a.decide(ledger.Stopped{Tx: tx}, now)
		said = append(said, a.replied(reply))
		said = append(said, a.woken(reply)...)
	}
	return said
}

// woken are the answers of those that were waiting for what has ended.
func (a *Agent) woken(r ledger.Reply) (said []grant.Event) {
	for _, tx := range r.Woken {
		g, _ := a.ledger.Lookup(tx)
		said = append(said, a.replied(ledger.Reply{Tx: tx, State: g.State, Members: g.Members, Incarnation: r.Incarnation, Registered: r.Registered}))
	}
	return said
}

func (a *Agent) replied(r ledger.Reply) grant.Replied {
	e := grant.Replied{
		Node: a.node, Tx: r.Tx, State: r.State, Incarnation: r.Incarnation, Revision: r.Registered, Reasons: r.Reasons, LedgerHash: a.ledger.Hash(),
	}
	if r.Refused() {
		e.State = grant.No
		return e
	}
	e.Members = members(r.Members)
	return e
}

func members(held []ledger.Holding) (list []grant.Member) {
	for _, h := range held {
		list = append(list, h.AsMember())
	}
	return list
}

// Due is when the next of what is evicted ends.
func (a *Agent) Due() (at time.Time, found bool) {
	for _, g := range a.ledger.Snapshot().Grants {
		if g.State == grant.Evicting && (!found || g.Deadline.Before(at)) {
			at, found = g.Deadline, true
		}
	}
	return at, found
}

// Hello opens the stream.
func (a *Agent) Hello() lead.Input {
	return lead.AgentEvent{Event: lead.StreamOpened{
		Hello: grant.Hello{
			Node: a.node, Incarnation: a.ledger.Incarnation(), Revision: a.ledger.Registration(), Host: a.host,
			Occupancy: a.occupancy(), LedgerHash: a.ledger.Hash(),
		},
		Fit: a.fit,
	}}
}

func (a *Agent) occupancy() grant.Occupancy {
	v := a.ledger.Snapshot()
	o := grant.Occupancy{Cordoned: v.Cordoned, KubeletPool: v.KubeletPool, DiskFull: v.DiskFull, MemoryPressure: v.MemoryPressure}
	for _, g := range v.GPUs {
		if g.Health == devices.OK {
			continue
		}
		if o.Health == nil {
			o.Health = map[int]grant.DeviceHealth{}
		}
		o.Health[g.Index] = grant.DeviceHealth{Health: g.Health, Reason: g.Reason}
	}
	for _, g := range v.Grants {
		o.Grants = append(o.Grants, grant.Grant{
			Tx: g.Tx, Unit: g.Unit, Epoch: g.Epoch, State: g.State, Members: members(g.Members), Name: g.Name, Tenant: g.Tenant, UnitMembers: g.UnitMembers,
		})
	}
	return o
}
