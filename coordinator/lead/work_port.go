package lead

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/resource"
)

// This file chooses the port at which the members of a unit meet. The commit writes the
// port into the record, so it stays over a change of the leader.

// choosePort gives an attempt that is about to be committed a port that no other live
// attempt has on the host of member 0; 0 for a unit without work.
func (l *Leader) choosePort(a *work.Attempt) int {
	if a.Unit.Work() == nil || a.Port != 0 {
		return a.Port
	}
	host := l.addressOf(a.FirstNode())
	if a.Unit.Record.Replaces {
		port := l.gangPort(a)
		if a.Unit.Rank() != 0 || port != 0 && !l.isPortTaken(port, host) {
			l.keepPort(a, port)
			return port
		}
	}
	port, ok := l.rules.Ports.Choose(a.Machine.ID(), func(port int) bool { return l.isPortTaken(port, host) })
	if !ok {
		l.post.Warn("rendezvous_ports_used_up", "host", host, "ports", l.rules.Ports.Len(), "unit", a.Unit.Path, "shared_port", port)
	}
	l.keepPort(a, port)
	return port
}

// portHolders are the attempts that have each port of work, with some that have ended.
type portHolders struct{ by map[int][]resource.TxID }

func (p *portHolders) add(port int, tx resource.TxID) {
	if p.by == nil {
		p.by = map[int][]resource.TxID{}
	}
	p.by[port] = append(p.by[port], tx)
}

// keep drops the holders of a port that have ended, and returns the others. Each port is
// looked at before it is given to one more, so a list is at most one longer than its live
// holders were then.
func (p *portHolders) keep(port int, isLive func(resource.TxID) bool) []resource.TxID {
	live := slices.DeleteFunc(p.by[port], func(tx resource.TxID) bool { return !isLive(tx) })
	if len(live) == 0 {
		delete(p.by, port)
		return nil
	}
	p.by[port] = live
	return live
}

// isPortTaken reports whether a live attempt has a port on a host.
func (l *Leader) isPortTaken(port int, host string) bool {
	live := l.ports.keep(port, func(tx resource.TxID) bool { return l.work.Attempts[tx] != nil })
	return slices.ContainsFunc(live, func(tx resource.TxID) bool { return l.addressOf(l.work.Attempts[tx].FirstNode()) == host })
}

// keepPort notes the port of an attempt.
func (v *view) keepPort(a *work.Attempt, port int) {
	a.SetPort(port)
	if !a.Unit.Record.Replaces || a.Unit.Rank() == 0 { // else the port is on the host of another unit
		v.ports.add(port, a.Machine.ID())
	}
}

// restorePort takes over the port of a record. A record of an older version has none:
// its work was started with the preferred one.
func (v *view) restorePort(a *work.Attempt, port int) {
	if a.Unit.Work() != nil {
		v.keepPort(a, cmp.Or(port, rendezvous.Default.Preferred(a.Machine.ID())))
	}
}

// addressOf is the address of a node's host, without a port; the node's id where no
// address is known.
func (l *Leader) addressOf(id resource.NodeID) string {
	if n := l.nodes[id]; n != nil {
		if at := strings.LastIndexByte(n.spec.AgentAddr, ':'); at > 0 {
			return strings.Trim(n.spec.AgentAddr[:at], "[]")
		}
	}
	return string(id)
}
