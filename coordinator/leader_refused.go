package coordinator

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is a leader that an agent does not let in, for it has seen a higher
// epoch. An epoch is a revision of the store, so either another leader has been
// elected since, or the store was restored from a backup and this epoch is of a
// revision that comes for the second time. An agent that finds the store behind
// what it has heard of goes into quarantine and lets any leader in (ADR 10);
// where the store has outgrown that, only a leader of a higher epoch can help.

// resignEvery is the least time between two terms that a coordinator ends
// because of what agents say.
const resignEvery = 10 * time.Second

// refused looks whether this term can still be of use to an agent.
//
// Bound: what an agent says is believed if the store has been at that revision,
// and ends a term of this coordinator at most once per agent until a
// restoration is noticed, or the process starts again. So an agent that lies, or
// has lost its mind, costs each coordinator one election.
func (l *leader) refused(e grant.Refused) {
	if l.looking {
		return
	}
	l.looking = true
	held := l.held
	l.read(held.Key, func(kv record.KV, found bool, revision resource.Revision) {
		l.looking = false
		switch {
		case !found || kv.CreateRev != held.Rev:
			l.out.end(errDeposed)
		case revision <= resource.Revision(e.Highest):
			// The next epoch would not be higher either. The agent sees it when it
			// registers, which it does because of the hello that it refused.
		default:
			l.out.add(effect{kind: askToResign, node: e.Node, epoch: e.Highest, revision: revision})
		}
	})
}

// resign ends the term, because only a leader of a higher epoch can help a node.
func (l *leader) resign(in mayGo) {
	l.out.warn("leader_resigns", "node", in.node, "epoch_seen_there", int64(in.epoch), "revision", int64(in.revision))
	detail := fmt.Sprintf("its agent has seen epoch %d, this term is of epoch %d and ends for that", in.epoch, l.epoch)
	l.noteRestored(decisions.Restored{By: "node " + string(in.node), After: in.revision, Detail: detail})
	l.out.end(fmt.Errorf("resigned: the agent of node %s has seen epoch %d, and the store is at revision %d", in.node, in.epoch, in.revision))
}

// mayResign reports whether a term may end because of what an agent said, and
// takes note that it does.
func (c *Coordinator) mayResign(node resource.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deposers[node] || !c.resignedAt.IsZero() && time.Since(c.resignedAt) < resignEvery {
		return false
	}
	if c.deposers == nil {
		c.deposers = map[resource.NodeID]bool{}
	}
	c.deposers[node], c.resignedAt = true, time.Now()
	return true
}
