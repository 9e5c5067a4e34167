package lead

import (
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// lossOf is a node's key of lost devices.
func (l *Leader) lossOf(id resource.NodeID) shown.Loss {
	if n := l.nodes[id]; n != nil {
		return shown.Loss{NodeLost: n.lost.NodeLost, Revision: n.lost.Revision}
	}
	return shown.Loss{}
}
