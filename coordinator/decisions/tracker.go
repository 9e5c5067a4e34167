package decisions

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// Tracker turns what one leader does in one term into records. One goroutine
// owns it; what it gives away is not changed any more. A nil Tracker records
// nothing.
//
// Invariant: a pending Skip is of the neighbours run.first to run.last, which
// are run.count.
type Tracker struct {
	epoch      resource.Epoch
	append     func(Record) bool
	seq        uint64
	generation uint64
	order      order
	inFlight   map[resource.TxID]InFlight
	run        struct {
		evidence    *Evidence // nil: no Skip is pending
		first, last *unit
		count       int
	}
}

// NewTracker begins the account of a term with those who wait, in order. The
// function given takes each record, must not block, and returns whether it
// wants the State next, because it has lost records or begins a file.
func NewTracker(epoch resource.Epoch, generation uint64, waiting []queue.Key, take func(Record) (again bool)) *Tracker {
	t := &Tracker{epoch: epoch, generation: generation, append: take, inFlight: map[resource.TxID]InFlight{}}
	t.order = newOrder(waiting)
	t.state(true)
	return t
}

// emit gives a record away, with the number that comes next.
func (t *Tracker) emit(r Record) {
	t.seq++
	r.Seq = t.seq
	if t.append(r) {
		t.state(false)
	}
}

// state gives the whole state away. It does not follow an invitation to do so
// once more.
func (t *Tracker) state(begins bool) {
	s := &State{Epoch: t.epoch, Begins: begins, Generation: t.generation}
	s.Waiting, s.Evidence = t.order.state()
	s.InFlight = inOrder(t.inFlight)
	t.seq++
	t.append(Record{Seq: t.seq, State: s})
}

// inOrder lists placements by transaction.
func inOrder(inFlight map[resource.TxID]InFlight) []InFlight {
	return slices.SortedFunc(maps.Values(inFlight), func(a, b InFlight) int { return cmp.Compare(a.Tx, b.Tx) })
}

// Arrived puts a unit into the order; one that is there already stays as it is.
func (t *Tracker) Arrived(k queue.Key) {
	if t == nil {
		return
	}
	if t.order.find(k) == nil {
		t.Flush()
		t.order.insert(k)
		t.emit(Record{Wait: &Wait{k.Path, orderOf(k)}})
	}
}

// Freed notes that the view has changed so that what failed may succeed now.
func (t *Tracker) Freed(generation uint64) {
	if t != nil {
		t.generation = generation
	}
}

// Skipped notes that a unit was tried in vain, or cannot be tried. The detail
// is asked for only where it is new.
func (t *Tracker) Skipped(k queue.Key, e Evidence, detail func() string) {
	if t == nil {
		return
	}
	u := t.order.find(k)
	if u == nil {
		t.Arrived(k)
		u = t.order.find(k)
	}
	if e.Why.ofGeneration() {
		e.Generation = t.generation
	}
	if known := u.Value().evidence; known != nil && known.same(&e) {
		if e.Generation > 0 {
			t.order.tryAgain(u, e.Generation)
		}
		return
	}
	if r := &t.run; r.evidence != nil && u == r.last.Next() && r.evidence.same(&e) && r.evidence.Generation == e.Generation {
		r.last = u
		r.count++
		t.order.explain(u, r.evidence, e.Generation)
		return
	}
	t.Flush()
	if detail != nil {
		e.Detail = detail()
	}
	kept := e // a copy, so that evidence that is known already stays off the heap
	t.order.explain(u, &kept, e.Generation)
	t.run.evidence, t.run.first, t.run.last, t.run.count = &kept, u, u, 1
}

// Restored notes that the store was restored from a backup.
func (t *Tracker) Restored(r Restored) {
	if t == nil {
		return
	}
	t.Flush()
	r.Epoch = t.epoch
	t.emit(Record{Restored: &r})
}

// Flush gives away what was kept back to be told for several units at once.
func (t *Tracker) Flush() {
	if t == nil || t.run.evidence == nil {
		return
	}
	r := t.run
	t.run.evidence = nil
	skip := &Skip{First: r.first.Key().Path, Evidence: *r.evidence}
	if r.count > 1 {
		skip.Last, skip.Count = r.last.Key().Path, r.count
	}
	t.emit(Record{Skip: skip})
}

// Left takes a unit out of the order that was not placed; one that is not there
// changes nothing.
func (t *Tracker) Left(k queue.Key) {
	if t == nil {
		return
	}
	if u := t.order.find(k); u != nil {
		t.Flush()
		t.order.remove(u)
		t.emit(Record{Leave: &Leave{k.Path}})
	}
}

// Placement is what Placed is told.
type Placement struct {
	Key     queue.Key
	Tx      resource.TxID
	Kind    Kind
	Victims []Victim
	Devices []Devices
	Adopted bool // goes on with what an earlier leader began
}

// Placed takes a unit out of the order: its transaction begins.
func (t *Tracker) Placed(p Placement) {
	if t == nil {
		return
	}
	t.Arrived(p.Key)
	t.Flush()
	u := t.order.find(p.Key)
	place := &Place{
		Unit: p.Key.Path, Tx: p.Tx, Kind: p.Kind, Position: u.Position() + 1, Generation: t.generation, Victims: p.Victims, Devices: p.Devices, Adopted: p.Adopted,
	}
	place.Ahead, place.Fresh, place.Stale = t.order.ahead(u, t.generation)
	t.order.remove(u)
	t.inFlight[p.Tx] = InFlight{p.Tx, p.Key.Path, orderOf(p.Key), p.Kind, p.Devices}
	t.emit(Record{Place: place})
}

// Committed notes that a placement is durable. One that is not in flight was
// taken over from an earlier term, whose account has it.
func (t *Tracker) Committed(tx resource.TxID, revision resource.Revision) {
	if t == nil {
		return
	}
	if f, known := t.inFlight[tx]; known {
		t.Flush()
		delete(t.inFlight, tx)
		t.emit(Record{Commit: &Commit{tx, f.Unit, revision}})
	}
}

// Aborted notes that a placement came to nothing. It is called before what it
// held counts as freed, and before its unit waits again.
func (t *Tracker) Aborted(tx resource.TxID) {
	if t == nil {
		return
	}
	if _, known := t.inFlight[tx]; known {
		t.Flush()
		delete(t.inFlight, tx)
		t.emit(Record{Abort: &Abort{tx, t.generation}})
	}
}

// Ended notes that a unit's transaction has ended after its commit. It is
// called before what it held counts as freed, and before its unit waits again.
func (t *Tracker) Ended(tx resource.TxID, unit, reason string) {
	if t == nil {
		return
	}
	t.Flush()
	t.emit(Record{End: &End{tx, unit, reason, t.generation}})
}
