package coordinator

import (
	"context"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is a node whose agent has seen that the store went back (ADR 10):
// it promises nothing and obeys nothing until an operator reconciles it. What it
// holds is shown, nothing is concluded from it, and what the records demand of
// it waits.

// isolate takes an agent's word on its quarantine; "" is none. The registration
// of one in quarantine is of revisions that are gone: it counts for nothing, and
// the agent registers anew when the quarantine ends.
func (n *node) isolate(why string) {
	if n.setQuarantine(why); why != "" {
		n.clearRegistration()
	}
}

// learnGrants keeps everything that an agent says it holds for leaders, and wakes who
// waits for it. Of grants with another origin there is nothing to reconcile.
func (l *leader) learnGrants(n *node, o grant.Occupancy) {
	n.setGrants(o)
	l.newsOf(n)
}

// newsOf tells whoever watches a node that something of it was heard.
func (l *leader) newsOf(n *node) { l.out.changed(n.key()) }

// key names the node among what has changed.
func (n *node) key() string { return "node/" + string(n.view.ID) }

// awaitNode waits until a node is as wished; cond runs in the loop.
func (l *term) awaitNode(ctx context.Context, n *node, cond func() bool) error {
	for {
		var news <-chan struct{}
		if err := l.do(ctx, func() {
			if news = nil; !cond() {
				news = l.changes(n.key())
			}
		}); err != nil {
			return err
		}
		if news == nil {
			return nil
		}
		select {
		case <-news:
		case <-l.ended:
			return errDeposed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send gives an agent a command that follows from a record. One in quarantine
// would refuse it: it is repeated when the agent has registered.
func (l *leader) send(id resource.NodeID, c grant.Command) {
	if n := l.nodes[id]; n != nil && n.quarantine != "" {
		return
	}
	l.out.command(id, c)
}

// registration is who may promise on a node, as the store has it.
type registration struct {
	identity    resource.Revision
	spec        resource.Revision // written by every registration
	incarnation resource.Incarnation
}

// readRegistration reads a node's; the zero value where there is none.
func (l *term) readRegistration(ctx context.Context, id resource.NodeID) (registration, error) {
	var r registration
	spec, _, _, err := l.store.Get(ctx, record.NodeSpecKey(id))
	if err != nil {
		return r, err
	}
	key := record.NodeIdentityKey(id)
	kv, found, _, err := l.store.Get(ctx, key)
	if err != nil || !found {
		return r, err
	}
	identity, err := record.Decode[record.NodeIdentity](key, kv.Value)
	if err != nil {
		return r, err
	}
	return registration{identity: kv.ModRev, spec: spec.ModRev, incarnation: identity.Incarnation}, nil
}

// compares make a Txn fail once the agent has registered again: it may have
// stopped what it held.
func (r registration) compares(id resource.NodeID) []record.Compare {
	// model: mutants NO_INCARNATION_COMPARE, ADOPT_WITHOUT_REGISTRATION
	return []record.Compare{record.ModRevIs(record.NodeIdentityKey(id), r.identity), record.ModRevIs(record.NodeSpecKey(id), r.spec)}
}
