package batch

// Pending knows which of a leader's writes, and reads that settle writes, are
// under way. The store shows a write to followers as soon as it has landed, and
// the leader only once it has the answer: a read that waits until all that was
// under way when it was asked has ended shows nothing older than anybody was
// shown before. The zero value has nothing under way.
type Pending struct {
	began uint64          // how many have begun
	low   uint64          // all up to this one have ended
	ended map[uint64]bool // those above low that have ended
	// doubt: a write had no answer, and since then there was no moment at which
	// nothing was under way.
	doubt bool
}

// Progress says whether a reader goes on.
type Progress uint8

const (
	// Waits: something that counts is under way.
	Waits Progress = iota
	// Passed: all that counts has ended.
	Passed
	// InDoubt: a write has no answer, so nobody knows what readers were shown.
	InDoubt
)

// Begin notes that something is under way until End is called with its number,
// which counts from 1.
func (p *Pending) Begin() uint64 {
	p.began++
	return p.began
}

// End notes that the leader's view has what came of id. All that this has led
// to has begun before.
func (p *Pending) End(id uint64) {
	if p.ended == nil {
		p.ended = map[uint64]bool{}
	}
	p.ended[id] = true
	for p.ended[p.low+1] {
		p.low++
		delete(p.ended, p.low)
	}
	if p.low == p.began {
		p.doubt = false
	}
}

// Doubt notes that a write had no answer.
func (p *Pending) Doubt() { p.doubt = true }

// Began is the number of the latest that has begun.
func (p *Pending) Began() uint64 { return p.began }

// UpTo says how far all up to the number last is.
func (p *Pending) UpTo(last uint64) Progress {
	switch {
	case p.doubt:
		return InDoubt
	case p.low >= last:
		return Passed
	}
	return Waits
}
