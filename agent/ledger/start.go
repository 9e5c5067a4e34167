package ledger

import (
	"fmt"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// MayStart says whether processes of a transaction may be started now: the grant is
// HELD here under a leader that is not older than another one, so its record is
// COMMITTED and durable. It returns the grant, or why nothing may be started.
func (l *Ledger) MayStart(c grant.Start) (Grant, []resource.Reason) {
	refuse := func(code string, format string, args ...any) (Grant, []resource.Reason) {
		return Grant{}, []resource.Reason{{Code: code, Detail: fmt.Sprintf(format, args...)}}
	}
	g := l.grants[c.Tx]
	switch {
	case l.registered == 0 || !l.quarantine.IsZero():
		return refuse(resource.ReasonUnregistered, "the agent has not registered this incarnation yet, or is in quarantine")
	case c.Epoch < l.epoch:
		return refuse(resource.ReasonStaleEpoch, "the request is of epoch %d, epoch %d was seen here", c.Epoch, l.epoch)
	case g == nil || g.State != grant.Held || g.Origin != OriginTxn:
		return refuse(resource.ReasonInvalidRequest, "transaction %s is not HELD here", c.Tx)
	}
	for _, m := range c.Members {
		if _, held := g.Member(m.Index); !held {
			return refuse(resource.ReasonInvalidRequest, "member %d of transaction %s is not here", m.Index, c.Tx)
		}
	}
	return g.Grant, nil
}

// Member returns a member of the grant on this host.
func (g *Grant) Member(index int) (Holding, bool) {
	for _, m := range g.Members {
		if m.Index == index {
			return m, true
		}
	}
	return Holding{}, false
}
