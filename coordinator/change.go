package coordinator

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// change is an operator's change of a node.
type change struct {
	// of returns the specification with the change, which shares nothing that it
	// has changed with the one before, or why it is refused.
	of func(record.NodeSpec) (record.NodeSpec, *api.Status)
	// version, where not empty, is the resourceVersion that the change is for.
	version string
	// cordons: the change sets or ends a cordon, which the agent confirms.
	cordons bool
}

// PatchNode implements rest.Nodes.
func (c *Coordinator) PatchNode(ctx context.Context, name string, p api.NodePatch) (*api.Node, error) {
	return c.changeNode(ctx, name, change{version: p.ResourceVersion, cordons: p.Unschedulable != nil, of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		if p.Unschedulable != nil {
			if spec.Unschedulable = *p.Unschedulable; !spec.Unschedulable {
				spec.Violation = nil
			}
		}
		if !p.Labels.IsZero() {
			spec.OperatorLabels = p.Labels.Apply(spec.OperatorLabels)
		}
		if !p.Annotations.IsZero() {
			spec.Annotations = p.Annotations.Apply(spec.Annotations)
		}
		if p.Taints != nil {
			spec.Taints = nil
			for _, t := range *p.Taints {
				spec.Taints = append(spec.Taints, record.Taint(t))
			}
		}
		if status := api.CheckNodeLabels("metadata.labels", spec.OperatorLabels); status != nil {
			return spec, status
		}
		return spec, api.CheckAnnotations("metadata.annotations", spec.Annotations)
	}})
}

// SetUnschedulable cordons a node, or ends that.
func (c *Coordinator) SetUnschedulable(ctx context.Context, name string, unschedulable bool) (*api.Node, error) {
	return c.PatchNode(ctx, name, api.NodePatch{Unschedulable: &unschedulable})
}

// ApproveNode implements rest.Nodes: the registered capacity is approved.
func (c *Coordinator) ApproveNode(ctx context.Context, name string, o api.ApproveOptions) (*api.Node, error) {
	return c.changeNode(ctx, name, change{version: o.ResourceVersion, of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		if !rpc.Unapproved(spec).IsZero() {
			approved := record.Capacity(rpc.RegisteredCapacity(spec))
			spec.Approved = &approved
		}
		return spec, nil
	}})
}

// changeAttempts bounds how often a change is tried anew because the node's
// agent registered at the same time, perhaps with another coordinator.
const changeAttempts = 8

// changeNode makes a change and returns the node with it. Changes of one node
// are made one after the other.
func (c *Coordinator) changeNode(ctx context.Context, name string, of change) (*api.Node, error) {
	return ask(ctx, c, func(l *leader, answer func(*api.Node, *api.Status)) {
		n := l.nodes[resource.NodeID(name)]
		if n == nil || n.specRev == 0 {
			answer(nil, api.Errorf(404, "node %s not found", name))
			return
		}
		n.addChange(func() {
			l.change(n, of, changeAttempts, func(status *api.Status) {
				if status != nil {
					answer(nil, status)
				} else {
					answer(l.nodeObject(n), nil)
				}
				if n.finishChange(); len(n.changes) > 0 {
					n.changes[0]()
				}
			})
		})
		if len(n.changes) == 1 {
			n.changes[0]()
		}
	})
}

// change writes a change on top of the stored specification; done runs in the
// loop.
func (l *leader) change(n *node, c change, attempts int, done func(*api.Status)) {
	id := n.view.ID
	again := func() {
		l.readSpec(n, func() { l.change(n, c, attempts-1, done) })
	}
	switch {
	case l.nodes[id] != n:
		done(api.Errorf(404, "node %s not found", id))
		return
	case c.version != "" && c.version != versionOf(n) && attempts == changeAttempts: // a registration may have been faster than its news
		again()
		return
	case c.version != "" && c.version != versionOf(n):
		done(api.Errorf(409, "node %s is at resourceVersion %s, the change is for %s: look at the node and ask again", id, versionOf(n), c.version))
		return
	}
	spec, status := c.of(n.spec)
	if status != nil {
		done(status)
		return
	}
	confirm := func() {
		if c.cordons {
			if !n.spec.Unschedulable {
				l.pardon(n)
			}
			l.out.command(id, agents.Cordon(n.cordoned())) // another may have overtaken this one
		}
		done(nil)
	}
	if sameForOperators(spec, n.spec) {
		confirm()
		return
	}
	key := record.NodeSpecKey(id)
	value, err := record.Encode(spec)
	if err != nil {
		done(api.Errorf(422, "node %s: %v", id, err))
		return
	}
	l.settle(decision{
		compares: []record.Compare{record.ModRevIs(key, n.specRev)},
		ops:      []record.Op{record.Put(key, value)},
		done: func(o txn.Outcome, rev resource.Revision, err error) {
			switch {
			case o == txn.Landed:
				l.out.info("node_changed", "node", id, "revision", int64(rev))
				l.takeSpec(n, spec, rev)
				confirm()
			case attempts > 1:
				again()
			default:
				done(api.Errorf(409, "node %s changed %d times while it was to be changed (%v); ask again", id, changeAttempts, err))
			}
		},
	}, key, func(value []byte, found bool) bool {
		written, err := record.Decode[record.NodeSpec](key, value)
		return found && err == nil && sameForOperators(written, spec)
	})
}

// versionOf is a node's resourceVersion.
func versionOf(n *node) string { return strconv.FormatInt(int64(n.specRev), 10) }

// sameForOperators reports whether two specifications agree in all that
// operators set.
func sameForOperators(a, b record.NodeSpec) bool {
	approved := func(s record.NodeSpec) record.Capacity {
		if s.Approved == nil {
			return record.Capacity{}
		}
		return *s.Approved
	}
	return a.Unschedulable == b.Unschedulable && (a.Violation == nil) == (b.Violation == nil) && slices.Equal(a.Taints, b.Taints) &&
		maps.Equal(a.OperatorLabels, b.OperatorLabels) && maps.Equal(a.Annotations, b.Annotations) &&
		(a.Approved == nil) == (b.Approved == nil) &&
		maps.Equal(approved(a).Amounts, approved(b).Amounts) && maps.Equal(approved(a).Models, approved(b).Models)
}
