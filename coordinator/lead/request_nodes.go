package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// This file serves requests about nodes. The result of each is a NodeChanged.

// NodeChanged says that what was asked is durable. The coordinator shows the node as
// the store has it then.
type NodeChanged struct{ Node resource.NodeID }

// PatchNode changes what operators set.
type PatchNode struct {
	Node  resource.NodeID
	Patch api.NodePatch
}

// ApproveNode approves the capacity that is registered.
type ApproveNode struct {
	Node    resource.NodeID
	Options api.ApproveOptions
}

// FenceNode makes that nothing counts on a node's incarnation any more. Its
// result comes once that is durable.
type FenceNode struct {
	Node    resource.NodeID
	Options api.FenceOptions
}

// DeleteNode forgets a node that has left for good.
// A node without the required values is left as it is, with 409; of its versions each
// counts that is not older than the node's specification.
type DeleteNode struct {
	Node    resource.NodeID
	Require api.Preconditions
}

func (r PatchNode) serve(l *Leader, c *desk.Call) {
	if status := (api.Preconditions{UID: r.Patch.UID}).Check("node "+string(r.Node), api.ObjectMeta{UID: shown.NodeUID(r.Node)}); status != nil && l.nodes[r.Node] != nil {
		c.Answer(nil, status)
		return
	}
	l.changeNode(c, r.Node, change{version: r.Patch.ResourceVersion, cordons: r.Patch.Unschedulable != nil, of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		if status := l.knowsDevices(r.Node, spec, r.Patch.Kubelet); status != nil {
			return spec, status
		}
		return patched(spec, r.Patch, l.post.Millis())
	}})
}

func (r ApproveNode) serve(l *Leader, c *desk.Call) {
	l.changeNode(c, r.Node, change{version: r.Options.ResourceVersion, of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		if !admission.UnapprovedOf(spec).IsZero() {
			approved := record.Capacity(admission.RegisteredCapacity(spec))
			spec.Approved = &approved
		}
		return spec, nil
	}})
}

// retainted are the taints of a node from an instant on. A taint that stays keeps the
// instant at which it was set.
func retainted(before []record.Taint, taints []api.Taint, now int64) []record.Taint {
	var list []record.Taint
	for _, t := range taints {
		made := record.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect, AddedMillis: now}
		for _, o := range before {
			if o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect {
				made.AddedMillis = o.AddedMillis
			}
		}
		list = append(list, made)
	}
	return list
}

// patched is a specification with a change that is made at an instant.
func patched(spec record.NodeSpec, p api.NodePatch, now int64) (record.NodeSpec, *api.Status) {
	if p.Unschedulable != nil {
		if spec.Unschedulable = *p.Unschedulable; !spec.Unschedulable {
			spec.Violation, spec.Drain = nil, nil
		}
	}
	if !p.Labels.IsZero() {
		spec.OperatorLabels = p.Labels.Apply(spec.OperatorLabels)
	}
	if !p.Annotations.IsZero() {
		spec.Annotations = p.Annotations.Apply(spec.Annotations)
	}
	if p.Taints != nil {
		spec.Taints = retainted(spec.Taints, *p.Taints, now)
	}
	if len(p.MergeTaints) > 0 {
		var has []api.Taint
		for _, t := range spec.Taints {
			has = append(has, api.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
		merged, status := api.MergeTaints(has, p.MergeTaints)
		if status != nil {
			return spec, status
		}
		spec.Taints = retainted(spec.Taints, merged, now)
	}
	if !p.Kubelet.IsZero() {
		if status := setKubeletPool(&spec, p.Kubelet); status != nil {
			return spec, status
		}
	}
	if status := api.CheckNodeLabels("metadata.labels", spec.OperatorLabels); status != nil {
		return spec, status
	}
	return spec, api.CheckAnnotations("metadata.annotations", spec.Annotations)
}

// changeNode makes a change, and answers with the node.
func (l *Leader) changeNode(c *desk.Call, id resource.NodeID, of change) {
	l.changeNodeThen(c, id, of, func(*node) { c.Answer(NodeChanged{id}, nil) })
}

// changeNodeThen makes a change and goes on; a refusal is the answer. Changes of
// one node are made one after the other.
func (l *Leader) changeNodeThen(c *desk.Call, id resource.NodeID, of change, then func(*node)) {
	n := l.nodes[id]
	if n == nil || n.specRev == 0 {
		c.Answer(nil, api.Errorf(404, "node %s not found", id))
		return
	}
	n.addChange(func() {
		l.change(n, of, changeAttempts, func(status *api.Status) {
			if status != nil {
				c.Answer(nil, status)
			} else {
				then(n)
			}
			if n.finishChange(); len(n.changes) > 0 {
				n.changes[0]()
			}
		})
	})
	if len(n.changes) == 1 {
		n.changes[0]()
	}
}

func (r FenceNode) serve(l *Leader, c *desk.Call) {
	n := l.nodes[r.Node]
	if n == nil || n.specRev == 0 {
		c.Answer(nil, api.Errorf(404, "node %s not found", r.Node))
		return
	}
	c.Begin() // the incarnation that is read first is meant, also when it is tried again
	var first resource.Incarnation
	l.fenceNode(n, &first, r.Options, fenceAttempts, func(status *api.Status) { c.Answer(NodeChanged{r.Node}, status) })
}

func (r DeleteNode) serve(l *Leader, c *desk.Call) {
	l.deleteNode(r, deleteAttempts, func(status *api.Status) { c.Answer(NodeChanged{r.Node}, status) })
}
