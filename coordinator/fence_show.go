package coordinator

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// String says it in plain words.
func (f *fence) String(id resource.NodeID) string {
	text := fmt.Sprintf("node %s is fenced", id)
	if f.dead {
		text = fmt.Sprintf("node %s is confirmed dead", id)
	}
	if f.reason != "" {
		text += " (" + f.reason + ")"
	}
	return text
}

// showFence adds a fence that stands, and reports whether one does.
func (n *node) showFence(s *api.NodeStatus, ready *api.Condition) bool {
	if n.fence == nil {
		return false
	}
	s.Phase, ready.Status, ready.Reason = "Fenced", "False", "Fenced"
	ready.Message = n.fence.String(n.view.ID) + "; it ends when the agent registers again"
	if n.fence.dead {
		ready.Reason = "ConfirmedDead"
	} else {
		ready.Message += n.fence.outlook()
	}
	return true
}

// leaseExpired shows a node that no coordinator hears. Nothing is released.
func (n *node) leaseExpired(s *api.NodeStatus, ready *api.Condition) {
	s.Phase, ready.Status, ready.Reason = "NotReady", "Unknown", "LeaseExpired"
	ready.Message = "no coordinator has heard the agent within its lease; what runs there stays"
	if after := n.view.Labels[api.AssumeDeadLabel]; after != "" {
		ready.Message = "no coordinator has heard the agent within its lease; its assume-dead policy (" + after + ") is on: it is being fenced"
	}
}

// follows is what the cache has of a node: its lease lives where nothing is known.
func (f *follower) follows(id resource.NodeID) followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, leased := f.kvs[record.NodeLeaseKey(id)]
	return followed{
		node: id, leased: leased || f.revision == 0, ban: banOf(f.kvs[record.BanKey(id)]), identity: f.kvs[record.NodeIdentityKey(id)].ModRev,
	}
}
