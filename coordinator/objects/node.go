package objects

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// cachedNode is a node as its keys have it, and the shares that transactions
// hold there.
type cachedNode struct {
	node *shown.Node // never changed; nil: no key is left of it
	held map[resource.TxID]*share
	lost shown.Loss
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
		c.nodes[id] = n
	}
	return n
}

// shares are the shares of a node, in any order; none of a node that is not
// there.
func (n *cachedNode) shares() []*share {
	if n == nil || len(n.held) == 0 {
		return nil
	}
	return slices.Collect(maps.Values(n.held))
}

// remakeNode makes a node from its keys. Its shares stay: they belong to units.
// The fields of the node that the shares show are out of date.
func (c *Cache) remakeNode(id resource.NodeID, kvs map[string]record.KV) error {
	c.stale[Name{Nodes, "", string(id)}] = true
	for _, s := range c.nodes[id].shares() {
		c.outdateMembers(s)
	}
	var declared resource.Vector
	defer func() { c.declareCounts(id) }()
	if n := c.nodes[id]; n != nil && n.node != nil {
		c.leaveAddress(id, n.node.Spec.AgentAddr)
		declared = registry.WithModels(n.node.Spec.Capacity, n.node.Spec.Topology.GPUModels)
	}
	identityKV, registered := kvs[record.NodeIdentityKey(id)]
	specKV, specified := kvs[record.NodeSpecKey(id)]
	if !registered && !specified { // it was deleted
		if n := c.nodes[id]; n != nil {
			n.node, n.lost = nil, shown.Loss{}
			c.forgetNode(id)
			c.declare(declared, nil)
		}
		return nil
	}
	node := &shown.Node{ID: id, Spec: &record.NodeSpec{}, Ban: record.BanOf(kvs[record.BanKey(id)])}
	for _, key := range []string{record.NodeIdentityKey(id), record.NodeSpecKey(id), record.NodeStatusKey(id), record.NodeObservedKey(id), record.BanKey(id)} {
		node.Revision = max(node.Revision, kvs[key].ModRev)
	}
	if specified {
		if err := readSpec(node, specKV); err != nil {
			return err
		}
	}
	specify(node)
	if registered {
		identity, err := record.Decode[record.NodeIdentity](identityKV.Key, identityKV.Value)
		if err != nil {
			return err
		}
		node.Incarnation, node.Registered, node.Fence = identity.Incarnation, true, shownFence(identity)
	}
	if kv, found := kvs[record.NodeStatusKey(id)]; found {
		status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		node.Told = status
	}
	if kv, found := kvs[record.NodeObservedKey(id)]; found {
		readObserved(node, kv)
	}
	c.node(id).node, c.node(id).lost = node, readLost(kvs[record.NodeLostKey(id)])
	c.joinAddress(id, node.Spec.AgentAddr)
	c.declare(declared, registry.WithModels(node.Spec.Capacity, node.Spec.Topology.GPUModels))
	return nil
}

// joinAddress notes that a node's agent has an address; the other nodes with it
// are shown with this one.
func (c *Cache) joinAddress(id resource.NodeID, address string) {
	if address == "" {
		return
	}
	for other := range c.addresses[address] {
		c.stale[Name{Nodes, "", string(other)}] = true
	}
	if c.addresses[address] == nil {
		c.addresses[address] = map[resource.NodeID]bool{}
	}
	c.addresses[address][id] = true
}

// leaveAddress ends that.
func (c *Cache) leaveAddress(id resource.NodeID, address string) {
	delete(c.addresses[address], id)
	for other := range c.addresses[address] {
		c.stale[Name{Nodes, "", string(other)}] = true
	}
	if len(c.addresses[address]) == 0 {
		delete(c.addresses, address)
	}
}

// nodeEntry makes the entry of a node.
func (c *Cache) nodeEntry(n *cachedNode) entry {
	e := &nodeEntry{n.node, n.shares()}
	if same := c.addresses[n.node.Spec.AgentAddr]; len(same) > 1 {
		beside := *n.node
		beside.Beside = shown.AddressesOf(func(yield func(resource.NodeID, *record.NodeSpec) bool) {
			for id := range same {
				if !yield(id, c.nodes[id].node.Spec) {
					return
				}
			}
		}, "").Beside(n.node.ID, n.node.Spec)
		e.node = &beside
	}
	return e
}

// forgetNode drops a node of which nothing is left.
func (c *Cache) forgetNode(id resource.NodeID) {
	if n := c.nodes[id]; n != nil && n.node == nil && len(n.held) == 0 {
		delete(c.nodes, id)
	}
}

// readSpec takes a specification over, with the host's shape in it.
func readSpec(n *shown.Node, kv record.KV) error {
	spec, err := record.Decode[record.NodeSpec](kv.Key, kv.Value)
	if err != nil {
		return err
	}
	n.Spec = &spec
	n.NUMA, err = shown.NUMACPUs(&spec.Topology)
	if err != nil {
		return fmt.Errorf("%s: %w", kv.Key, err)
	}
	return nil
}

// readObserved takes the leader's observation over. A value that cannot be read counts
// for nothing, and is no fault of the other objects: the leader writes it anew.
func readObserved(n *shown.Node, kv record.KV) {
	o, err := record.Decode[record.NodeObserved](kv.Key, kv.Value)
	if err == nil && o.Host != nil {
		n.Machine, err = shown.MachineOf(o.Host)
	}
	if err != nil {
		n.Machine, n.Unreadable = nil, err.Error()
		return
	}
	n.Observed = &o
}

// readLost reads the key of lost devices. A value that cannot be read names none, and
// the leader writes it anew.
func readLost(kv record.KV) shown.Loss {
	if kv.ModRev == 0 {
		return shown.Loss{}
	}
	r, err := record.Decode[record.NodeLost](kv.Key, kv.Value)
	if err != nil {
		return shown.Loss{}
	}
	return shown.Loss{NodeLost: r, Revision: kv.ModRev}
}

// specify derives the fields that follow from the specification.
func specify(n *shown.Node) {
	n.Labels = admission.Labels(admission.RegisteredAs(n.ID, *n.Spec), n.Spec.Labels, n.Spec.OperatorLabels)
	n.Unapproved, n.Violation = admission.UnapprovedOf(*n.Spec), n.Spec.Violation
	n.Summary = &n.Spec.Topology
}

// shownFence is the fence in a node's identity, nil for none.
func shownFence(i record.NodeIdentity) *shown.Fence {
	if !i.Fenced {
		return nil
	}
	limit := time.Duration(i.AssumeDeadMillis) * time.Millisecond
	return &shown.Fence{Dead: i.ConfirmedDead, At: i.FencedAt, Reason: i.FencedFor, Assume: limit, DeadAfter: shown.AssumedDeadAfter(limit)}
}

// takenBy is the newest commit that has a part of an assignment of a transaction that
// is ending, which the transaction then holds no more; 0 for none.
func (n *cachedNode) takenBy(by *cachedTx, a resource.Assignment) (newest resource.Revision) {
	for _, other := range n.held {
		if other.of.committed > by.committed && slices.ContainsFunc(other.members, func(m record.Placement) bool { return shown.Excludes(a, m.Assignment) }) {
			newest = max(newest, other.of.committed)
		}
	}
	return newest
}
