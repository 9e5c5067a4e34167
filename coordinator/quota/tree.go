package quota

import "github.com/musterd/muster/resource"

// tree is one tree as it is live: nodes, and seats on them.
//
// Invariant: for every node, allocated is the sum of the requests of the seats
// listed on it and below, own of those listed on it, use of those whose group
// is it or below (a seat whose group is gone counts to the root's).
type tree struct {
	name      string
	slot      int32 // index in Manager.slots
	forest    *forest
	opts      *Options
	log       *journal
	resources []resource.Name // ascending
	width     int             // len(resources)
	cache     Cache
	shape     Shape

	nodes   []node           // preorder: a subtree is one range, the root is 0
	index   map[string]int32 // node by name
	amounts []int64          // width × amountKinds per node, see amount
	limits  *limits          // nil where no node has any

	seats     []seat
	freeSeats []int32
	moved     []int32 // seats for TakeMoved
	vectors   []int64 // per seat: its request, then the least request of its treap's subtree
	allocated int     // seats on a node
	order     int64   // the next place in any list
	build     uint32  // counts updates; a seat resolved in an older one is stale

	bands   bandArena
	path    []int32 // scratch: from a group to the stop node
	scratch []int64 // scratch: one vector
	now     int64   // nanoseconds, see Manager.SetNow
	why     Refusal // of what was refused last
}

// node is one node of a tree.
type node struct {
	name       string
	parent     int32
	last       int32 // last node of its subtree
	height     int32 // 0 of a leaf, else one more than the greatest of its children
	hard, leaf bool

	// The seats listed on the node, oldest first.
	head, tail, count int32
	classes           int32 // the same seats by class and priority, see bandArena

	// The treap of seats listed on the parent whose leaf groups are the node
	// or below it, see waiting.go.
	waiting, lastWaiting int32
}

// seat is a consumer on one tree.
//
// Invariant: node == none ⇔ it is in no list, band or treap; moved ⇔ it is in
// tree.moved, once.
type seat struct {
	consumer int32 // index in Manager.consumers, none for a free seat
	demand   int32 // index in the consumer's demands
	owner    string
	priority int
	kind     int // the demand's type
	pinned   bool
	moved    bool // it is in the tree's moved

	home  int32  // node of the demand's group as of build, none where gone
	build uint32 // the tree's build that home and the request are of

	stay
	// While allocated:
	node  int32 // allocation node
	via   int32 // child of node towards the group, none where it cannot slide down
	order int64 // its place in the list: ascending

	prev, next         int32 // list of the node
	band               int32
	bandPrev, bandNext int32 // list of the band

	up, left, right int32 // treap of via
	heap            uint32
}

// stay is what an allocation settles for a seat. It means nothing while the seat
// is not allocated.
type stay struct {
	groupName string // the group, followed through renames
	group     int32  // its node, none where gone
	since     int64  // when it was allocated, see Manager.SetNow
}

// The kinds of amounts of a node.
const (
	quotaOf = iota
	allocatedOf
	useOf
	ownOf
	amountKinds
)

// amount is one vector of a node.
func (t *tree) amount(n int32, kind int) []int64 {
	at := (int(n)*amountKinds + kind) * t.width
	return t.amounts[at : at+t.width : at+t.width]
}

// request is the seat's request.
func (t *tree) request(s int32) []int64 {
	at := int(s) * 2 * t.width
	return t.vectors[at : at+t.width : at+t.width]
}

// least is the bound of the seat's treap subtree.
func (t *tree) least(s int32) []int64 {
	at := (int(s)*2 + 1) * t.width
	return t.vectors[at : at+t.width : at+t.width]
}

// below reports whether d is n or in its subtree.
func (t *tree) below(d, n int32) bool { return n <= d && d <= t.nodes[n].last }

// towards is the child of n on the way to its descendant d, none for n itself.
func (t *tree) towards(n, d int32) int32 {
	if d == n {
		return none
	}
	for t.nodes[d].parent != n {
		d = t.nodes[d].parent
	}
	return d
}

// slideVia is the child of n that the seat, listed on n, may slide down to.
func (t *tree) slideVia(s, n int32) int32 {
	g := t.seats[s].group
	if g == none || !t.nodes[g].leaf {
		return none
	}
	return t.towards(n, g)
}

// addTo and subFrom change one vector in place. Sums stay in the range of
// int64: see overflows.
func addTo(v, w []int64) {
	for i, a := range w {
		v[i] += a
	}
}

func subFrom(v, w []int64) {
	for i, a := range w {
		v[i] -= a
	}
}

// fits reports whether the request fits on node n, reaching it from its child
// via (none: from n itself).
func (t *tree) fits(n, via int32, request []int64) bool {
	if t.limits != nil {
		return t.fitsLimited(n, via, request)
	}
	at := int(n) * amountKinds * t.width
	quota := t.amounts[at : at+len(request)]
	held := t.amounts[at+t.width : at+t.width+len(request)]
	for i, want := range request {
		room := quota[i] - held[i]
		if room < 0 && t.opts.IgnoreOverdrawn {
			room = 0
		}
		if want > room {
			return false
		}
	}
	return true
}

// room is how much of resource i is left on n for what comes from its child
// via.
func (t *tree) room(n, via int32, i int) int64 {
	room := t.roomOrDebt(n, via, i)
	if t.opts.IgnoreOverdrawn {
		room = max(room, 0)
	}
	return room
}

// roomOrDebt is room, negative where n is over quota.
func (t *tree) roomOrDebt(n, via int32, i int) int64 {
	room := t.amount(n, quotaOf)[i] - t.amount(n, allocatedOf)[i]
	if t.limits != nil {
		room = resource.SaturatingSub(room, t.limits.keptFrom(t, n, via, i))
	}
	return room
}
