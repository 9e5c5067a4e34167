package batch

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// Config is what a Batcher needs to know of its term.
type Config struct {
	// Held compares the leader's key.
	Held record.Compare
	// MaxOps is the most compares, and the most operations, of a Txn.
	MaxOps int
	// FirstReread is the wait after a first read of the leader's key that had no
	// answer. Each further wait is twice as long, up to LastReread, which is also
	// the pause after the store was full.
	FirstReread, LastReread time.Duration
}

// Batcher holds the writes of one term from Submit until they are answered.
// Every write is answered once. A method that is called with an ID that waits
// for nothing, e.g. for the second time, changes nothing. Not for use by
// several goroutines at once.
type Batcher struct {
	config  Config
	waiting []Write // in the order of their submission
	flights [InFlight]flight
	last    ID                      // the latest ID in use
	paused  map[ID]refusal          // what is answered once a pause is over
	seen    map[record.Compare]bool // scratch of join
	written map[string]bool         // scratch of take
	// compared are the keys that the writes compare; scratch of take.
	compared map[string]bool
	over     error // why the term has ended; nil while it goes on
}

// flight is a batch of writes on its way. A flight without writes is free.
type flight struct {
	writes []Write // not answered yet
	// alone: the batch was taken apart, and its writes are sent one by one.
	alone bool
	// id is that of the Txn that waits for its answer, or had it.
	id ID
	// reading: the Txn failed, and the leader's key is read.
	reading bool
	// revision is that of the failed Txn's answer.
	revision resource.Revision
	// wait is the time before the next read, if this one has no answer.
	wait time.Duration
}

// refusal is the answer to writes after a pause.
type refusal struct {
	writes []Write
	err    error
}

// New returns a Batcher without writes.
func New(c Config) *Batcher {
	return &Batcher{config: c, paused: map[ID]refusal{}, seen: map[record.Compare]bool{}, written: map[string]bool{}, compared: map[string]bool{}}
}

// Submit queues a write; Next sends it. After GiveUp the write is answered at
// once. The slices of w must not change until then.
func (b *Batcher) Submit(w Write, out []Effect) []Effect {
	if b.over != nil {
		return answer([]Write{w}, txn.Unknown, 0, b.over, out)
	}
	b.waiting = append(b.waiting, w)
	return out
}

// Next sends what waits, as far as flights are free. The owner calls it when the
// effects of earlier calls are carried out, so that writes which those lead to
// share the Txn.
func (b *Batcher) Next(out []Effect) []Effect {
	for i := range b.flights {
		f := &b.flights[i]
		if len(b.waiting) == 0 {
			return out
		}
		if len(f.writes) == 0 {
			*f = flight{writes: b.take()}
			out = b.send(f, out)
		}
	}
	return out
}

// take removes the longest prefix of the waiting writes that one Txn holds: it
// writes no key twice. A first write that is too large is a prefix by itself: the
// store refuses it.
func (b *Batcher) take() []Write {
	clear(b.written)
	clear(b.compared)
	compares, ops := 1, 0
	for i, w := range b.waiting {
		compares += len(w.Compares)
		ops += len(w.Ops)
		if shares := b.addWritten(w); i > 0 && (shares || max(compares, ops) > b.config.MaxOps || w.AnyEpoch || b.waiting[0].AnyEpoch) {
			taken := b.waiting[:i:i]
			b.waiting = b.waiting[i:]
			return taken
		}
	}
	taken := b.waiting
	b.waiting = nil
	return taken
}

// addWritten notes the keys of a write for take, and reports whether the write writes a
// key that one before it writes or compares, or compares a key that one before it writes.
func (b *Batcher) addWritten(w Write) (shares bool) {
	for i := range w.Ops {
		shares = shares || b.written[w.Ops[i].Key] || b.compared[w.Ops[i].Key]
	}
	for i := range w.Compares {
		shares = shares || b.written[w.Compares[i].Key]
	}
	for i := range w.Ops {
		b.written[w.Ops[i].Key] = true
	}
	for i := range w.Compares {
		b.compared[w.Compares[i].Key] = true
	}
	return shares
}

// current returns the writes of the Txn that is under way.
func (f *flight) current() []Write {
	if f.alone {
		return f.writes[:1]
	}
	return f.writes
}

// send sends the flight's current writes.
func (b *Batcher) send(f *flight, out []Effect) []Effect {
	b.last++
	f.id, f.reading = b.last, false
	return append(out, Effect{Kind: Send, ID: f.id, Txn: b.join(f.current())})
}

// sendRest goes on after the current writes were answered.
func (b *Batcher) sendRest(f *flight, out []Effect) []Effect {
	f.writes = f.writes[len(f.current()):]
	if len(f.writes) == 0 {
		*f = flight{}
		return out
	}
	return b.send(f, out)
}

// find returns the flight that waits for an answer to the ID, nil if none does.
func (b *Batcher) find(id ID, reading bool) *flight {
	for i := range b.flights {
		if f := &b.flights[i]; len(f.writes) > 0 && f.id == id && f.reading == reading {
			return f
		}
	}
	return nil
}

// Answered takes the store's answer to a Txn.
func (b *Batcher) Answered(id ID, a StoreAnswer, out []Effect) []Effect {
	f := b.find(id, false)
	if f == nil {
		return out
	}
	writes := f.current()
	result := a.Result
	if b.over != nil && (result == Refused || result == Full) {
		result = Lost // the end of the term may be the cause
	}
	switch {
	case result == Landed:
		out = answer(writes, txn.Landed, a.Revision, nil, out)
	case result == Lost:
		out = answer(writes, txn.Unknown, 0, a.Err, out)
	case len(writes) > 1: // one write's fault must not be the others'
		f.alone = true
		return b.send(f, out)
	case result == Refused, result == Full && writes[0].Once:
		out = answer(writes, txn.Conflict, 0, a.Err, out)
	case result == Full:
		// The owner's response is another write, which meets the same store.
		b.paused[id] = refusal{writes, a.Err}
		out = append(out, Effect{Kind: Pause, ID: id, After: b.config.LastReread})
	case writes[0].AnyEpoch:
		out = answer(writes, txn.Conflict, a.Revision, nil, out)
	default:
		f.reading, f.revision, f.wait = true, a.Revision, b.config.FirstReread
		return append(out, Effect{Kind: ReadKey, ID: id})
	}
	return b.sendRest(f, out)
}

// KeyRead takes the answer to a read of the leader's key, which follows a
// compare that failed. If the key has changed the term is over, and err says
// so: the next leader decides what is read and tried again, and a client that
// was refused may have asked that leader already.
func (b *Batcher) KeyRead(id ID, key Key, err error, out []Effect) []Effect {
	f := b.find(id, true)
	if f == nil {
		return out
	}
	switch {
	case key == Held:
		out = answer(f.current(), txn.Conflict, f.revision, nil, out)
	case key == Changed:
		out = append(out, Effect{Kind: Depose, Err: err})
		out = answer(f.current(), txn.Unknown, f.revision, err, out) // model: mutant DEPOSED_REFUSES
	case b.over != nil:
		out = answer(f.current(), txn.Unknown, f.revision, b.over, out)
	default:
		out = append(out, Effect{Kind: ReadKey, ID: id, After: f.wait})
		f.wait = min(2*f.wait, b.config.LastReread)
		return out
	}
	return b.sendRest(f, out)
}

// PauseOver answers the write that the store had no space for.
func (b *Batcher) PauseOver(id ID, out []Effect) []Effect {
	p := b.paused[id]
	delete(b.paused, id)
	return answer(p.writes, txn.Conflict, 0, p.err, out)
}

// GiveUp ends the term. What waits was never sent, but a later term may find
// out: it is answered Unknown. What is under way waits for its answers, which
// the owner hands in as they come; errors are no longer definite.
func (b *Batcher) GiveUp(err error, out []Effect) []Effect {
	rest := b.waiting
	b.waiting, b.over = nil, err
	return answer(rest, txn.Unknown, 0, err, out)
}

func answer(writes []Write, o txn.Outcome, rev resource.Revision, err error, out []Effect) []Effect {
	for _, w := range writes {
		out = append(out, Effect{Kind: Answer, Token: w.Token, Outcome: o, Revision: rev, Err: err})
	}
	return out
}

// join makes one Txn of writes; equal compares are sent once.
func (b *Batcher) join(writes []Write) record.Txn {
	compares, ops := 1, 0
	for _, w := range writes {
		compares += len(w.Compares)
		ops += len(w.Ops)
	}
	t := record.Txn{If: make([]record.Compare, 0, compares)}
	if !writes[0].AnyEpoch { // model: mutants NO_EPOCH_COMPARE, SWAP_WITHOUT_EPOCH, CREATE_WITHOUT_EPOCH, COLLECT_WITHOUT_EPOCH, LIMIT_WITHOUT_EPOCH
		t.If = append(t.If, b.config.Held)
	}
	if len(writes) == 1 {
		t.If = append(t.If, writes[0].Compares...)
		t.Then = writes[0].Ops
		return t
	}
	clear(b.seen)
	t.Then = make([]record.Op, 0, ops)
	for _, w := range writes {
		for _, compare := range w.Compares {
			if !b.seen[compare] {
				b.seen[compare] = true
				t.If = append(t.If, compare)
			}
		}
		t.Then = append(t.Then, w.Ops...)
	}
	return t
}
