package cluster

import "github.com/musterd/muster/resource"

// Rater rates nodes by their standing and kind. It is a comparable value, and a
// function of its arguments: the State remembers its answers.
type Rater interface {
	// Score rates a node that may have room for a member; greater is better.
	Score(*Standing, *Kind, *resource.Request) int64
	// Doubt is why a node is the last choice whatever its score, 0 for none.
	Doubt(s *Standing, failures int) int
}

// Rating is the rating of peers for a member. Without Room no node of the peers has
// room by its sums, and the rest is zero.
type Rating struct {
	Score int64
	Doubt int32
	Room  bool
}

// The most ratings that a State remembers, and the most requests that they are for.
const (
	mostRatings = 1 << 21
	mostColumns = 512
)

// slots numbers the peers. A number is used again after its peers have gone.
//
// Invariant: peers has each non-empty Peers at its slot, and nil at the slots in free.
// changes are the latest slots that got or lost peers; before them were before others.
// No column has seen more than all changes.
type slots struct {
	peers   []*Peers
	free    []int32
	changes []int32
	before  uint64
	columns map[question]*column
	uses    uint64
}

// question is what ratings answer.
type question struct {
	rater   Rater
	request resource.Request
}

// column has the ratings of all slots as they were after the first `seen` changes; a
// column that is not made yet has none.
type column struct {
	ratings []Rating
	made    bool
	seen    uint64
	used    uint64
}

func (x *slots) add(p *Peers) {
	if last := len(x.free) - 1; last >= 0 {
		p.slot, x.free = x.free[last], x.free[:last]
	} else {
		p.slot = int32(len(x.peers))
		x.peers = append(x.peers, nil)
	}
	x.peers[p.slot] = p
	x.changed(p.slot)
}

func (x *slots) remove(p *Peers) {
	x.peers[p.slot] = nil
	x.free = append(x.free, p.slot)
	x.changed(p.slot)
}

// changed notes a change. Where nobody has ratings it notes nothing, and of more
// changes than there are slots it keeps the later half.
func (x *slots) changed(slot int32) {
	if len(x.columns) == 0 {
		return
	}
	if len(x.changes) > max(1024, 2*len(x.peers)) {
		half := len(x.changes) / 2
		x.before += uint64(half)
		x.changes = x.changes[:copy(x.changes, x.changes[half:])]
	}
	x.changes = append(x.changes, slot)
}

// Rated returns the ratings of all peers for a member, and the peers, by slot: an
// empty slot has no Room. They are valid until the State is asked again, and the
// caller must not change them. Only the peers that are new since the last question of
// the same rater are rated.
func (s *State) Rated(by Rater, r *resource.Request) ([]Rating, []*Peers) {
	s.index.settle()
	x := &s.index.slots
	x.uses++
	c := x.columns[question{by, *r}]
	if c == nil {
		c = x.newColumn(question{by, *r})
	}
	c.used = x.uses
	now := x.before + uint64(len(x.changes))
	for n := len(c.ratings); n < len(x.peers); n++ {
		c.ratings = append(c.ratings, Rating{})
	}
	if !c.made || c.seen < x.before {
		for slot := range x.peers {
			x.rate(c, by, r, slot)
		}
	} else {
		for _, slot := range x.changes[c.seen-x.before:] {
			x.rate(c, by, r, int(slot))
		}
	}
	c.made, c.seen = true, now
	return c.ratings, x.peers
}

// newColumn adds a column that is not made yet. The columns that have not been used
// for the longest time make room.
func (x *slots) newColumn(q question) *column {
	for len(x.columns) > 0 && (len(x.columns) >= mostColumns || len(x.columns)*len(x.peers) >= mostRatings) {
		var oldest question
		least := x.uses
		for at, c := range x.columns {
			if c.used < least {
				oldest, least = at, c.used
			}
		}
		delete(x.columns, oldest)
	}
	if x.columns == nil {
		x.columns = map[question]*column{}
	}
	c := &column{ratings: make([]Rating, 0, len(x.peers)+len(x.peers)/4)}
	x.columns[q] = c
	return c
}

// rate makes the rating of one slot anew.
func (x *slots) rate(c *column, by Rater, r *resource.Request, slot int) {
	p := x.peers[slot]
	if p == nil || !p.MayFit(r) {
		c.ratings[slot] = Rating{}
		return
	}
	c.ratings[slot] = Rating{Score: by.Score(&p.Standing, p.kind, r), Doubt: int32(by.Doubt(&p.Standing, 0)), Room: true}
}
