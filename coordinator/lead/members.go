package lead

import (
	"github.com/musterd/muster/coordinator/lead/hosts"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file answers which devices a transaction holds on a node. The record of a
// decided transaction names them, and no message of an agent changes the record.

// membersOf returns the members of a transaction on a node: those of the record
// where there is one, else the members that the agent reports. An agent that
// reports other devices for a record would free the recorded devices for others.
// surplus are the reported devices that the record does not have: an agent that has
// lied in its promise holds them, and refuses them to each other transaction.
func (l *Leader) membersOf(n *node, tx resource.TxID, reported []grant.Member) (members, surplus []grant.Member) {
	a := l.work.Attempts[tx]
	if a == nil || a.Machine.Undecided() || a.Machine.State() == txn.Aborted {
		return reported, nil
	}
	vote, ok := a.Machine.Vote(n.view.ID)
	if !ok {
		return reported, nil
	}
	return hosts.MembersOn(n.view.Host, vote.Members), hosts.DevicesBeside(vote.Members, reported)
}
