package lead

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// show makes the shown value of a fence.
func (f *fence) show() *shown.Fence {
	return &shown.Fence{Dead: f.dead, At: f.at, Reason: f.reason, Assume: f.assume, DeadAfter: shown.AssumedDeadAfter(f.assume)}
}

// String says it in plain words.
func (f *fence) String(id resource.NodeID) string { return f.show().Sentence(id) }

// said is an agent's last report, as the store's key of a revision has it.
type said struct {
	record.NodeStatus
	revision resource.Revision
}

// takeStatus takes over the last report of a node's agent. A key that cannot be read
// reports nothing: coordinators refuse to show it.
func (n *node) takeStatus(kv record.KV) {
	if kv.ModRev == n.said.revision {
		return
	}
	status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
	if err != nil {
		status = record.NodeStatus{}
	}
	n.setSaid(said{status, kv.ModRev})
}
