package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// write is a Txn on its way to the store, or one that may still arrive.
type write struct {
	what     string
	epoch    resource.Epoch // of the leader that sent it, 0: nobody's
	compares []record.Compare
	ops      []record.Op
	done     func(txn.Outcome, resource.Revision)
	refused  func() // the store answers with a definite error; nil: it never does
	// delicate: what follows from its loss is to be seen more often.
	delicate bool
	slow     bool // it is long on its way
}

// kvStore is linearizable: one revision per Txn that changes anything.
type kvStore struct {
	rev  resource.Revision
	keys map[string]record.KV // values are never changed
	// txs and units are what was decoded already. Snapshots share them.
	txs   readings[record.Tx]
	units readings[record.Unit]
	// follow is called with what each Txn has changed; nil for a copy.
	follow func(record.Batch)
}

// under returns the keys with a prefix, ascending.
func (s *kvStore) under(prefix string) []string {
	var keys []string
	for k := range s.keys {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// all returns what the keys with a prefix hold, ascending.
func (s *kvStore) all(prefix string) []record.KV {
	var kvs []record.KV
	for _, key := range s.under(prefix) {
		kvs = append(kvs, s.keys[key])
	}
	return kvs
}

// commit does the operations if all compares hold.
func (s *kvStore) commit(compares []record.Compare, ops []record.Op) bool {
	for _, c := range compares {
		kv := s.keys[c.Key]
		have := kv.ModRev
		if c.Target == record.CompareCreateRev {
			have = kv.CreateRev
		}
		if have != c.Rev {
			return false
		}
	}
	s.rev++
	b := record.Batch{Revision: s.rev}
	for _, o := range ops {
		kv, exists := s.keys[o.Key]
		switch {
		case o.Delete && !exists:
			continue
		case o.Delete:
			delete(s.keys, o.Key)
			b.Events = append(b.Events, record.Event{Type: record.EventDelete, KV: record.KV{Key: o.Key, ModRev: s.rev}})
			continue
		case !exists:
			kv = record.KV{Key: o.Key, CreateRev: s.rev}
		}
		kv.Value, kv.ModRev = o.Value, s.rev
		s.keys[o.Key] = kv
		b.Events = append(b.Events, record.Event{KV: kv})
	}
	if s.follow != nil {
		s.follow(b)
	}
	return true
}

// snapshot is the store at this revision.
func (s *kvStore) snapshot() *kvStore {
	return &kvStore{rev: s.rev, keys: maps.Clone(s.keys), txs: s.txs, units: s.units}
}

// readings are decoded records, by the first bytes of their values. Nobody changes
// a value, nor what was decoded from it.
type readings[T record.Type] map[*byte]T

// of is decoded, once for each value.
func (r readings[T]) of(kv record.KV) T {
	v, known := r[&kv.Value[0]]
	if !known {
		v = decoded[T](kv)
		r[&kv.Value[0]] = v
	}
	return v
}

// value reads a key's record; the zero value where it is absent.
func value[T record.Type](s *kvStore, key string) (v T, kv record.KV) {
	kv = s.keys[key]
	if kv.ModRev != 0 {
		v = decoded[T](kv)
	}
	return v, kv
}

// decoded is a record that somebody of this cluster has written.
func decoded[T record.Type](kv record.KV) T {
	v, err := record.Decode[T](kv.Key, kv.Value)
	must(err)
	return v
}

// must is for what only a mistake of the simulation makes fail.
func must(err error) {
	if err != nil {
		panic("sim: " + err.Error())
	}
}

// request is something for the store to do: a Txn, or a read that returns the
// delivery of what it saw.
type request struct {
	what    string
	write   *write
	read    func() func()
	stalled int // until this step
}

// send gives a Txn to the store.
func (s *Sim) send(w *write) {
	r := request{what: w.what, write: w}
	if w.slow {
		r.stalled = s.step + 100
	}
	s.requests = append(s.requests, r)
}

// ask gives a read to the store.
func (s *Sim) ask(what string, read func() func()) {
	s.requests = append(s.requests, request{what: what, read: read})
}

// answer is on its way back from the store, or from a coordinator.
type answer struct {
	what    string
	deliver func()
}

func (s *Sim) reply(what string, deliver func()) {
	s.answers = append(s.answers, answer{what, deliver})
}

// serve lets the store take one request. With faults a Txn may be lost, land
// without an answer, or land much later.
func (s *Sim) serve(r request) {
	if r.read != nil {
		s.logf("store: reads %s", r.what)
		s.reply("read "+r.what, r.read())
		return
	}
	w := r.write
	fate := "answered"
	if s.mishap(8) || w.delicate && s.mishap(6) {
		fate = pick(s, []string{"lost", "answer lost", "late"})
	} else if w.refused != nil && s.mishap(80) {
		s.logf("store: refuses %s", w.what)
		s.stats["refused Txns"]++
		s.reply(w.what, w.refused)
		return
	}
	switch fate {
	case "answered":
		outcome, rev := s.land(w)
		s.reply(w.what, func() { w.done(outcome, rev) })
		return
	case "answer lost":
		s.land(w)
	case "late":
		s.late = append(s.late, w)
	}
	s.logf("store: %s is %s", w.what, fate)
	s.reply(w.what, func() { w.done(txn.Unknown, 0) })
}

// land tries a Txn. The checker follows what it does.
func (s *Sim) land(w *write) (txn.Outcome, resource.Revision) {
	if !s.store.commit(w.compares, w.ops) {
		s.logf("store: %s conflicts at %d", w.what, s.store.rev)
		return txn.Conflict, s.store.rev
	}
	s.logf("store: %s lands at %d", w.what, s.store.rev)
	s.stats["landed"]++
	if w.epoch != 0 {
		s.violated(s.checker.Wrote(invariant.Write{Revision: s.store.rev, What: w.what, Epoch: w.epoch}))
	}
	return txn.Landed, s.store.rev
}

// elected is the epoch of the first candidate whose key exists, 0 for none.
func (s *Sim) elected() resource.Epoch {
	var first resource.Revision
	for k, kv := range s.store.keys {
		if strings.HasPrefix(k, record.LeaderPrefix) && (first == 0 || kv.CreateRev < first) {
			first = kv.CreateRev
		}
	}
	return resource.Epoch(first)
}

// checkDisjoint verifies what the committer assumes of decisions that share a
// Txn.
func (s *Sim) checkDisjoint(w *write) {
	seen := map[string]bool{}
	for _, o := range w.ops {
		if seen[o.Key] {
			s.fail("store", "%s writes %s twice", w.what, o.Key)
		}
		seen[o.Key] = true
	}
	must(record.Txn{If: w.compares, Then: w.ops}.Check(1000))
}
