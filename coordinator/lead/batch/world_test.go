package batch_test

import (
	"errors"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

var (
	errLost    = errors.New("the answer was lost")
	errRefused = errors.New("refused")
	errFull    = errors.New("full")
	errDeposed = errors.New("deposed")
	errOver    = errors.New("the term is over")
)

const leaderKey = "leader"

// fakeStore is a linearizable store: revisions of keys, and the write that made
// them.
type fakeStore struct {
	rev  resource.Revision
	keys map[string]version
}

type version struct {
	created, modified resource.Revision
	by                string
}

func (s *fakeStore) holds(c record.Compare) bool {
	v := s.keys[c.Key]
	if c.Target == record.CompareCreateRev {
		return v.created == c.Rev
	}
	return v.modified == c.Rev
}

func (s *fakeStore) holdAll(compares []record.Compare) bool {
	return !slices.ContainsFunc(compares, func(c record.Compare) bool { return !s.holds(c) })
}

// write does operations in the next revision.
func (s *fakeStore) write(ops []record.Op) {
	s.rev++
	for _, o := range ops {
		if o.Delete {
			delete(s.keys, o.Key)
			continue
		}
		v := s.keys[o.Key]
		if v.created == 0 {
			v.created = s.rev
		}
		v.modified, v.by = s.rev, string(o.Value)
		s.keys[o.Key] = v
	}
}

// submitted is a write and what became of it.
type submitted struct {
	batch.Write
	name string // the value of its puts
	// landed is the revision at which the store has it, 0 if it does not.
	landed resource.Revision
	// failed: alone in a Txn, its own compares did not hold.
	failed bool
	// deposed: alone in a Txn, the leader's key was not held.
	deposed bool
	// excuse: a Txn of it has lost its answer, or the term is over.
	excuse bool
	// doubted: an error came after the end of the term.
	doubted  bool
	answered *batch.Effect
}

// sent is a Txn that waits for its answer.
type sent struct {
	effect batch.Effect
	writes []*submitted
}

// world is the owner of a Batcher, over a store whose answers may be lost.
type world struct {
	t     *rapid.T
	b     *batch.Batcher
	store fakeStore
	held  record.Compare
	max   int

	writes []*submitted // token i+1 is writes[i]
	queue  []*submitted // not sent yet, in their order
	txns   []sent
	// late are Txns without an answer that the store may do yet.
	late   []sent
	reads  map[batch.ID]*submitted
	pauses []batch.ID
	old    []func() // inputs of before, to be doubled
	over   bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, store: fakeStore{keys: map[string]version{}}, max: rapid.IntRange(3, 9).Draw(t, "max"), reads: map[batch.ID]*submitted{}}
	w.store.write([]record.Op{record.Put(leaderKey, nil)})
	w.held = record.CreateRevIs(leaderKey, w.store.rev)
	w.b = batch.New(batch.Config{Held: w.held, MaxOps: w.max, FirstReread: 1, LastReread: 4})
	return w
}

// busy are the keys that writes under way, or without a definite outcome, write.
func (w *world) busy() map[string]bool {
	keys := map[string]bool{}
	for _, s := range w.writes {
		if s.answered == nil || s.answered.Outcome == txn.Unknown {
			for _, o := range s.Ops {
				keys[o.Key] = true
			}
		}
	}
	return keys
}

// submit submits a write of keys that nobody else writes; its compares are of
// these keys and of keys that others read too, and need not hold.
func (w *world) submit() {
	keys := slices.DeleteFunc([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}, func(k string) bool { return w.busy()[k] })
	if len(keys) == 0 {
		return
	}
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 4, 10}).Draw(w.t, "ops") // 10: larger than any Txn
	s := &submitted{name: "w" + string(rune('0'+len(w.writes)))}
	for _, key := range keys[:min(n, len(keys))] {
		s.Ops = append(s.Ops, record.Put(key, []byte(s.name)))
		s.Compares = append(s.Compares, w.compare(key))
	}
	if rapid.Bool().Draw(w.t, "shared") {
		s.Compares = append(s.Compares, w.compare(rapid.SampledFrom([]string{"x", "y"}).Draw(w.t, "key")))
	}
	s.AnyEpoch = rapid.IntRange(0, 5).Draw(w.t, "any epoch") == 0
	w.writes = append(w.writes, s)
	s.Token = uint64(len(w.writes))
	s.excuse = w.over
	if !w.over {
		w.queue = append(w.queue, s)
	}
	w.take(w.b.Submit(s.Write, nil))
}

func (w *world) compare(key string) record.Compare {
	rev := w.store.keys[key].modified
	if rapid.IntRange(0, 7).Draw(w.t, "stale") == 0 {
		rev++
	}
	return record.ModRevIs(key, rev)
}

// take carries effects out.
func (w *world) take(effects []batch.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case batch.Send:
			w.sendTxn(e)
		case batch.ReadKey:
			if w.reads[e.ID] == nil {
				w.t.Fatalf("effect %+v: no compare has failed", e)
			}
		case batch.Pause:
			w.pauses = append(w.pauses, e.ID)
		case batch.Answer:
			w.answer(e)
		case batch.Depose:
			if w.holdsKey() {
				w.t.Fatal("deposed while the key is held")
			}
		}
	}
}

func (w *world) holdsKey() bool { return w.store.holds(w.held) }

// sendTxn looks which writes a Txn is of, by the values it puts, and checks it.
func (w *world) sendTxn(e batch.Effect) {
	s := sent{effect: e}
	var ops []record.Op
	var compares []record.Compare
	for _, o := range e.Txn.Then {
		i := slices.IndexFunc(w.writes, func(x *submitted) bool { return x.name == string(o.Value) })
		if x := w.writes[i]; !slices.Contains(s.writes, x) {
			s.writes = append(s.writes, x)
			ops, compares = append(ops, x.Ops...), append(compares, x.Compares...)
			if x.answered != nil {
				w.t.Fatalf("%s is sent after its answer %+v", x.name, *x.answered)
			}
		}
	}
	if !slices.EqualFunc(ops, e.Txn.Then, func(a, b record.Op) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) }) {
		w.t.Fatalf("a Txn has other operations than its %d writes: %v", len(s.writes), e.Txn.Then)
	}
	if len(s.writes) > 1 && e.Txn.Ops() > w.max {
		w.t.Fatalf("a Txn of %d writes has %d operations, the store takes %d", len(s.writes), e.Txn.Ops(), w.max)
	}
	if len(w.queue) > 0 && s.writes[0] == w.queue[0] {
		if n := w.prefix(); !slices.Equal(s.writes, w.queue[:n]) {
			w.t.Fatalf("%d writes share a Txn, want the first %d of %d", len(s.writes), n, len(w.queue))
		}
		w.queue = w.queue[len(s.writes):]
	} else if len(s.writes) > 1 || slices.Contains(w.queue, s.writes[0]) {
		w.t.Fatalf("%s is sent again in a Txn of %d writes, or before its turn", s.writes[0].name, len(s.writes))
	}
	anyEpoch := slices.ContainsFunc(s.writes, func(x *submitted) bool { return x.AnyEpoch })
	if anyEpoch && len(s.writes) > 1 || anyEpoch == slices.Contains(e.Txn.If, w.held) {
		w.t.Fatalf("a Txn of %d writes, of any epoch %t, compares %v", len(s.writes), anyEpoch, e.Txn.If)
	}
	want, got := map[record.Compare]bool{}, map[record.Compare]bool{}
	for _, c := range compares {
		want[c] = true
	}
	for _, c := range e.Txn.If {
		if len(s.writes) > 1 && got[c] {
			w.t.Fatalf("%v is compared twice", c)
		}
		got[c] = true
	}
	if delete(got, w.held); !maps.Equal(want, got) {
		w.t.Fatalf("a Txn compares %v, its writes %v", got, want)
	}
	w.txns = append(w.txns, s)
	if len(w.txns)+len(w.reads) > batch.InFlight {
		w.t.Fatalf("%d Txns and %d reads are under way", len(w.txns), len(w.reads))
	}
}

// prefix is how many of the writes that were not sent yet fit one Txn.
func (w *world) prefix() int {
	compares, ops := 1, 0
	for n, x := range w.queue {
		compares, ops = compares+len(x.Compares), ops+len(x.Ops)
		if n > 0 && (compares > w.max || ops > w.max || x.AnyEpoch || w.queue[0].AnyEpoch) {
			return n
		}
	}
	return len(w.queue)
}

// next has the Batcher send what it may.
func (w *world) next() {
	w.take(w.b.Next(nil))
	if len(w.queue) > 0 && len(w.txns)+len(w.reads) < batch.InFlight {
		w.t.Fatalf("%d writes wait, with %d Txns and %d reads under way", len(w.queue), len(w.txns), len(w.reads))
	}
}

// do is the moment at which the store does a Txn, or does not. The oracle does
// the writes one by one: all of a Txn that succeeds must land so as well.
func (w *world) do(s sent) bool {
	if !w.store.holdAll(s.effect.Txn.If) {
		return false
	}
	oneByOne := fakeStore{rev: w.store.rev, keys: maps.Clone(w.store.keys)}
	for _, x := range s.writes {
		if !x.AnyEpoch && !oneByOne.holds(w.held) || !oneByOne.holdAll(x.Compares) {
			w.t.Fatalf("%s has landed in a Txn, and alone it would not", x.name)
		}
		oneByOne.write(x.Ops)
	}
	w.store.write(s.effect.Txn.Then)
	for key, v := range oneByOne.keys {
		if w.store.keys[key].by != v.by {
			w.t.Fatalf("key %s is %s's, one by one it is %s's", key, w.store.keys[key].by, v.by)
		}
	}
	for _, x := range s.writes {
		if x.landed != 0 || x.answered != nil && x.answered.Outcome != txn.Unknown {
			w.t.Fatalf("%s lands at %d, after %d and the answer %+v", x.name, w.store.rev, x.landed, x.answered)
		}
		x.landed = w.store.rev
	}
	return true
}

// hear answers a Txn.
func (w *world) hear(s sent, a batch.StoreAnswer) {
	for _, x := range s.writes {
		x.excuse = x.excuse || a.Result == batch.Lost
		x.doubted = x.doubted || w.over && a.Err != nil
	}
	if len(s.writes) == 1 && a.Result == batch.CompareFailed && !s.writes[0].AnyEpoch {
		w.reads[s.effect.ID] = s.writes[0]
	}
	w.feed(func() []batch.Effect { return w.b.Answered(s.effect.ID, a, nil) })
}

// feed hands an input in, twice now and perhaps again later.
func (w *world) feed(input func() []batch.Effect) {
	w.take(input())
	again := func() {
		if out := input(); len(out) > 0 {
			w.t.Fatalf("an input that came twice has effects: %+v", out)
		}
	}
	again()
	w.old = append(w.old, again)
}

// answer checks an answer against what the store has done.
func (w *world) answer(e batch.Effect) {
	x := w.writes[e.Token-1]
	if x.answered != nil {
		w.t.Fatalf("%s is answered %+v, and was %+v", x.name, e, *x.answered)
	}
	x.answered = &e
	switch e.Outcome {
	case txn.Landed:
		if x.landed == 0 || x.landed != e.Revision || e.Err != nil {
			w.t.Fatalf("%s is answered %+v and is in the store at %d", x.name, e, x.landed)
		}
	case txn.Conflict:
		switch {
		case x.landed != 0:
			w.t.Fatalf("%s is answered Conflict, and is in the store at %d", x.name, x.landed)
		case x.deposed, x.doubted:
			w.t.Fatalf("%s is answered Conflict; the leader's key was lost: %t, the term was over: %t", x.name, x.deposed, x.doubted)
		case e.Err == nil && !x.failed:
			w.t.Fatalf("%s is answered Conflict; its own compares did not fail", x.name)
		}
	case txn.Unknown:
		if !x.excuse && !errors.Is(e.Err, errDeposed) {
			w.t.Fatalf("%s is answered %+v without a cause", x.name, e)
		}
	}
}
