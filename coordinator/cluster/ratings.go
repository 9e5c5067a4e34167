package cluster

import (
	"math"
	"math/bits"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/resource"
)

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

// exceeds reports whether a rating is better than another one.
func (r *Rating) exceeds(o *Rating) bool {
	switch {
	case r.Room != o.Room:
		return r.Room
	case r.Doubt != o.Doubt:
		return r.Doubt < o.Doubt
	}
	return r.Score > o.Score
}

// The most ratings that a State remembers, and the most requests that they are for.
const (
	mostRatings = 1 << 21
	mostColumns = 512
)

// blockSize is how many slots are in a block. A search reads the best rating of each block,
// and the ratings of few blocks.
const blockSize = 32

// slots numbers the peers. A number is used again after its peers have gone. The peers in
// one block of numbers have the same taints.
//
// Invariant: peers has each non-empty Peers at its slot, and nil elsewhere; it has
// blockSize entries for each of blocks. used has a bit for each slot of a block with peers.
// open has, by their taints, the blocks with peers and with a free slot; empty are the
// blocks without peers. changes are the latest slots that got or lost peers; before them
// were before others. No column has seen more than all changes.
type slots struct {
	peers   []*Peers
	blocks  []block
	open    map[*constraint.Taints][]int32
	empty   []int32
	changes []int32
	before  uint64
	columns map[question]*column
	uses    uint64
}

type block struct {
	taints *constraint.Taints
	used   uint32
}

// question is what ratings answer.
type question struct {
	rater   Rater
	request resource.Request
}

// column has the ratings of all slots as they were after the first `seen` changes, and
// the best of each block; a column that is not made yet has none.
type column struct {
	ratings []Rating
	best    []Rating
	made    bool
	seen    uint64
	used    uint64
}

func (x *slots) add(p *Peers) {
	of := x.open[p.taints]
	if len(of) == 0 {
		of = append(of, x.newBlock(p.taints))
		x.setOpen(p.taints, of)
	}
	at := of[len(of)-1]
	b := &x.blocks[at]
	bit := bits.TrailingZeros32(^b.used)
	if b.used |= 1 << bit; b.used == math.MaxUint32 {
		x.setOpen(p.taints, of[:len(of)-1])
	}
	p.slot = at*blockSize + int32(bit)
	x.peers[p.slot] = p
	x.changed(p.slot)
}

// newBlock returns a block without peers, for peers with some taints.
func (x *slots) newBlock(taints *constraint.Taints) int32 {
	if last := len(x.empty) - 1; last >= 0 {
		at := x.empty[last]
		x.empty = x.empty[:last]
		x.blocks[at].taints = taints
		return at
	}
	x.blocks = append(x.blocks, block{taints: taints})
	x.peers = append(x.peers, make([]*Peers, blockSize)...)
	return int32(len(x.blocks) - 1)
}

func (x *slots) remove(p *Peers) {
	x.peers[p.slot] = nil
	at := p.slot / blockSize
	b := &x.blocks[at]
	if b.used == math.MaxUint32 {
		x.setOpen(p.taints, append(x.open[p.taints], at))
	}
	if b.used &^= 1 << (p.slot % blockSize); b.used == 0 {
		x.setOpen(p.taints, slices.DeleteFunc(x.open[p.taints], func(o int32) bool { return o == at }))
		b.taints = nil
		x.empty = append(x.empty, at)
	}
	x.changed(p.slot)
}

// setOpen notes which blocks with some taints have a free slot.
func (x *slots) setOpen(taints *constraint.Taints, of []int32) {
	if len(of) == 0 {
		delete(x.open, taints)
		return
	}
	if x.open == nil {
		x.open = map[*constraint.Taints][]int32{}
	}
	x.open[taints] = of
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

// Ratings are the ratings of all peers for a member, in blocks of peers with the same
// taints.
type Ratings struct {
	column *column
	slots  *slots
}

// Blocks counts the blocks.
func (r *Ratings) Blocks() int { return len(r.column.best) }

// Best is the best rating of a block, which the caller must not change, and the taints of
// its peers.
func (r *Ratings) Best(block int) (*Rating, *constraint.Taints) {
	return &r.column.best[block], r.slots.blocks[block].taints
}

// Block has the ratings of a block, and the peers: an empty slot has no Room. The caller
// must not change them.
func (r *Ratings) Block(block int) ([]Rating, []*Peers) {
	from, to := block*blockSize, (block+1)*blockSize
	return r.column.ratings[from:to], r.slots.peers[from:to]
}

// Len counts the ratings, those of empty slots included.
func (r *Ratings) Len() int { return len(r.column.ratings) }

// Rated returns the ratings of all peers for a member. They are valid until the State is
// asked again. Only the peers that are new since the last question of the same rater are
// rated.
func (s *State) Rated(by Rater, r *resource.Request) Ratings {
	s.index.settle()
	x := &s.index.slots
	x.uses++
	c := x.columns[question{by, *r}]
	if c == nil {
		c = x.newColumn(question{by, *r})
	}
	c.used = x.uses
	if n := len(x.peers) - len(c.ratings); n > 0 {
		c.ratings = append(c.ratings, make([]Rating, n)...)
		c.best = append(c.best, make([]Rating, n/blockSize)...)
	}
	if !c.made || c.seen < x.before {
		for slot := range x.peers {
			c.ratings[slot] = x.rate(by, r, slot)
		}
		for block := range c.best {
			c.findBest(block)
		}
	} else {
		for _, slot := range x.changes[c.seen-x.before:] {
			c.set(int(slot), x.rate(by, r, int(slot)))
		}
	}
	c.made, c.seen = true, x.before+uint64(len(x.changes))
	return Ratings{c, x}
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

// rate returns the rating of one slot.
func (x *slots) rate(by Rater, r *resource.Request, slot int) Rating {
	p := x.peers[slot]
	if p == nil || !p.MayFit(r) {
		return Rating{}
	}
	return Rating{Score: by.Score(&p.Standing, p.kind, r), Doubt: int32(by.Doubt(&p.Standing, 0)), Room: true}
}

// set changes the rating of a slot, and the best of its block.
func (c *column) set(slot int, now Rating) {
	at := &c.ratings[slot]
	was := *at
	*at = now
	switch best := &c.best[slot/blockSize]; {
	case now.exceeds(best):
		*best = now
	case was == *best:
		c.findBest(slot / blockSize)
	}
}

// findBest finds the best rating of a block.
func (c *column) findBest(block int) {
	best := Rating{}
	all := c.ratings[block*blockSize : (block+1)*blockSize]
	for i := range all {
		if all[i].exceeds(&best) {
			best = all[i]
		}
	}
	c.best[block] = best
}
