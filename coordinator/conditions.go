package coordinator

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// said are the conditions that an agent told with its heartbeats, as the store's
// key of a revision has them.
type said struct {
	conditions []record.Condition
	revision   resource.Revision
}

// saidBy is what a node's agent said of itself last. A key that cannot be read
// says nothing: followers refuse to show it.
func (v *view) saidBy(n *node) []record.Condition {
	if n.stored != nil {
		return n.stored.conditions
	}
	if v.status == nil {
		return nil
	}
	kv := v.status(n.view.ID)
	if kv.ModRev != n.said.revision {
		status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			status.Conditions = nil
		}
		n.setSaid(said{status.Conditions, kv.ModRev})
	}
	return n.said.conditions
}

// showSaid adds an agent's own conditions. Ready is the coordinator's to say,
// and so is what it has said already: it may have heard of that since. Of an
// agent that nobody hears nothing is known any more.
func (n *node) showSaid(list []record.Condition, s *api.NodeStatus) {
	for _, c := range list {
		shown := slices.ContainsFunc(s.Conditions, func(o api.Condition) bool { return o.Type == c.Type })
		ended := n.connected && n.quarantine == "" && c.Type == quarantinedCondition && c.Status == "True"
		if shown || ended || c.Type == "Ready" || c.Type == awaitingApproval || c.Type == labelsIgnored {
			continue
		}
		o := api.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransition}
		if n.unheard {
			o.Status, o.Message = "Unknown", lastTold(c)
		}
		s.Conditions = append(s.Conditions, o)
	}
}

func lastTold(c record.Condition) string {
	if c.Message == "" {
		return "it was " + c.Status + " when the agent was last heard"
	}
	return "it was " + c.Status + " when the agent was last heard: " + c.Message
}
