package lead

import (
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file derives a node's labels, taints and readiness from its
// specification: no more hardware takes part than is registered and approved
// (docs/adr/0015). The agent's stream changes none of these.

// admitted is the part of a node that new work may get.
type admitted struct {
	// unapproved is the registered capacity beyond the approved one, unregistered
	// the capacity of the stream's host beyond the registered one.
	unapproved, unregistered admission.Growth
	bounds                   admission.Bounds
	foreign                  bool // see admission.IsForeign
}

// takeSpec takes over a specification, unless a newer one is known, and tries
// everything that waits again where it changes who may go to the node.
func (l *Leader) takeSpec(n *node, spec record.NodeSpec, rev resource.Revision) {
	before, withheld, amounts := n.view, n.withheld, n.withheldAmounts()
	if !n.setSpec(spec, rev) {
		return
	}
	l.declare(n.view.ID)
	l.setReady(n)
	l.sendKubeletPool(n)
	now := &n.view
	if before.Ready != now.Ready || before.Unschedulable != now.Unschedulable || before.Labels != now.Labels || withheld&^n.withheld != 0 || n.withheldAmounts() != amounts {
		l.wakeFor(n) // a registration may be the reason, and the agent decides how often
	}
}

// readSpec reads a node's specification from the store and takes it over; then
// runs in the loop.
func (l *Leader) readSpec(n *node, then func()) {
	key := record.NodeSpecKey(n.view.ID)
	l.post.Read(key, func(kv record.KV, found bool, _ resource.Revision) {
		if found {
			spec, err := record.Decode[record.NodeSpec](key, kv.Value)
			if err != nil {
				l.post.Error("node_unreadable", "key", key, "error", err)
			} else {
				l.takeSpec(n, spec, kv.ModRev)
			}
		}
		then()
	})
}
