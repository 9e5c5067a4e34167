package cluster

import (
	"iter"
	"maps"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// index has the open nodes as peers, and these by their wholly free devices. A
// change of a node only notes it as stale: the next question moves the node, once
// for any number of changes, and not at all where they were undone.
//
// Invariant: stale has the nodes whose stale is set. Each other node of the State
// is in the peers of its traits if it is open, else in none. A bucket has no
// empty peers, and most is at least the Sums of each. slots has exactly these peers.
// kinds are those of the nodes' hosts; labelled has each node under each of its labels, and no empty list.
type index struct {
	stale   []*Node
	soft    int                     // open nodes with a taint of the effect PreferNoSchedule
	buckets [fit.MaxGPUs + 1]bucket // by WholeGPUs
	peers   map[traits]*Peers
	kinds   []*Kind
	slots   slots
	// labelled has all nodes by each of their labels.
	labelled map[constraint.Label]*nodeList
}

// bucket has the peers with one number of wholly free devices.
type bucket struct {
	rows  []row
	most  Sums // of each amount the greatest, or more while loose
	loose bool
}

// row is peers beside a copy of their standing, so that a look at many peers reads
// one list.
type row struct {
	standing Standing
	peers    *Peers
}

// indexed is where the index has a node.
type indexed struct {
	peers *Peers // nil for a closed node
	kind  *Kind  // nil without a host
	stale bool
}

// traits are equal for peers.
type traits struct {
	Standing
	kind   *Kind
	taints *constraint.Taints
}

// Kind is the kind of the hosts of some nodes.
type Kind struct {
	*fit.Kind
	// Product is the model of the first device as a label's value, "" without devices.
	Product string
	// Full are the amounts of an empty host whose devices are healthy.
	Full  Amounts
	nodes int
}

func newKind(host *fit.Host) *Kind {
	k := &Kind{Kind: fit.NewKind(host)}
	all := host.Allocatable()
	k.Full = Amounts{CPU: resource.Millicores(all[resource.CPU]), Memory: resource.Bytes(all[resource.Memory])}
	for i, d := range host.Inventory().Devices {
		if i == 0 {
			k.Product = devices.ProductLabel(d.Model)
		}
		if !d.MIG.Enabled {
			k.Full.GPU += resource.WholeDevice
		}
	}
	return k
}

// Nodes counts the nodes of the kind.
func (k *Kind) Nodes() int { return k.nodes }

// Kinds are the kinds of the nodes' hosts, in no order. The caller must not change
// the slice.
func (s *State) Kinds() []*Kind { return s.index.kinds }

// Peers are the open nodes of one standing and kind with the same taints. They are valid
// until the State is asked for peers again.
type Peers struct {
	traits
	nodes nodeList
	at    int   // in the bucket
	slot  int32 // in the index's slots
}

// Runs returns the peers, ascending by ID, cut into runs. The caller must not
// change them.
func (p *Peers) Runs() [][]*Node { return p.nodes.runs }

// Taints are those that keep units away from the peers.
func (p *Peers) Taints() *constraint.Taints { return p.taints }

// HasSoftTaints reports whether an open node has a taint of the effect PreferNoSchedule.
func (s *State) HasSoftTaints() bool {
	s.index.settle()
	return s.index.soft > 0
}

// Kind returns the kind of the peers' hosts.
func (p *Peers) Kind() *Kind { return p.kind }

// Kind returns the kind of the node's host.
func (n *Node) Kind() *Kind { return n.kind }

// Peers returns the peers whose sums may have room for a member, and their
// standing. Their order means nothing.
func (s *State) Peers(r *resource.Request) iter.Seq2[*Standing, *Peers] {
	s.index.settle()
	return func(yield func(*Standing, *Peers) bool) {
		for w := max(0, r.GPUs); w < len(s.index.buckets); w++ {
			b := &s.index.buckets[w]
			if len(b.rows) == 0 || !b.mayFit(r) {
				continue
			}
			for i := range b.rows {
				if at := &b.rows[i]; at.standing.MayFit(r) && !yield(&at.standing, at.peers) {
					return
				}
			}
		}
	}
}

// mayFit is false where none of the peers has room.
func (b *bucket) mayFit(r *resource.Request) bool {
	if b.loose && b.most.MayFit(r) {
		b.most, b.loose = Sums{}, false
		for i := range b.rows {
			b.most.raise(&b.rows[i].standing.Sums)
		}
	}
	return b.most.MayFit(r)
}

// raise makes each amount at least that of another node.
func (f *Sums) raise(o *Sums) {
	f.FreeCPU = max(f.FreeCPU, o.FreeCPU)
	f.FreeCores = max(f.FreeCores, o.FreeCores)
	f.FreeMemory = max(f.FreeMemory, o.FreeMemory)
	f.WholeGPUs = max(f.WholeGPUs, o.WholeGPUs)
	f.FreeGPU = max(f.FreeGPU, o.FreeGPU)
	f.LargestGPU = max(f.LargestGPU, o.LargestGPU)
	f.FreeMIG = max(f.FreeMIG, o.FreeMIG)
}

// markStale notes that a node may be among the wrong peers.
func (s *State) markStale(n *Node) {
	if !n.stale && n.owner == s {
		n.stale = true
		s.index.stale = append(s.index.stale, n)
	}
}

// settle moves the stale nodes to their peers.
func (x *index) settle() {
	for i, n := range x.stale {
		x.stale[i] = nil
		if !n.stale {
			continue // removed
		}
		n.stale = false
		is, open := traits{n.Standing, n.kind, n.Labels.Taints()}, n.Open()
		if n.peers != nil {
			if open && n.peers.traits == is {
				continue
			}
			x.leave(n)
		}
		if open {
			x.join(n, is)
		}
	}
	x.stale = x.stale[:0]
}

// remove forgets a node.
func (x *index) remove(n *Node) {
	if n.peers != nil {
		x.leave(n)
	}
	n.stale = false
	x.leaveLabels(n)
	x.leaveKind(n)
}

// rehost changes the host of a node.
func (s *State) rehost(n *Node, host *fit.Host) {
	if n.kind == nil || !n.kind.Has(host) || n.Host == nil || !maps.Equal(n.Host.Counts(), host.Counts()) {
		s.offered++
	}
	s.index.leaveKind(n)
	if n.Host, n.Free = host, host.NewFree(); n.owner == s {
		s.index.joinKind(n)
	}
}

// joinKind finds the kind of the node's host, or makes one.
func (x *index) joinKind(n *Node) {
	if n.Host == nil {
		return
	}
	i := slices.IndexFunc(x.kinds, func(k *Kind) bool { return k.Has(n.Host) })
	if i < 0 {
		i = len(x.kinds)
		x.kinds = append(x.kinds, newKind(n.Host))
	}
	n.kind = x.kinds[i]
	n.kind.nodes++
}

// leaveKind undoes joinKind.
func (x *index) leaveKind(n *Node) {
	k := n.kind
	if k == nil {
		return
	}
	n.kind = nil
	if k.nodes--; k.nodes == 0 {
		x.kinds = slices.DeleteFunc(x.kinds, func(o *Kind) bool { return o == k })
	}
}

// join adds a node to the peers of its traits.
func (x *index) join(n *Node, is traits) {
	p := x.peers[is]
	if p == nil {
		if x.peers == nil {
			x.peers = map[traits]*Peers{}
		}
		b := &x.buckets[is.WholeGPUs]
		p = &Peers{traits: is, at: len(b.rows)}
		x.peers[is] = p
		b.rows = append(b.rows, row{is.Standing, p})
		b.most.raise(&is.Sums)
		x.slots.add(p)
	}
	p.nodes.insert(n)
	n.peers = p
	if is.taints.HasSoft() {
		x.soft++
	}
}

// leave takes a node out of its peers.
func (x *index) leave(n *Node) {
	p := n.peers
	n.peers = nil
	if p.taints.HasSoft() {
		x.soft--
	}
	p.nodes.remove(n)
	if len(p.nodes.runs) > 0 {
		return
	}
	delete(x.peers, p.traits)
	x.slots.remove(p)
	b := &x.buckets[p.WholeGPUs]
	last := len(b.rows) - 1
	b.rows[p.at] = b.rows[last]
	b.rows[p.at].peers.at = p.at
	b.rows[last] = row{}
	b.rows, b.loose = b.rows[:last], true
}

// Labelled returns the nodes with a label, ascending by ID and cut into runs, and
// counts them. The caller must not change them.
func (s *State) Labelled(l constraint.Label) (runs [][]*Node, count int) {
	list := s.index.labelled[l]
	if list == nil {
		return nil, 0
	}
	return list.runs, list.len
}

// relabel changes the labels of a node, which is listed under them unless it was
// removed.
func (s *State) relabel(n *Node, labels *constraint.Labels) {
	if n.owner == s {
		s.index.leaveLabels(n)
		defer s.index.enterLabels(n)
	}
	n.Labels = labels
}

// enterLabels lists a node under its labels.
func (x *index) enterLabels(n *Node) {
	for l := range n.Labels.All() {
		list := x.labelled[l]
		if list == nil {
			if x.labelled == nil {
				x.labelled = map[constraint.Label]*nodeList{}
			}
			list = &nodeList{}
			x.labelled[l] = list
		}
		list.insert(n)
	}
}

// leaveLabels undoes enterLabels.
func (x *index) leaveLabels(n *Node) {
	for l := range n.Labels.All() {
		list := x.labelled[l]
		if list.remove(n); list.len == 0 {
			delete(x.labelled, l)
		}
	}
}
