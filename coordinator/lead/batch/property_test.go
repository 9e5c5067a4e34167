package batch_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/record"
)

// take removes a random element.
func take[T any](t *rapid.T, from *[]T) T {
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	v := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return v
}

// TestSharedWritesEndAsThoughEachWasSentAlone runs a Batcher over a store that
// refuses, forgets to answer, and does Txns late, while others write and the
// leader's key is lost. The world checks every Txn and every answer.
func TestSharedWritesEndAsThoughEachWasSentAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			w.disturb()
		}
		w.settle()
		for _, x := range w.writes {
			if x.answered == nil {
				t.Fatalf("%s has no answer", x.name)
			}
		}
	})
}

// disturb lets one thing happen.
func (w *world) disturb() {
	switch rapid.IntRange(0, 19).Draw(w.t, "event") {
	case 0, 1, 2, 3, 4:
		w.submit()
	case 5, 6, 7:
		w.next()
	case 8, 9, 10, 11, 12:
		if len(w.txns) > 0 {
			w.serve(take(w.t, &w.txns))
		}
	case 13, 14:
		w.readKey(rapid.Bool().Draw(w.t, "no answer"))
	case 15:
		w.resume()
	case 16:
		if len(w.late) > 0 {
			w.do(take(w.t, &w.late))
		}
	case 17: // somebody else writes what many compare
		w.store.write([]record.Op{record.Put(rapid.SampledFrom([]string{"x", "y"}).Draw(w.t, "key"), nil)})
	case 18:
		if len(w.old) > 0 {
			rapid.SampledFrom(w.old).Draw(w.t, "doubled")()
		}
	case 19:
		switch rapid.IntRange(0, 9).Draw(w.t, "end") {
		case 0:
			w.store.write([]record.Op{record.Delete(leaderKey)})
		case 1:
			w.giveUp()
		}
	}
}

// serve lets the store answer a Txn, or not.
func (w *world) serve(s sent) {
	fault := rapid.IntRange(0, 9).Draw(w.t, "fault")
	switch {
	case s.effect.Txn.Ops() > w.max:
		w.hear(s, batch.StoreAnswer{Result: batch.Refused, Err: errRefused})
	case fault == 0:
		w.hear(s, batch.StoreAnswer{Result: batch.Refused, Err: errRefused})
	case fault == 1:
		w.hear(s, batch.StoreAnswer{Result: batch.Full, Err: errFull})
		if x := s.writes[0]; !w.over && x.answered != nil {
			w.t.Fatalf("%s is answered %+v at once by a full store", x.name, *x.answered)
		}
	case fault == 2: // on its way
		w.late = append(w.late, s)
		w.hear(s, batch.StoreAnswer{Result: batch.Lost, Err: errLost})
	case fault == 3:
		w.do(s)
		w.hear(s, batch.StoreAnswer{Result: batch.Lost, Err: errLost})
	default:
		w.commit(s)
	}
}

// commit does a Txn and answers it.
func (w *world) commit(s sent) {
	if x := s.writes[0]; len(s.writes) == 1 {
		x.failed = !w.store.holdAll(x.Compares)
	}
	if w.do(s) {
		w.hear(s, batch.StoreAnswer{Result: batch.Landed, Revision: w.store.rev})
		return
	}
	if x := s.writes[0]; len(s.writes) == 1 && !x.failed && (x.AnyEpoch || w.holdsKey()) {
		w.t.Fatalf("%s is alone, its compares hold, and its Txn %v failed", x.name, s.effect.Txn.If)
	}
	w.hear(s, batch.StoreAnswer{Result: batch.CompareFailed, Revision: w.store.rev})
}

// readKey answers a read of the leader's key.
func (w *world) readKey(unread bool) {
	for _, x := range w.writes { // not in the map's order
		for id, of := range w.reads {
			if of != x {
				continue
			}
			key, why := batch.Held, error(nil)
			switch {
			case unread:
				key = batch.Unread
				x.excuse = x.excuse || w.over
			case !w.holdsKey():
				key, why, x.deposed = batch.Changed, errDeposed, true
			}
			if !unread || w.over {
				delete(w.reads, id)
				w.feed(func() []batch.Effect { return w.b.KeyRead(id, key, why, nil) })
				return
			}
			w.take(w.b.KeyRead(id, key, nil, nil)) // it may be repeated: it is read again
			return
		}
	}
}

// resume ends a pause.
func (w *world) resume() {
	if len(w.pauses) > 0 {
		id := take(w.t, &w.pauses)
		w.feed(func() []batch.Effect { return w.b.PauseOver(id, nil) })
	}
}

func (w *world) giveUp() {
	w.over, w.queue = true, nil
	for _, x := range w.writes {
		x.excuse = true
	}
	w.take(w.b.GiveUp(errOver, nil))
}

// settle ends the faults: the store answers everything.
func (w *world) settle() {
	for range 1000 {
		w.next()
		switch {
		case len(w.txns) > 0:
			s := w.txns[0]
			w.txns = w.txns[1:]
			if s.effect.Txn.Ops() > w.max {
				w.hear(s, batch.StoreAnswer{Result: batch.Refused, Err: errRefused})
			} else {
				w.commit(s)
			}
		case len(w.reads) > 0:
			w.readKey(false)
		case len(w.pauses) > 0:
			w.resume()
		default:
			return
		}
	}
	w.t.Fatal("no end in sight")
}
