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

// identityAt is the revision of a node's registration or fence; 0 where none is
// known.
func (f *follower) identityAt(id resource.NodeID) resource.Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kvs[record.NodeIdentityKey(id)].ModRev
}

// leased reports whether a node's lease lives; true where nothing is known.
func (f *follower) leased(id resource.NodeID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found := f.kvs[record.NodeLeaseKey(id)]
	return found || f.revision == 0
}
