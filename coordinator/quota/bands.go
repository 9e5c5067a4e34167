package quota

// The seats of a node stand in bands: those of one class and one priority,
// oldest first. A class is a type and whether its seats may be evicted. The
// bands of a class form a treap by priority; each knows the sum of the
// requests and the oldest seat of its subtree. So the two questions of an
// arrival, how much could all of lower priority free and who of them is the
// oldest, cost the logarithm of the number of different priorities, and a node
// whose seats cannot give way is never walked.
type bandArena struct {
	class     []class
	band      []band
	sums      []int64 // per band: of its own seats, then of its treap's subtree
	freeClass []int32
	freeBand  []int32
}

// class heads the treap of bands of one type.
type class struct {
	kind   int
	pinned bool
	node   int32
	root   int32
	next   int32 // of the same node, in no particular order
}

// band is a queue of seats of one class and priority.
//
// Invariant: it is not empty, except while its first seat joins.
type band struct {
	priority        int
	class           int32
	up, left, right int32
	heap            uint32
	head, tail      int32 // seats
	oldest          int32 // seat of the smallest order in the subtree
}

// filter says which seats of a node may give way.
type filter struct {
	below   int  // only priorities below this, unless all
	all     bool // any priority
	kind    int  // only this type, unless anyKind
	anyKind bool
	pinned  bool // unpreemptable ones too
}

func (f *filter) class(c *class) bool {
	return (f.anyKind || c.kind == f.kind) && (f.pinned || !c.pinned)
}

func (f *filter) seat(c *seat) bool {
	return (f.anyKind || c.kind == f.kind) && (f.pinned || !c.pinned) && (f.all || c.priority < f.below)
}

// ownSum and treapSum are the sums of a band.
func (t *tree) ownSum(b int32) []int64 {
	at := int(b) * 2 * t.width
	return t.bands.sums[at : at+t.width : at+t.width]
}

func (t *tree) treapSum(b int32) []int64 {
	at := (int(b)*2 + 1) * t.width
	return t.bands.sums[at : at+t.width : at+t.width]
}

// bandOf finds the seat's band on node n, or makes it.
func (t *tree) bandOf(n, s int32) int32 {
	c := &t.seats[s]
	a := &t.bands
	k := t.nodes[n].classes
	for k != none && (a.class[k].kind != c.kind || a.class[k].pinned != c.pinned) {
		k = a.class[k].next
	}
	if k == none {
		k = t.newClass(n, c)
	}
	up, b := none, a.class[k].root
	for b != none {
		x := &a.band[b]
		if x.priority == c.priority {
			return b
		}
		up = b
		if c.priority < x.priority {
			b = x.left
		} else {
			b = x.right
		}
	}
	return t.newBand(k, up, c.priority)
}

func (t *tree) newClass(n int32, c *seat) int32 {
	a, at := &t.bands, &t.nodes[n]
	made := class{kind: c.kind, pinned: c.pinned, node: n, root: none, next: at.classes}
	if last := len(a.freeClass) - 1; last >= 0 {
		at.classes = a.freeClass[last]
		a.freeClass = a.freeClass[:last]
		a.class[at.classes] = made
		return at.classes
	}
	at.classes = int32(len(a.class))
	a.class = append(a.class, made)
	return at.classes
}

// newBand makes an empty band below up, where the search for it ended.
func (t *tree) newBand(k, up int32, priority int) int32 {
	a := &t.bands
	made := band{priority: priority, class: k, up: up, left: none, right: none, head: none, tail: none, oldest: none, heap: scatter(int64(priority))}
	var b int32
	if last := len(a.freeBand) - 1; last >= 0 {
		b = a.freeBand[last]
		a.freeBand = a.freeBand[:last]
		a.band[b] = made
		clear(t.ownSum(b))
	} else {
		b = int32(len(a.band))
		a.band = append(a.band, made)
		for range 2 * t.width {
			a.sums = append(a.sums, 0)
		}
	}
	switch {
	case up == none:
		a.class[k].root = b
	case priority < a.band[up].priority:
		a.band[up].left = b
	default:
		a.band[up].right = b
	}
	t.pullBand(b)
	for a.band[b].up != none && a.band[a.band[b].up].heap < a.band[b].heap {
		t.rotateBand(b)
	}
	return b
}

// joinBand lists the seat in the band behind prev (none: at the head).
func (t *tree) joinBand(s, b, prev int32) {
	c, x := &t.seats[s], &t.bands.band[b]
	c.band, c.bandPrev, c.bandNext = b, prev, x.head
	if prev != none {
		c.bandNext = t.seats[prev].bandNext
		t.seats[prev].bandNext = s
	} else {
		x.head = s
	}
	if c.bandNext != none {
		t.seats[c.bandNext].bandPrev = s
	} else {
		x.tail = s
	}
	addTo(t.ownSum(b), t.request(s))
	t.pullBandsFrom(b)
}

// leaveBand takes the seat out of its band, and an empty band out of its
// treap.
func (t *tree) leaveBand(s int32) {
	c := &t.seats[s]
	b := c.band
	x := &t.bands.band[b]
	if c.bandPrev != none {
		t.seats[c.bandPrev].bandNext = c.bandNext
	} else {
		x.head = c.bandNext
	}
	if c.bandNext != none {
		t.seats[c.bandNext].bandPrev = c.bandPrev
	} else {
		x.tail = c.bandPrev
	}
	subFrom(t.ownSum(b), t.request(s))
	if x.head == none {
		t.dropBand(b)
		return
	}
	t.pullBandsFrom(b)
}

// dropBand removes an empty band, and its class with the last.
func (t *tree) dropBand(b int32) {
	a := &t.bands
	x := &a.band[b]
	for x.left != none || x.right != none {
		child := x.left
		if child == none || x.right != none && a.band[x.right].heap > a.band[child].heap {
			child = x.right
		}
		t.rotateBand(child)
	}
	t.replaceBand(b, none)
	a.freeBand = append(a.freeBand, b)
	if x.up != none {
		t.pullBandsFrom(x.up)
		return
	}
	k := x.class
	for at := &t.nodes[a.class[k].node].classes; ; at = &a.class[*at].next {
		if *at == k {
			*at = a.class[k].next
			break
		}
	}
	a.freeClass = append(a.freeClass, k)
}

// replaceBand puts another band, or none, into b's place below its parent.
func (t *tree) replaceBand(b, by int32) {
	a := &t.bands
	up := a.band[b].up
	switch {
	case up == none:
		a.class[a.band[b].class].root = by
	case a.band[up].left == b:
		a.band[up].left = by
	default:
		a.band[up].right = by
	}
}

// rotateBand lifts b above its parent.
func (t *tree) rotateBand(b int32) {
	a := &t.bands
	x := &a.band[b]
	p := x.up
	y := &a.band[p]
	t.replaceBand(p, b)
	x.up, y.up = y.up, b
	var moved int32
	if y.left == b {
		moved, y.left, x.right = x.right, x.right, p
	} else {
		moved, y.right, x.left = x.left, x.left, p
	}
	if moved != none {
		a.band[moved].up = p
	}
	t.pullBand(p)
	t.pullBand(b)
}

// pullBand recomputes what b knows of its subtree from its children.
func (t *tree) pullBand(b int32) {
	x := &t.bands.band[b]
	sum := t.treapSum(b)
	copy(sum, t.ownSum(b))
	x.oldest = x.head
	for _, child := range [2]int32{x.left, x.right} {
		if child == none {
			continue
		}
		addTo(sum, t.treapSum(child))
		x.oldest = t.older(x.oldest, t.bands.band[child].oldest)
	}
}

func (t *tree) pullBandsFrom(b int32) {
	for ; b != none; b = t.bands.band[b].up {
		t.pullBand(b)
	}
}

// older is the seat of the smaller place of two; either may be none.
func (t *tree) older(a, b int32) int32 {
	if a == none || b != none && t.seats[b].order < t.seats[a].order {
		return b
	}
	return a
}

// freeable adds to sum the requests of the seats of n that the filter lets go.
func (t *tree) freeable(n int32, f *filter, sum []int64) {
	a := &t.bands
	for k := t.nodes[n].classes; k != none; k = a.class[k].next {
		if !f.class(&a.class[k]) {
			continue
		}
		if f.all {
			addTo(sum, t.treapSum(a.class[k].root))
			continue
		}
		for b := a.class[k].root; b != none; {
			x := &a.band[b]
			if x.priority >= f.below {
				b = x.left
				continue
			}
			addTo(sum, t.ownSum(b))
			if x.left != none {
				addTo(sum, t.treapSum(x.left))
			}
			b = x.right
		}
	}
}

// oldest is the oldest seat of n that the filter lets go, or none.
func (t *tree) oldest(n int32, f *filter) int32 {
	a := &t.bands
	found := none
	for k := t.nodes[n].classes; k != none; k = a.class[k].next {
		if !f.class(&a.class[k]) {
			continue
		}
		if f.all {
			found = t.older(found, a.band[a.class[k].root].oldest)
			continue
		}
		for b := a.class[k].root; b != none; {
			x := &a.band[b]
			if x.priority >= f.below {
				b = x.left
				continue
			}
			found = t.older(found, x.head)
			if x.left != none {
				found = t.older(found, a.band[x.left].oldest)
			}
			b = x.right
		}
	}
	return found
}

// leastWorthy is the newest seat of the lowest priority of n that the filter lets
// go, or none.
func (t *tree) leastWorthy(n int32, f *filter) int32 {
	a := &t.bands
	found := none
	for k := t.nodes[n].classes; k != none; k = a.class[k].next {
		if !f.class(&a.class[k]) {
			continue
		}
		b := a.class[k].root
		for a.band[b].left != none {
			b = a.band[b].left
		}
		if f.all || a.band[b].priority < f.below {
			found = t.lessWorthy(found, a.band[b].tail)
		}
	}
	return found
}

// lessWorthy is the seat to be evicted first of two: that of the lower
// priority, then the newer. Either may be none.
func (t *tree) lessWorthy(a, b int32) int32 {
	switch {
	case a == none:
		return b
	case b == none:
		return a
	}
	x, y := &t.seats[a], &t.seats[b]
	if x.priority < y.priority || x.priority == y.priority && x.order > y.order {
		return a
	}
	return b
}

// scatter makes a treap's heap key of a number: the same for the same number,
// without pattern otherwise (the finalizer of splitmix64).
func scatter(x int64) uint32 {
	z := uint64(x) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32(z >> 32)
}
