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

// The keys, as in PROTOCOL.md section 1 but shorter.
func txKey(tx resource.TxID) string { return "tx/" + string(tx) }

func unitKey(name string) string    { return "unit/" + name }
func orderKey(name string) string   { return "order/" + name }
func requestKey(name string) string { return "request/" + name }

func identityKey(n resource.NodeID) string { return "identity/" + string(n) }
func leaseKey(n resource.NodeID) string    { return "lease/" + string(n) }
func specKey(n resource.NodeID) string     { return "spec/" + string(n) }
func indexIn(n resource.NodeID) string     { return "index/" + string(n) + "/" }

func indexKey(n resource.NodeID, tx resource.TxID) string { return indexIn(n) + string(tx) }

const (
	leaderPrefix = "leader/"
	limitPrefix  = "limit/"
)

// entry is a key's present version. Its value is never changed.
type entry struct {
	value       any
	create, mod resource.Revision
}

// op writes a key; a nil value deletes it.
type op struct {
	key   string
	value any
}

// write is a Txn on its way to the store, or one that may still arrive.
type write struct {
	what     string
	epoch    resource.Epoch // of the leader that sent it, 0: nobody's
	compares []record.Compare
	ops      []op
	done     func(txn.Outcome, resource.Revision)
	// delicate: what follows from its loss is to be seen more often.
	delicate bool
	slow     bool // it is long on its way
}

// kvStore is linearizable: one revision per Txn that changes anything.
type kvStore struct {
	rev  resource.Revision
	keys map[string]entry
	// follow is called with what each Txn has changed; nil for a copy.
	follow func(resource.Revision, []op)
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

// commit does the operations if all compares hold.
func (s *kvStore) commit(compares []record.Compare, ops []op) bool {
	for _, c := range compares {
		e := s.keys[c.Key]
		have := e.mod
		if c.Target == record.CompareCreateRev {
			have = e.create
		}
		if have != c.Rev {
			return false
		}
	}
	s.rev++
	var changed []op
	for _, o := range ops {
		e := s.keys[o.key]
		if o.value != nil || e.value != nil {
			changed = append(changed, o)
		}
		if o.value == nil {
			delete(s.keys, o.key)
			continue
		}
		if e.create == 0 {
			e.create = s.rev
		}
		e.value, e.mod = o.value, s.rev
		s.keys[o.key] = e
	}
	if s.follow != nil {
		s.follow(s.rev, changed)
	}
	return true
}

// snapshot is the store at this revision.
func (s *kvStore) snapshot() *kvStore { return &kvStore{rev: s.rev, keys: maps.Clone(s.keys)} }

// value reads a key of a known type; the zero value where it is absent.
func value[T any](s *kvStore, key string) (v T, e entry) {
	e = s.keys[key]
	if e.value != nil {
		v = e.value.(T)
	}
	return v, e
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
	for k, e := range s.store.keys {
		if strings.HasPrefix(k, leaderPrefix) && (first == 0 || e.create < first) {
			first = e.create
		}
	}
	return resource.Epoch(first)
}
