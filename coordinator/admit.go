package coordinator

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// This file is what a node's specification lets it take part with: its labels
// and taints, and no more hardware than is registered and approved
// (docs/adr/0015). The agent's stream changes none of that.

// admitted is what follows for a node from its specification.
type admitted struct {
	// unapproved is what it has registered beyond what was approved, unregistered
	// what its stream tells beyond what it has registered.
	unapproved, unregistered admission.Growth
}

// admit takes over what the specification says.
func (n *node) admit() {
	n.view.Labels = admission.Labels(rpc.RegisteredAs(n.view.ID, n.spec), n.spec.Labels, n.spec.OperatorLabels)
	n.view.Taints = nil
	for _, t := range n.spec.Taints {
		n.view.Taints = append(n.view.Taints, api.Taint(t))
	}
	n.unapproved = rpc.Unapproved(n.spec)
	n.compareOffer()
}

// compareOffer compares the host that the stream tells of with the registered
// one. Less is no difference: nothing is placed on it.
func (n *node) compareOffer() {
	n.unregistered = admission.Growth{}
	if n.view.Host == nil || n.specRev == 0 {
		return
	}
	allocatable := n.view.Host.Allocatable()
	offered := admission.Capacity{Amounts: rpc.CapacityOf(n.host, allocatable), Models: rpc.ModelsOf(n.host.Inventory)}
	n.unregistered = admission.Unregistered(offered, rpc.RegisteredCapacity(n.spec))
	if n.unregistered.IsZero() {
		n.unregistered = admission.Unregistered(admission.Capacity{Amounts: allocatable}, admission.Capacity{Amounts: n.spec.Allocatable})
	}
}

// specified reports whether the specification is not older than the agent's
// registration, which wrote it.
func (n *node) specified() bool { return n.specRev != 0 && n.specRev >= n.revision }

// hostDiffers is the reason of a node whose stream tells of more than is
// registered, unread what a leader says that has yet to read a registration.
const (
	hostDiffers = "HostDiffers"
	unread      = "the leader has not read the agent's registration yet"
)

func (n *node) beyond() string {
	return "the agent's stream tells of more than the agent has registered: " + n.unregistered.Message + "; the node takes no new work until the agent registers that"
}

// awaitedApproval says why a node waits for an operator.
func (n *node) awaitedApproval() string {
	return n.unapproved.Message + "; the node takes no new work until an operator approves it: muster node approve " + string(n.view.ID)
}

// closed says in words why the node takes no new work, where the specification
// is the reason.
func (n *node) closed() string {
	switch {
	case n.view.Ready && !n.unapproved.IsZero():
		return n.awaitedApproval()
	case n.connected && n.registered() && !n.unregistered.IsZero():
		return n.beyond()
	}
	return ""
}

// The conditions that follow from a specification.
const (
	awaitingApproval = "AwaitingApproval"
	labelsIgnored    = "LabelsIgnored"
)

// showAdmission adds what a registration did not get. Ready is the first
// condition already.
func (n *node) showAdmission(s *api.NodeStatus) {
	s.OperatorLabels = maps.Clone(n.spec.OperatorLabels)
	if g := n.unapproved; !g.IsZero() {
		if s.Phase == "Ready" {
			ready := &s.Conditions[0]
			s.Phase, ready.Status, ready.Reason, ready.Message = awaitingApproval, "False", awaitingApproval, n.awaitedApproval()
		}
		s.Conditions = append(s.Conditions, api.Condition{Type: awaitingApproval, Status: "True", Reason: g.Reason, Message: g.Message})
	}
	if keys := n.spec.IgnoredLabels; len(keys) > 0 {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: labelsIgnored, Status: "True", Reason: "Reserved",
			Message: "the agent registered labels that are reserved, or are none, and that count for nothing: " + strings.Join(keys, ", "),
		})
	}
}

// takeSpec takes over a specification, unless a newer one is known, and tries
// everything that waits again where it changes who may go to the node.
func (l *leader) takeSpec(n *node, spec store.NodeSpec, rev resource.Revision) {
	before := n.view
	if !n.setSpec(spec, rev) {
		return
	}
	now := &n.view
	if before.Ready != now.Ready || before.Unschedulable != now.Unschedulable ||
		!maps.Equal(before.Labels, now.Labels) || !slices.Equal(before.Taints, now.Taints) {
		l.wake()
	}
}

// readSpec takes over what the store has of a node, then goes on.
func (l *leader) readSpec(n *node, then func()) {
	key := store.NodeSpecKey(n.view.ID)
	l.read(key, func(kv store.KV, found bool, _ resource.Revision) {
		if found {
			spec, err := store.Decode[store.NodeSpec](key, kv.Value)
			if err != nil {
				l.log.Error("node_unreadable", "key", key, "error", err)
			} else {
				l.takeSpec(n, spec, kv.ModRev)
			}
		}
		then()
	})
}
