package agent

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// checkAfter is the least time between two registrations that the owner wishes
// because something looks as if the store had gone back.
const checkAfter = 10 * time.Second

// auditSpread is the time over which the agents of a coordinator register that
// see its stream break, or another leader, at the same moment: a thousand of
// them are 100 a second. A coordinator and its etcd on two cores take 250
// (BenchmarkRegisteringAgain of coordinator/rpc).
const auditSpread = 10 * time.Second

// awaitAudit waits until the next registration is due, which is at most
// auditEvery away, or wished for. It reports false when ctx ends.
func (a *Agent) awaitAudit(ctx context.Context) bool {
	timer := time.NewTimer(auditEvery - rand.N(auditEvery/4))
	defer timer.Stop()
	wished := a.audit
	for {
		select {
		case <-timer.C:
			return true
		case <-a.register:
			return true
		case <-wished:
			wished = nil // one registration serves all wishes that come before it
			timer.Reset(rand.N(auditSpread))
		case <-ctx.Done():
			return false
		}
	}
}

// registered follows a registration: the followers get the list of the live
// transactions, and the leader's session gets an Enrolled if the registration has
// changed anything. Otherwise the registration costs the leader nothing.
func (o *owner) registered(c ledger.Registered, news bool) {
	o.checked = o.agent.deps.Now()
	if q := o.ledger.Quarantine(); !q.IsZero() {
		o.log.Error("quarantined", "heard_revision", int64(q.Heard), "store_revision", int64(q.Store), "reason", q.String())
		o.tell(o.health())
		o.tell(o.occupancy())
		return
	}
	live := map[resource.TxID]bool{}
	for _, r := range c.Records {
		live[r.Tx] = r.State == grant.RecordCommitted || r.State == grant.RecordEvicting
	}
	o.notice(follow.Registered{Live: live})
	o.retainWork(live)
	o.log.Info("registered", "revision", int64(c.Revision), "store_revision", int64(c.Store), "records", len(c.Records))
	if !news {
		return
	}
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
	o.log.Warn("store_looks_older", "reason", why, "do", "registering again")
	wake(o.agent.register)
}
