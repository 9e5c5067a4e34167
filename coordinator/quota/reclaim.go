package quota

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/resource"
)

// Ties are what a choice of whom to end must know of consumers beside their
// seats.
type Ties struct {
	// Together names what a consumer ends with: consumers of one name end
	// together. nil: each ends alone.
	Together func(id string) string
	// Leaving reports whether a consumer's end has been asked for already; it
	// is counted as gone. nil: nobody's has.
	Leaving func(id string) bool
}

// Overdraft is by how much a node is over its quota, in base units, of the
// resources that are.
type Overdraft struct {
	Node string
	Over resource.Vector
}

// Reclaimed is a consumer that has to end, and the node for whose sake.
type Reclaimed struct {
	Consumer, Node string
}

// Reclaim is what has to end so that the nodes of a tree are within their
// quotas again.
type Reclaim struct {
	// Over are the nodes over quota as the tree is, the deepest first.
	Over []Overdraft
	// End are the consumers to end, in the order in which they were chosen.
	End []Reclaimed
	// Remaining are the nodes that would be over quota still, held there by
	// consumers that must not be ended.
	Remaining []Overdraft
}

// Overdrawn chooses the consumers whose end brings every node of a tree within
// its quota; nothing changes by it. Caps and the other limits of nodes are not
// looked at. The choice is made in this order:
//
//  1. Nodes: the deepest first, then in the order of Nodes. What was chosen
//     for one counts for all above it.
//  2. Of an overdrawn node only those counted there or below come into
//     question who hold a resource that is short there at that moment, and
//     never unpreemptable ones, nor whom one of them ends with.
//  3. Of these borrowers go before owners: an owner is counted on its group,
//     and that is a leaf.
//  4. The lower priority goes first.
//  5. The newer goes first: who took its place later.
//  6. The lower ID goes first; with it goes whoever it ends with.
//
// When no node is over that could be helped, those who turn out not to be
// needed are given back, the last chosen first. So nobody is in it who could
// be spared, and what remains over is held by unpreemptable ones alone.
//
// It costs a look at every seat of the tree and a sort of those below each
// overdrawn node. A tree that is unknown is an error.
func (m *Manager) Overdrawn(tree string, ties Ties) (Reclaim, error) {
	t, err := m.treeOf(tree)
	if err != nil {
		return Reclaim{}, err
	}
	c := m.overdraw(t, ties)
	r := Reclaim{Over: c.overdrafts()}
	if len(r.Over) == 0 {
		return r, nil
	}
	for _, p := range c.parties {
		if p.leaving {
			c.end(p, 1)
		}
	}
	for _, n := range c.deepestFirst() {
		c.relieve(n)
	}
	for i, p := range slices.Backward(c.ended) {
		if c.spare(p) {
			c.ended = slices.Delete(c.ended, i, i+1)
		}
	}
	for _, p := range c.ended {
		for _, s := range p.seats {
			r.End = append(r.End, Reclaimed{c.id(s), t.nodes[p.node].name})
		}
	}
	r.Remaining = c.overdrafts()
	return r, nil
}

// party is a set of seats that end together.
type party struct {
	seats           []int32 // in the order of their nodes, then of the lists
	pinned, leaving bool
	chosen          bool
	node            int32 // for whose sake it was chosen
}

// choice is a choice in the making.
//
// Invariant: freed is, per node, the sum of the requests of the seats of the
// chosen and leaving parties listed there and below.
type choice struct {
	m       *Manager
	t       *tree
	parties []*party // in the order of their first seats
	of      map[int32]*party
	freed   []int64  // width per node
	ended   []*party // chosen ones, in order
}

// overdraw groups the seats of a tree. The seats of consumers that are leaving
// are parties of their own: whom they end with is leaving too, or stays.
func (m *Manager) overdraw(t *tree, ties Ties) *choice {
	c := &choice{m: m, t: t, of: make(map[int32]*party, t.allocated), freed: make([]int64, len(t.nodes)*t.width)}
	named := map[string]*party{}
	for n := range t.nodes {
		for s := t.nodes[n].head; s != none; s = t.seats[s].next {
			id, together := c.id(s), ""
			leaving := ties.Leaving != nil && ties.Leaving(id)
			if ties.Together != nil && !leaving {
				together = ties.Together(id)
			}
			p := named[together]
			if p == nil {
				p = &party{leaving: leaving}
				c.parties = append(c.parties, p)
				if together != "" {
					named[together] = p
				}
			}
			p.seats = append(p.seats, s)
			p.pinned = p.pinned || t.seats[s].pinned
			c.of[s] = p
		}
	}
	return c
}

func (c *choice) id(s int32) string { return c.m.consumers[c.t.seats[s].consumer].id }

// end counts a party as gone, or with sign -1 as there again.
func (c *choice) end(p *party, sign int64) {
	for _, s := range p.seats {
		request := c.t.request(s)
		for n := c.t.seats[s].node; n != none; n = c.t.nodes[n].parent {
			for i, a := range request {
				c.freed[int(n)*c.t.width+i] += sign * a
			}
		}
	}
}

// over is by how much node n is over quota of resource i, less what is freed;
// not positive where it is within.
func (c *choice) over(n int32, i int) int64 {
	held := c.t.amount(n, allocatedOf)[i] - c.freed[int(n)*c.t.width+i]
	return resource.SaturatingSub(held, c.t.amount(n, quotaOf)[i])
}

// deepestFirst are all nodes.
func (c *choice) deepestFirst() []int32 {
	depth := make([]int, len(c.t.nodes))
	order := make([]int32, len(c.t.nodes))
	for n := range c.t.nodes {
		order[n] = int32(n)
		if p := c.t.nodes[n].parent; p != none {
			depth[n] = depth[p] + 1
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(depth[b], depth[a]), cmp.Compare(a, b)) })
	return order
}

// overdrafts are the nodes over quota, less what is freed.
func (c *choice) overdrafts() []Overdraft {
	var all []Overdraft
	for _, n := range c.deepestFirst() {
		over := resource.Vector{}
		for i, name := range c.t.resources {
			if by := c.over(n, i); by > 0 {
				over[name] = by
			}
		}
		if len(over) > 0 {
			all = append(all, Overdraft{c.t.nodes[n].name, over})
		}
	}
	return all
}

// helps reports whether the end of a seat on node n or below frees something
// that is short on n.
func (c *choice) helps(s, n int32) bool {
	for i, a := range c.t.request(s) {
		if a > 0 && c.over(n, i) > 0 {
			return true
		}
	}
	return false
}

// relieve chooses parties until node n is within its quota, or none is left.
func (c *choice) relieve(n int32) {
	var seats []int32
	for d := n; d <= c.t.nodes[n].last; d++ {
		for s := c.t.nodes[d].head; s != none; s = c.t.seats[s].next {
			if p := c.of[s]; !p.pinned && !p.leaving && !p.chosen && c.helps(s, n) {
				seats = append(seats, s)
			}
		}
	}
	slices.SortFunc(seats, c.sooner)
	for _, s := range seats {
		if p := c.of[s]; !p.chosen && c.helps(s, n) {
			p.chosen, p.node = true, n
			c.ended = append(c.ended, p)
			c.end(p, 1)
		}
	}
}

// sooner orders seats by who is to end first.
func (c *choice) sooner(a, b int32) int {
	x, y := &c.t.seats[a], &c.t.seats[b]
	return cmp.Or(
		cmp.Compare(c.owns(a), c.owns(b)),
		cmp.Compare(x.priority, y.priority),
		cmp.Compare(y.order, x.order),
		cmp.Compare(c.id(a), c.id(b)))
}

// owns is 1 for an owner and 0 for a borrower.
func (c *choice) owns(s int32) int {
	if at := &c.t.seats[s]; at.group == at.node && c.t.nodes[at.node].leaf {
		return 1
	}
	return 0
}

// spare gives a chosen party back if no node goes over quota by that, or
// further over.
func (c *choice) spare(p *party) bool {
	c.end(p, -1)
	for _, s := range p.seats {
		for n := c.t.seats[s].node; n != none; n = c.t.nodes[n].parent {
			if c.helps(s, n) {
				c.end(p, 1)
				return false
			}
		}
	}
	return true
}
