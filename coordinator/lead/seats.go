package lead

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file writes on which nodes of quota trees the live units are counted, so that
// every coordinator shows the use of trees from keys alone (ADR 46). The record of a
// commit has the nodes of that moment. A unit that arrivals push up, or that departures
// let slide down, moves later: the moves of some milliseconds share a Txn.

// The writes of moves: at most one Txn at a time, one every seatsEvery, with at most
// seatsAtOnce keys.
const (
	seatsEvery  = 20 * time.Millisecond
	seatsAtOnce = 60
)

// seatNews are the moves that the store is still to know.
type seatNews struct {
	// moved are the units, by path and in the order of their moves, whose nodes may be
	// others than the store says; noted are the same.
	moved []string
	noted map[string]bool
	// ended are transactions that have ended and have a key still, or may have.
	ended   map[resource.TxID]bool
	writing bool
	next    time.Time // no Txn before
}

// note has a unit's nodes compared with the store's.
func (s *seatNews) note(path string) {
	if s.noted[path] {
		return
	}
	if s.noted == nil {
		s.noted = map[string]bool{}
	}
	s.noted[path] = true
	s.moved = append(s.moved, path)
}

// noteEnded has a key deleted.
func (s *seatNews) noteEnded(tx resource.TxID) {
	if s.ended == nil {
		s.ended = map[resource.TxID]bool{}
	}
	s.ended[tx] = true
}

// writeSeats writes the moves since the last call, after each input: those that come
// too soon wait for a later input, of which there is one each second.
func (l *Leader) writeSeats() {
	news := &l.seats
	for _, path := range l.quotas.Trees().TakeMoved() {
		news.note(path)
	}
	if !news.writing && len(news.moved)+len(news.ended) > 0 && !l.post.Now().Before(news.next) {
		l.submitSeats(l.takeSeats())
	}
}

// seatWrite is the key of one transaction: its nodes, or nil where the key goes.
type seatWrite struct {
	tx    resource.TxID
	unit  string
	nodes map[string]string
}

// takeSeats takes the writes of one Txn.
func (l *Leader) takeSeats() []seatWrite {
	news := &l.seats
	most := min(seatsAtOnce, l.post.MaxOps())
	var writes []seatWrite
	for _, tx := range slices.Sorted(maps.Keys(news.ended)) {
		if len(writes) == most {
			break
		}
		writes = append(writes, seatWrite{tx: tx})
		delete(news.ended, tx)
	}
	for len(news.moved) > 0 && len(writes) < most {
		path := news.moved[0]
		news.moved = news.moved[1:]
		delete(news.noted, path)
		u := l.work.Units[path]
		if u == nil || u.Attempt == nil || u.Attempt.Committed == 0 { // the commit writes the nodes
			continue
		}
		if nodes := l.quotas.MovedSeats(path, u.Attempt.Charges, u.Attempt.Seats); nodes != nil {
			writes = append(writes, seatWrite{u.Attempt.Machine.ID(), path, nodes})
		}
	}
	return writes
}

// submitSeats writes keys. A key whose transaction ends meanwhile is deleted after that.
func (l *Leader) submitSeats(writes []seatWrite) {
	if len(writes) == 0 {
		return
	}
	news := &l.seats
	news.writing = true
	var d post.Decision
	for _, w := range writes {
		if key := record.SeatsKey(w.tx); w.nodes == nil {
			d.Ops = append(d.Ops, record.Delete(key))
		} else {
			d.Ops = append(d.Ops, record.Put(key, record.MustEncode(record.Seats{Nodes: w.nodes})))
		}
	}
	d.Done = func(o txn.Outcome, _ resource.Revision, _ error) {
		news.writing, news.next = false, l.post.Now().Add(seatsEvery)
		if o != txn.Landed {
			news.next = l.post.Now().Add(time.Second)
		}
		for _, w := range writes {
			l.seatWritten(w, o == txn.Landed)
		}
	}
	first := d.Ops[0]
	l.post.Settle(d, first.Key, func(value []byte, found bool) bool {
		return found != first.Delete && bytes.Equal(value, first.Value)
	})
}

// seatWritten takes over the answer about a key.
func (l *Leader) seatWritten(w seatWrite, landed bool) {
	a := l.work.Attempts[w.tx]
	switch {
	case w.nodes == nil && landed:
	case a == nil: // it ended meanwhile, or its key is to go still
		l.seats.noteEnded(w.tx)
	case landed:
		a.SetSeats(w.nodes)
	default:
		l.seats.note(w.unit)
	}
}

// noteSeats has the nodes of a unit compared that has committed: others may have moved
// the unit since its commit was sent.
func (l *Leader) noteSeats(a *work.Attempt) {
	if len(a.Charges) > 1 {
		l.seats.note(a.Unit.Path)
	}
}

// endSeats has the key of an attempt deleted that ends.
func (l *Leader) endSeats(a *work.Attempt) {
	if a.Seats != nil {
		l.seats.noteEnded(a.Machine.ID())
	}
}

// loadSeats takes over the keys of earlier leaders. A key beside no live transaction goes.
func (l *Leader) loadSeats() {
	loaded := l.quotas.TakeSeats()
	for _, tx := range slices.Sorted(maps.Keys(loaded)) {
		if a := l.work.Attempts[tx]; a != nil {
			a.SetSeats(loaded[tx])
		} else {
			l.seats.noteEnded(tx)
		}
	}
}
