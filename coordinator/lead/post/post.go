// Package post keeps the questions of the leader: the effects of an input, writes and reads
// without an answer, alarms, the author of the present change, and the numbers drawn for
// attempts and objects. Post knows no unit, node or quota: a write comes with
// its compares, and with the code for the outcome.
package post

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterd/muster/coordinator/lead/entries"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// ErrDeposed ends a wait on a leader without its office.
var ErrDeposed = errors.New("this coordinator no longer leads")

// retryAfter is the pause before a write that the store refuses is sent again.
const retryAfter = 2 * time.Second

// Post is the post office of a term. A single goroutine uses it at a time.
//
// Invariant: each token is in at most one of writes, reads and nodeReads, from the question
// to the answer.
type Post struct {
	epoch  resource.Epoch
	maxOps int // of the store in one Txn

	now     time.Time // of the input that is being handled
	elected time.Time // of the load
	effects []Effect  // of that input, in order
	open    bool      // the input is being handled
	alarms  alarms

	random  *rand.ChaCha8 // draws nonces and uids
	counter uint64        // of attempts and arrivals in this epoch

	lastToken Token
	writes    map[Token]func(txn.Outcome, resource.Revision, error)
	reads     map[Token]func(kv record.KV, found bool, revision resource.Revision)
	nodeReads map[Token]func(NodeKeys)

	acting   *Author // of the writes that are made now, or nil
	entries  entries.Hour
	lease    record.LeaseID // of request ids and entries, or 0
	leasedAt time.Time      // when the lease was asked for
}

// New returns the post of a term that begins now. The seed is that of nonces and uids.
func New(epoch resource.Epoch, maxOps int, now time.Time, seed [32]byte) *Post {
	return &Post{
		epoch: epoch, maxOps: maxOps, now: now, elected: now, leasedAt: now, random: rand.NewChaCha8(seed),
		writes:    map[Token]func(txn.Outcome, resource.Revision, error){},
		reads:     map[Token]func(record.KV, bool, resource.Revision){},
		nodeReads: map[Token]func(NodeKeys){},
	}
}

// Epoch is the epoch of the term, and MaxOps the most operations of a Txn.
func (p *Post) Epoch() resource.Epoch { return p.epoch }
func (p *Post) MaxOps() int           { return p.maxOps }

// NextTx draws an attempt's identifier.
func (p *Post) NextTx(unit resource.UnitUID) resource.TxID {
	p.counter++ // model: mutant ATTEMPT_REUSED
	var nonce resource.Nonce
	p.random.Read(nonce[:])
	return resource.NewTxID(unit, p.epoch, p.counter, nonce)
}

// NextArrival draws the place of a unit that arrives now, and Behind is a place behind all others.
func (p *Post) NextArrival() record.Sequence {
	p.counter++
	return record.Sequence{Epoch: p.epoch, Counter: p.counter}
}

func (p *Post) Behind() record.Sequence {
	return record.Sequence{Epoch: p.epoch, Counter: p.counter + 1}
}

// UID draws the identity of an object that the leader makes.
func (p *Post) UID(prefix string) string {
	var b [16]byte
	p.random.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Check verifies the invariant between two inputs, and the order of the alarms.
func (p *Post) Check() error {
	for t := range p.writes {
		if _, twice := p.reads[t]; twice || t > p.lastToken {
			return fmt.Errorf("token %d of a write: the last is %d, also of a read %t", t, p.lastToken, twice)
		}
	}
	for t := range p.nodeReads {
		if p.writes[t] != nil || p.reads[t] != nil || t > p.lastToken {
			return fmt.Errorf("token %d asks for a node and for something else, or was never drawn", t)
		}
	}
	for i, a := range p.alarms.heap {
		if a.place != i || i > 0 && p.alarms.heap.Less(i, (i-1)/2) {
			return fmt.Errorf("alarm %d at place %d says %d, or stands before an earlier alarm", a.number, i, a.place)
		}
	}
	if p.open || p.effects != nil || p.acting != nil {
		return fmt.Errorf("%d effects, or an author, are left of the last input", len(p.effects))
	}
	return nil
}
