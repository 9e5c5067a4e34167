package lead

import (
	"maps"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
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

// changeAttempts bounds how often a change is tried anew because the node's
// agent registered at the same time, perhaps with another coordinator.
const changeAttempts = 8

// change writes a change on top of the stored specification; done runs in the
// loop.
func (l *Leader) change(n *node, c change, attempts int, done func(*api.Status)) {
	id := n.view.ID
	again := func() {
		l.readSpec(n, func() { l.change(n, c, attempts-1, done) })
	}
	switch {
	case l.nodes[id] != n:
		done(api.Errorf(404, "node %s not found", id))
		return
	case !l.isOf(n, c.version) && attempts == changeAttempts: // a registration may have been faster than its news
		again()
		return
	case !l.isOf(n, c.version):
		done(api.Errorf(409, "node %s was changed at resourceVersion %d, the change is for %s: look at the node and ask again", id, n.specRev, c.version))
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
				l.endIsolation(n)
			}
			l.post.Command(id, grant.Cordon{Cordoned: n.cordoned()}) // another may have overtaken this one
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
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(key, n.specRev)},
		Ops:      []record.Op{record.Put(key, value)},
		Done: func(o txn.Outcome, rev resource.Revision, err error) {
			switch {
			case o == txn.Landed:
				l.post.Info("node_changed", "node", id, "revision", int64(rev))
				l.takeSpec(n, spec, rev)
				confirm()
			case attempts > 1 && err == nil:
				again()
			default:
				done(refusal.Overtaken("node "+string(id), "change", changeAttempts, err, "; ask again"))
			}
		},
	}, key, post.Wrote(key, func(written record.NodeSpec) bool { return sameForOperators(written, spec) }))
}

// isOf reports whether a change may be made that is for a resourceVersion of the node,
// "" for any. What operators set is in the specification: a write of the status alone
// makes no conflict. A version that is newer than the store is none of the node's.
func (l *Leader) isOf(n *node, version string) bool {
	if version == "" {
		return true
	}
	from, err := strconv.ParseInt(version, 10, 64)
	return err == nil && resource.Revision(from) >= n.specRev && resource.Revision(from) <= max(l.reached, n.specRev)
}

// sameForOperators reports whether two specifications agree in all that
// operators set.
func sameForOperators(a, b record.NodeSpec) bool {
	approved := func(s record.NodeSpec) record.Capacity {
		if s.Approved == nil {
			return record.Capacity{}
		}
		return *s.Approved
	}
	drain := func(s record.NodeSpec) record.Drain {
		if s.Drain == nil {
			return record.Drain{}
		}
		return *s.Drain
	}
	return a.Unschedulable == b.Unschedulable && (a.Drain == nil) == (b.Drain == nil) && drain(a) == drain(b) && (a.Violation == nil) == (b.Violation == nil) && slices.Equal(a.Taints, b.Taints) &&
		maps.Equal(a.OperatorLabels, b.OperatorLabels) && maps.Equal(a.Annotations, b.Annotations) &&
		(a.Approved == nil) == (b.Approved == nil) &&
		maps.Equal(approved(a).Amounts, approved(b).Amounts) && maps.Equal(approved(a).Models, approved(b).Models) &&
		(a.Expected == nil) == (b.Expected == nil) && maps.Equal(a.Lowered, b.Lowered) && poolOf(a).Equal(poolOf(b))
}
