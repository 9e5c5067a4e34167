package objects

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// cachedNode is a node as its keys have it, and the shares that transactions
// hold there.
type cachedNode struct {
	shown.Node // Spec points into this
	spec       record.NodeSpec
	held       map[resource.TxID]*share
}

// share is the part of one node that a transaction has.
type share struct {
	of      *cachedTx
	members []record.Placement
}

// node returns a node, made on first sight.
func (c *Cache) node(id resource.NodeID) *cachedNode {
	n := c.nodes[id]
	if n == nil {
		n = &cachedNode{held: map[resource.TxID]*share{}}
		n.reset(id)
		c.nodes[id] = n
		at, _ := slices.BinarySearch(c.order, id)
		c.order = slices.Insert(c.order, at, id)
	}
	return n
}

// reset makes a node one without any key. Its shares stay.
func (n *cachedNode) reset(id resource.NodeID) {
	n.spec = record.NodeSpec{}
	n.Node = shown.Node{ID: id, Spec: &n.spec}
	n.specify()
}

// specify derives the fields that follow from the specification.
func (n *cachedNode) specify() {
	n.Labels = admission.Labels(admission.RegisteredAs(n.ID, n.spec), n.spec.Labels, n.spec.OperatorLabels)
	n.Unapproved, n.Violation = admission.UnapprovedOf(n.spec), n.spec.Violation
	n.Summary = &n.spec.Topology
}

// remakeNode makes a node from its keys. Its shares stay: they belong to units.
func (c *Cache) remakeNode(id resource.NodeID, kvs map[string]record.KV) error {
	_, registered := kvs[record.NodeIdentityKey(id)]
	_, specified := kvs[record.NodeSpecKey(id)]
	if !registered && !specified { // it was deleted
		delete(c.nodes, id)
		c.order = slices.DeleteFunc(c.order, func(other resource.NodeID) bool { return other == id })
		return nil
	}
	n := c.node(id)
	n.reset(id)
	_, heard := kvs[record.NodeLeaseKey(id)]
	n.Unheard, n.Ban = !heard, lead.BanOf(kvs[record.BanKey(id)])
	if kv, found := kvs[record.NodeSpecKey(id)]; found {
		if err := n.readSpec(kv); err != nil {
			return err
		}
	}
	if kv, found := kvs[record.NodeIdentityKey(id)]; found {
		identity, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		n.Incarnation, n.Registered, n.Fence = identity.Incarnation, true, shownFence(identity)
	}
	if kv, found := kvs[record.NodeStatusKey(id)]; found {
		status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		n.Told = status.Conditions
	}
	return nil
}

// readSpec takes a specification over, with the host's shape in it.
func (n *cachedNode) readSpec(kv record.KV) error {
	spec, err := record.Decode[record.NodeSpec](kv.Key, kv.Value)
	if err != nil {
		return err
	}
	n.spec, n.Revision = spec, kv.ModRev
	n.specify()
	n.NUMA, err = shown.NUMACPUs(&n.spec.Topology)
	if err != nil {
		return fmt.Errorf("%s: %w", kv.Key, err)
	}
	return nil
}

// shownFence is the fence in a node's identity, nil for none.
func shownFence(i record.NodeIdentity) *shown.Fence {
	if !i.Fenced {
		return nil
	}
	limit := time.Duration(i.AssumeDeadMillis) * time.Millisecond
	return &shown.Fence{Dead: i.ConfirmedDead, At: i.FencedAt, Reason: i.FencedFor, Assume: limit, DeadAfter: lead.AssumedDeadAfter(limit)}
}

// freed reports whether an assignment of a transaction that is ending is held
// no more: a later commit has a part of it.
func (n *cachedNode) freed(by *cachedTx, a resource.Assignment) bool {
	for _, other := range n.held {
		if other.of.committed > by.committed && slices.ContainsFunc(other.members, func(m record.Placement) bool { return shown.Excludes(a, m.Assignment) }) {
			return true
		}
	}
	return false
}

// show makes the shown value of a node, with the transactions that hold a share
// there and the capacity that is not granted.
func (n *cachedNode) show(book shown.AddressBook, now time.Time) shown.Node {
	s := n.Node
	s.Now, s.Beside = now, book.Beside(n.ID, &n.spec)
	s.Available = maps.Clone(n.spec.Allocatable)
	for _, h := range n.held {
		for _, m := range h.members {
			s.Allocations = append(s.Allocations, h.of.unit.record.Namespace+"/"+h.of.unit.MemberName(m.Member))
			for name, amount := range m.Assignment.Vector() {
				if left, known := s.Available[name]; known {
					s.Available[name] = max(0, left-amount)
				}
			}
		}
	}
	return s
}

// addresses makes the book of all nodes' addresses, of one alone where only is
// not "".
func (c *Cache) addresses(only string) shown.AddressBook {
	return shown.AddressesOf(func(yield func(resource.NodeID, *record.NodeSpec) bool) {
		for id, n := range c.nodes {
			if !yield(id, &n.spec) {
				return
			}
		}
	}, only)
}
