package agent

import (
	"github.com/musterd/muster/agent/follow"
)

// This file publishes the changes of a group to the followers.

// notice adds a change that the journal does not keep.
func (o *owner) notice(n follow.Notice) {
	o.changes = append(o.changes, follow.Change{Notice: n})
}

// publish hands the changes of the group to every follower. The group is in the
// journal, and none of its answers has left the host.
func (o *owner) publish() {
	if len(o.changes) == 0 {
		return
	}
	g := o.group(o.changes)
	for _, f := range o.followers {
		f.After(g)
	}
	clear(o.changes) // events keep grants alive
}

func (o *owner) group(changes []follow.Change) follow.Group {
	return follow.Group{Changes: changes, Ledger: o.ledger, Now: o.agent.deps.Now()}
}
