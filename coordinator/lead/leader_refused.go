package lead

import (
	"fmt"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// refused looks whether this term can still be of use to an agent.
//
// Bound: what an agent says is believed if the store has been at that revision,
// and ends a term of this coordinator at most once per agent until a
// restoration is noticed, or the process starts again. So an agent that lies, or
// has lost its mind, costs each coordinator one election.
func (l *Leader) refused(e grant.Refused) {
	if l.looking {
		return
	}
	l.looking = true
	held := l.held
	l.post.Read(held.Key, func(kv record.KV, found bool, revision resource.Revision) {
		l.looking = false
		switch {
		case !found || kv.CreateRev != held.Rev:
			l.post.End(post.ErrDeposed)
		case revision <= resource.Revision(e.Highest):
			// The next epoch would not be higher either. The agent sees it when it
			// registers, which it does because of the hello that it refused.
		default:
			l.post.Add(post.Effect{Kind: post.AskToResign, Node: e.Node, Epoch: e.Highest, Revision: revision})
		}
	})
}

// resign ends the term, because only a leader of a higher epoch can help a node.
func (l *Leader) resign(in ResignAllowed) {
	l.post.Warn("leader_resigns", "node", in.Node, "epoch_seen_there", int64(in.Epoch), "revision", int64(in.Revision))
	detail := fmt.Sprintf("its agent has seen epoch %d, this term is of epoch %d and ends for that", in.Epoch, l.post.Epoch())
	l.noteRestored(decisions.Restored{By: "node " + string(in.Node), After: in.Revision, Detail: detail})
	l.post.End(fmt.Errorf("resigned: the agent of node %s has seen epoch %d, and the store is at revision %d", in.Node, in.Epoch, in.Revision))
}
