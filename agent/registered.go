package agent

import (
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
)

// checkAfter is the least time between two registrations that the owner wishes
// because something looks as if the store had gone back.
const checkAfter = 10 * time.Second

// registered follows a registration: who listens is told, and the assignment
// files are those of what is held now, no others.
func (o *owner) registered(c ledger.Registered) {
	o.checked = o.agent.deps.Now()
	if q := o.ledger.Quarantine(); !q.IsZero() {
		o.log.Error("agent is in quarantine", "heard_revision", int64(q.Heard), "store_revision", int64(q.Store), "reason", q.String())
		o.tell(o.health())
		o.tell(o.occupancy())
		return
	}
	for _, g := range o.runnable() {
		o.scribe.put(g)
	}
	o.scribe.prune()
	o.log.Info("agent registered", "revision", int64(c.Revision), "store_revision", int64(c.Store), "records", len(c.Records))
	o.tell(rpc.Enrolled{Incarnation: o.incarnation, Revision: c.Revision})
	o.tell(o.occupancy())
}

// doubt wishes for a registration, which sees whether the store has gone back,
// if there was none just now.
func (o *owner) doubt(why string) {
	now := o.agent.deps.Now()
	if !o.checked.IsZero() && now.Sub(o.checked) < checkAfter {
		return
	}
	o.checked = now
	o.log.Warn("the store looks older than this agent: registering again", "why", why)
	wake(o.agent.register)
}
