package lead

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// taintFor keeps new work off a node whose prolog or epilog has failed around a member:
// the taint resource.ScriptFailedTaint of effect NoSchedule, with the name of the script as its
// value. An operator takes the taint off. A taint that the node has stays as it is.
func (l *Leader) taintFor(id resource.NodeID, s grant.WorkState) {
	n, fault := l.nodes[id], s.HostFault()
	if n == nil || fault == "" {
		return
	}
	script := "epilog"
	if s.Reason == grant.PrologFailed {
		script = "prolog"
	}
	taint := record.Taint{Key: resource.ScriptFailedTaint, Value: script, Effect: string(constraint.NoSchedule), AddedMillis: l.post.Millis()}
	l.post.Warn("node_tainted", "node", string(id), "taint", taint.Key, "member", s.Member, "message", fault)
	c := change{of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		if !slices.ContainsFunc(spec.Taints, func(t record.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
			spec.Taints = append(slices.Clone(spec.Taints), taint)
		}
		return spec, nil
	}}
	l.change(n, c, changeAttempts, func(status *api.Status) {
		if status != nil {
			l.post.Warn("node_not_tainted", "node", string(id), "error", status.Message)
		}
	})
}
