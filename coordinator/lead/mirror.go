package lead

import (
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/grant"
)

// audit asks an agent for all its grants if the ledger's hash differs from the
// mirror.
func (l *Leader) audit() {
	for _, v := range l.state.Nodes() {
		n := l.nodes[v.ID]
		if !n.connected || !n.mirror.LastsAstray() {
			continue
		}
		n.mirror.ClearAstray()
		l.post.Count(post.MetricAstray, "")
		if n.violation() != nil {
			continue // it has counted wrongly before
		}
		l.post.Error("view_astray", "node", n.view.ID, "heard", n.mirror.Sum, "ledger", n.mirror.Told)
		l.post.Command(n.view.ID, grant.Resync{})
	}
}
