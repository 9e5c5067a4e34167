package quota_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// naive is quota trees as one would write them down first: lists and nothing
// else. Every sum is made anew from the lists when it is needed, and whatever
// is to be taken back is copied beforehand. It serves as the oracle.
type naive struct {
	opts  quota.Options
	mode  quota.Mode
	now   time.Duration
	trees []*nTree // ascending by name
}

type nTree struct {
	name      string
	cached    []resource.Name // the cache's
	resources []resource.Name
	specs     map[string]quota.NodeSpec // the cache
	renamed   map[string]string
	nodes     map[string]*nNode
	root      *nNode
	clock     int // counts places in lists
}

type nNode struct {
	quota.NodeSpec
	name     string
	parent   *nNode
	children []*nNode // ascending by name
	list     []*nSeat
}

type nSeat struct {
	id, owner string
	want      resource.Vector
	priority  int
	kind      int
	pinned    bool
	group     *nNode // nil where gone
	groupName string
	node      *nNode
	placed    int // the clock when it was listed
	since     time.Duration
}

func (t *nTree) build() {
	t.nodes, t.root, t.resources = map[string]*nNode{}, nil, t.cached
	all := map[string]*nNode{}
	for _, name := range slices.Sorted(maps.Keys(t.specs)) {
		all[name] = &nNode{NodeSpec: t.specs[name], name: name}
		if t.root == nil && t.specs[name].Parent == "" {
			t.root = all[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := all[name]; n.Parent != "" && all[n.Parent] != nil {
			n.parent = all[n.Parent]
			n.parent.children = append(n.parent.children, n)
		}
	}
	var reach func(n *nNode)
	reach = func(n *nNode) {
		t.nodes[n.name] = n
		for _, c := range n.children {
			reach(c)
		}
	}
	if t.root != nil {
		reach(t.root)
	}
}

func (n *nNode) under(a *nNode) bool { return n == a || n.parent != nil && n.parent.under(a) }

// sum adds what the seats listed in n's subtree want of a resource, but one.
func (n *nNode) sum(name resource.Name, but *nSeat) int64 {
	var sum int64
	for _, s := range n.list {
		if s != but {
			sum += s.want[name]
		}
	}
	for _, c := range n.children {
		sum += c.sum(name, but)
	}
	return sum
}

func (t *nTree) seats() []*nSeat {
	var all []*nSeat
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		all = append(all, t.nodes[name].list...)
	}
	return all
}

// use adds what seats of groups in n's subtree want, but one; of an owner if
// one is named.
func (t *nTree) use(n *nNode, name resource.Name, but *nSeat, owner string) int64 {
	var sum int64
	for _, s := range t.seats() {
		in := s.group != nil && s.group.under(n) || s.group == nil && n == t.root
		if s != but && in && (owner == "" || s.owner == owner) {
			sum += s.want[name]
		}
	}
	return sum
}

func limit(v resource.Vector, name resource.Name) int64 {
	if l, named := v[name]; named {
		return l
	}
	return quota.Unlimited
}

// fits reports whether s, coming through child via, fits on n.
func (o *naive) fits(t *nTree, n, via *nNode, s *nSeat) bool {
	for _, name := range t.resources {
		room := n.Quota[name] - n.sum(name, s)
		for _, c := range n.children {
			if c != via {
				room -= max(0, max(0, c.Quota[name]-limit(c.Lending, name))-c.sum(name, s))
			}
		}
		if o.opts.IgnoreOverdrawn {
			room = max(room, 0)
		}
		if s.want[name] > room {
			return false
		}
	}
	return true
}

// confined reports whether s may not stand above n.
func (o *naive) confined(t *nTree, n *nNode, s *nSeat, but *nSeat) bool {
	if n.Hard || o.opts.PinnedWithinQuota && s.pinned {
		return true
	}
	for _, name := range t.resources {
		// What others borrow: all use of the groups below less what is listed
		// below; s itself counts to neither or to both.
		borrowed := t.use(n, name, but, "") - n.sum(name, but)
		if w := s.want[name]; w > 0 && w > limit(n.Borrowing, name)-borrowed {
			return true
		}
	}
	return false
}

func (t *nTree) list(n *nNode, s *nSeat) {
	n.list = append(n.list, s)
	s.node = n
	s.placed = t.clock
	t.clock++
}

func (s *nSeat) unlist() {
	s.node.list = slices.DeleteFunc(slices.Clone(s.node.list), func(x *nSeat) bool { return x == s })
	s.node = nil
}

// saved is a copy of all lists of a tree.
type saved struct {
	t     *nTree
	lists map[*nNode][]*nSeat
	seats map[*nSeat]nSeat
	clock int
}

func (t *nTree) save(also ...*nSeat) saved {
	c := saved{t, map[*nNode][]*nSeat{}, map[*nSeat]nSeat{}, t.clock}
	for _, n := range t.nodes {
		c.lists[n] = slices.Clone(n.list)
	}
	for _, s := range append(t.seats(), also...) {
		c.seats[s] = *s
	}
	return c
}

func (c saved) restore() {
	for n, list := range c.lists {
		n.list = slices.Clone(list)
	}
	for s, was := range c.seats {
		*s = was
	}
	c.t.clock = c.clock
}

// admit is QUOTA.md section 3: it returns the victims in order.
func (o *naive) admit(t *nTree, s *nSeat) (victims []*nSeat, ok bool) {
	g := t.nodes[s.groupName]
	if g == nil || len(g.children) > 0 {
		return nil, false
	}
	s.group, s.since = g, o.now
	for n := g; n != nil; n = n.parent {
		for _, name := range t.resources {
			w := s.want[name]
			if w > 0 && w > limit(n.Cap, name)-t.use(n, name, nil, "") {
				return nil, false
			}
			if n.PerOwner != nil && s.owner != "" && w > 0 && w > limit(n.PerOwner, name)-t.use(n, name, nil, s.owner) {
				return nil, false
			}
		}
	}
	before := t.save(s)
	if victims, ok = o.attempt(t, s); !ok {
		before.restore()
		return nil, false
	}
	if o.opts.FewestVictims {
		victims = o.spare(t, s, victims, before)
	}
	return victims, true
}

// attempt is one round of both phases, and the rounds after it.
func (o *naive) attempt(t *nTree, s *nSeat) (victims []*nSeat, ok bool) {
	before := t.save(s)
	stop, victims, ok := o.climb(t, s)
	if ok {
		return victims, true
	}
	before.restore()
	if s.priority <= 0 {
		return nil, false
	}
	var path []*nNode // from stop down to the group
	for n := s.group; n != stop.parent; n = n.parent {
		path = append([]*nNode{n}, path...)
	}
	var via *nNode
	if len(path) > 1 {
		via = path[1]
	}
	var candidates []*nSeat
	for _, n := range path {
		candidates = append(candidates, n.list...)
	}
	candidates = slices.DeleteFunc(candidates, func(v *nSeat) bool { return v.priority >= s.priority || !o.evictable(v, s) })
	if o.opts.FewestVictims {
		slices.SortFunc(candidates, leastWorthyFirst)
	}
	for _, v := range candidates {
		v.unlist()
		victims = append(victims, v)
		if o.fits(t, stop, via, s) {
			more, ok := o.attempt(t, s)
			return append(victims, more...), ok
		}
	}
	return nil, false
}

func leastWorthyFirst(a, b *nSeat) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(b.placed, a.placed))
}

func (o *naive) evictable(v, s *nSeat) bool {
	return !v.pinned && v.kind == s.kind && o.now-v.since >= o.opts.MinRunTime
}

// climb is phase 1.
func (o *naive) climb(t *nTree, s *nSeat) (stop *nNode, victims []*nSeat, ok bool) {
	start := t.save(s)
	placed, confined := false, false
	var via *nNode
	for n := s.group; n != nil; via, n = n, n.parent {
		stop = n
		here := o.confined(t, n, s, s)
		confined = confined || here
		fits := o.fits(t, n, via, s)
		if !fits {
			var out []*nSeat
			out, fits = o.slideUp(t, n, via, s, !placed)
			victims = append(victims, out...)
		}
		switch {
		case fits && !placed:
			t.list(n, s)
			placed = true
		case fits:
		case placed:
			start.restore()
			victims, placed = nil, false
			if confined {
				return stop, nil, false
			}
		case here:
			return stop, nil, false
		}
	}
	return stop, victims, placed
}

// slideUp makes room on n.
func (o *naive) slideUp(t *nTree, n, via *nNode, s *nSeat, onlyLower bool) (victims []*nSeat, ok bool) {
	evicts := n.parent == nil || n.Hard
	if n.parent != nil && n.Hard && !o.opts.EvictAtHard {
		return nil, false
	}
	before := t.save(s)
	order := slices.Clone(n.list)
	if evicts && o.opts.FewestVictims {
		slices.SortFunc(order, leastWorthyFirst)
	}
	for _, v := range order {
		if onlyLower && v.priority >= s.priority {
			continue
		}
		push := !evicts && !o.confined(t, n, v, s)
		switch {
		case !evicts && v.pinned && o.opts.PinnedWithinQuota:
			continue
		case !push && !evicts && !o.opts.EvictAtHard:
			continue
		case !push && !o.evictable(v, s):
			continue
		}
		v.unlist()
		if push {
			t.list(n.parent, v)
		} else {
			victims = append(victims, v)
		}
		if o.fits(t, n, via, s) {
			return victims, true
		}
	}
	before.restore()
	return nil, false
}

// spare tries without each victim, the last first.
func (o *naive) spare(t *nTree, s *nSeat, victims []*nSeat, before saved) []*nSeat {
	try := func(chosen []*nSeat) bool {
		before.restore()
		for _, v := range chosen {
			v.unlist()
		}
		_, more, ok := o.climb(t, s)
		return ok && len(more) == 0
	}
	chosen := victims
	for i := len(chosen) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(chosen), i, i+1); try(fewer) {
			chosen = fewer
		}
	}
	if len(chosen) == len(victims) || !try(chosen) {
		before.restore()
		o.attempt(t, s)
		return victims
	}
	return chosen
}

// release takes s off and slides others down.
func (o *naive) release(t *nTree, s *nSeat) {
	from := s.node
	s.unlist()
	// As the amounts go off node by node, the nodes above still hold s while
	// those below are filled; only the node itself is looked at.
	for n := from; n != nil; n = n.parent {
		if n.parent == nil {
			break
		}
		for _, v := range slices.Clone(n.parent.list) {
			if v.group == nil || len(v.group.children) > 0 || !v.group.under(n) {
				continue
			}
			for at := n; at != nil && o.fits(t, at, at.towards(v.group), v); at = at.towards(v.group) {
				v.unlist()
				t.list(at, v)
				if !o.opts.Settle {
					break
				}
			}
		}
	}
}

func (n *nNode) towards(g *nNode) *nNode {
	for _, c := range n.children {
		if g.under(c) {
			return c
		}
	}
	return nil
}

// restore lists s on the lowest node that is allowed and has room, as all
// above, or on the highest allowed one.
func (o *naive) restore(t *nTree, s *nSeat) bool {
	g := t.nodes[s.groupName]
	if g == nil {
		return false
	}
	s.group, s.since = g, o.now
	var allowed []*nNode
	for n := g; n != nil && (n == g || !o.confined(t, allowed[len(allowed)-1], s, s)); n = n.parent {
		allowed = append(allowed, n)
	}
	for _, n := range allowed {
		fits := true
		for a := n; a != nil; a = a.parent {
			fits = fits && o.fits(t, a, a.towards(g), s)
		}
		if fits {
			t.list(n, s)
			return true
		}
	}
	t.list(allowed[len(allowed)-1], s)
	return true
}

// update is QUOTA.md section 5, seats in the order of their places.
func (o *naive) update(t *nTree, wantOf func(id string) resource.Vector) (lost []*nSeat) {
	seats := t.seats()
	slices.SortFunc(seats, func(a, b *nSeat) int { return cmp.Compare(a.placed, b.placed) })
	now := func(name string) string {
		if n, ok := t.renamed[name]; ok {
			return n
		}
		return name
	}
	t.build()
	t.clock = 0
	for _, s := range seats {
		old := now(s.node.name)
		s.groupName = now(s.groupName)
		s.group, s.node, s.want = t.nodes[s.groupName], nil, wantOf(s.id)
		at := t.root
		if s.group != nil {
			at = s.group
			if a := t.nodes[old]; a != nil && len(s.group.children) == 0 && s.group.under(a) {
				at = a
			}
		}
		if at == nil {
			lost = append(lost, s)
			continue
		}
		t.list(at, s)
	}
	t.renamed = map[string]string{}
	return lost
}
