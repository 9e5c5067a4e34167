package sim

import (
	"iter"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file falsifies what goes in and out of a leader where a bug is planted, and
// brings about the worst moments.

// planted is what a term remembers for that.
type planted struct {
	began  map[resource.TxID]bool              // attempts of this term
	asksOf map[resource.TxID][]resource.NodeID // nodes that wait for victims
	ending map[resource.TxID]bool
	// Transactions whose commit, or whose eviction of victims, had no answer.
	doubted, doubtedEviction map[resource.TxID]bool
}

func newPlanted() planted {
	return planted{began: map[resource.TxID]bool{}, asksOf: map[resource.TxID][]resource.NodeID{}, ending: map[resource.TxID]bool{},
		doubted: map[resource.TxID]bool{}, doubtedEviction: map[resource.TxID]bool{},
	}
}

// condition sees a command before it is sent; true keeps it back.
func (t *term) condition(id resource.NodeID, c grant.Command) bool {
	if r, is := c.(grant.Reserve); is && len(r.After) > 0 && !slices.Contains(t.asksOf[r.Tx], id) {
		t.asksOf[r.Tx] = append(t.asksOf[r.Tx], id)
		t.sim.preempts(r.Tx, t.asksOf[r.Tx])
	}
	return false
}

// records yields those that a write puts, in its order.
func (s *kvStore) records(w post.Write) iter.Seq2[resource.TxID, record.Tx] {
	return func(yield func(resource.TxID, record.Tx) bool) {
		for _, o := range w.Ops {
			if o.Delete || !strings.HasPrefix(o.Key, record.TxPrefix) {
				continue
			}
			if tx, err := record.ParseTxKey(o.Key); err == nil && !yield(tx, s.txs.of(record.KV{Key: o.Key, Value: o.Value})) {
				return
			}
		}
	}
}

// noteWrite tells the checks what the leader is about to write.
func (t *term) noteWrite(w post.Write) {
	s := t.sim
	for _, o := range w.Ops {
		if namespace, name, err := record.ParseJobKey(o.Key); err == nil && !o.Delete {
			if c := decoded[record.Job](record.KV{Key: o.Key, Value: o.Value}).Cancelled; c != nil && c.Reason == storeRestored {
				s.lostBy(record.UnitPath{Namespace: namespace, Kind: record.JobUnit, Name: name}.String())
			}
		}
	}
	for tx, r := range s.store.records(w) {
		if r.State == grant.RecordCommitted && r.Unit.N >= record.FirstReplacement {
			s.stats["members replaced"]++
			if c := s.clientOf(record.UnitPath{Namespace: r.Unit.Namespace, Kind: r.Unit.Kind, Name: r.Unit.Name}.String()); c != nil && c.differs {
				s.stats["members that differ replaced"]++
			}
		}
		switch {
		case r.State == grant.RecordCommitted && len(r.LostMembers) > 0: // it goes on without them
		case r.State == grant.RecordCommitted && !t.began[tx]: // an operator adopts it, maybe once more after a refusal
			s.admitted(tx, unbounded)
			s.checker.Adopted(tx)
		case r.State == grant.RecordReleasing && r.Reason == storeRestored:
			s.lostBy(r.Unit.String())
		case r.State == grant.RecordEvicting && r.Lost && s.anyDead(r):
			s.evictionAsked(tx)
		}
	}
}

// storeRestored is the reason of what a reconciliation ends.
const storeRestored = "StoreRestored"

// lostBy notes that a client's unit ends with a reconciliation.
func (s *Sim) lostBy(path string) {
	if c := s.clientOf(path); c != nil {
		s.endAsked(c)
	}
}

// anyDead reports whether a node of a record is confirmed dead.
func (s *Sim) anyDead(r record.Tx) bool {
	return slices.ContainsFunc(r.Members, func(m record.Placement) bool { return s.deaths[m.Node] })
}

// evictsFor are the preemptors for which a write, or a Txn of writes, evicts.
func (s *kvStore) evictsFor(w post.Write) []resource.TxID {
	var all []resource.TxID
	for _, r := range s.records(w) {
		if r.State == grant.RecordEvicting && r.By != "" && !slices.Contains(all, r.By) {
			all = append(all, r.By)
		}
	}
	return all
}

// commits are the transactions that a write, or a Txn of writes, commits.
func (s *kvStore) commits(w post.Write) []resource.TxID {
	var all []resource.TxID
	for tx, r := range s.records(w) {
		if r.State == grant.RecordCommitted {
			all = append(all, tx)
		}
	}
	return all
}

// first is the first of a list, "" for none: a write commits one transaction, and
// evicts for one.
func first(txs []resource.TxID) resource.TxID {
	if len(txs) == 0 {
		return ""
	}
	return txs[0]
}

// falsifyWrite is a write as a leader with the bug would make it.
func (t *term) falsifyWrite(p queued) queued {
	tx, by := first(t.sim.store.commits(p.Write)), first(t.sim.store.evictsFor(p.Write))
	w := &p.Write
	without := func(drop func(record.Compare) bool) { w.Compares = slices.DeleteFunc(slices.Clone(w.Compares), drop) }
	switch bug := t.sim.bug; {
	case tx != "" && bug == CommitWithoutIncarnation, by != "" && bug == EvictWithoutIncarnations, t.sim.store.ends(*w) && bug == EndIgnoresFence:
		without(ofIdentity)
	case tx != "" && bug == CommitOverRecord:
		without(func(c record.Compare) bool { return c == record.Absent(record.TxKey(tx)) })
	case by != "" && bug == EvictForDecided:
		without(func(c record.Compare) bool { return c == record.Absent(record.TxKey(by)) })
	case tx != "" && bug == SwapKeepsVictims:
		w.Ops = t.ownOf(tx, w.Ops)
	case bug == FencedIsDead:
		w.Ops = slices.Clone(w.Ops)
		for i, o := range w.Ops {
			if who, is := identityIn(o); is && who.Fenced {
				who.ConfirmedDead = false
				w.Ops[i] = record.Put(o.Key, record.MustEncode(who))
			}
		}
	}
	if tx != "" && t.sim.bug == AckBeforeCommit {
		t.sim.checkAcknowledged(tx)
	}
	return p
}

// falsifyCompares are the compares of a Txn as a leader with the bug would send
// them.
func (t *term) falsifyCompares(w post.Write) []record.Compare {
	compares := slices.Clone(w.Compares)
	switch bug := t.sim.bug; {
	case bug == EpochNotCompared:
		return slices.DeleteFunc(compares, func(c record.Compare) bool { return c == t.coordinator.held() })
	case bug == CompareIdentityReadAnew && len(t.sim.store.commits(w)) > 0:
		for i, c := range compares {
			if ofIdentity(c) {
				compares[i].Rev = t.sim.store.keys[c.Key].ModRev
			}
		}
	}
	return compares
}

func ofIdentity(c record.Compare) bool {
	key, err := record.ParseNodeKey(c.Key)
	return err == nil && key.Part == record.NodeIdentityPart
}

// identityIn is the identity that an operation writes.
func identityIn(o record.Op) (record.NodeIdentity, bool) {
	if o.Delete || !ofIdentity(record.Compare{Key: o.Key}) {
		return record.NodeIdentity{}, false
	}
	return decoded[record.NodeIdentity](record.KV{Key: o.Key, Value: o.Value}), true
}

// ends reports whether a write ends a transaction and does nothing else.
func (s *kvStore) ends(w post.Write) bool {
	released := false
	for _, r := range s.records(w) {
		released = released || r.State == grant.RecordReleased
		if r.State != grant.RecordReleased {
			return false
		}
	}
	return released
}

// ownOf are the operations of a commit that are about its own transaction.
func (t *term) ownOf(tx resource.TxID, ops []record.Op) []record.Op {
	var victims []resource.TxID
	paths := map[string]bool{}
	for other, r := range t.sim.store.records(post.Write{Ops: ops}) {
		if other != tx {
			victims = append(victims, other)
			paths[r.Unit.Key()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(ops), func(o record.Op) bool {
		if key, err := record.ParseNodeKey(o.Key); err == nil {
			return slices.Contains(victims, key.Tx)
		}
		if order, err := record.ParseOrderKey(o.Key); err == nil {
			return paths[order.Unit.Key()]
		}
		return paths[o.Key] || slices.ContainsFunc(victims, func(v resource.TxID) bool { return o.Key == record.TxKey(v) })
	})
}

// falsifyRead is what a leader with the bug would make of an identity.
func (t *term) falsifyRead(kv record.KV) record.KV {
	if t.sim.bug != DeathOutlived || kv.ModRev == 0 || !ofIdentity(record.Compare{Key: kv.Key}) || len(t.condemned) > 0 {
		return kv
	}
	who := decoded[record.NodeIdentity](kv)
	if !who.Fenced { // the worst moment: another operator does it
		who.Fenced = true
		t.sim.store.commit(nil, []record.Op{record.Put(kv.Key, record.MustEncode(who))})
		kv = t.sim.store.keys[kv.Key]
	}
	who.ConfirmedDead = true
	kv.Value = record.MustEncode(who)
	return kv
}

// falsifyRecords are the records as a new leader with the bug would read them.
func (t *term) falsifyRecords(kvs []record.KV) []record.KV {
	if t.sim.bug != AdoptionForgotten {
		return kvs
	}
	for i, kv := range kvs {
		if r := t.sim.store.txs.of(kv); r.State == grant.RecordEvicting {
			r.By = ""
			kvs[i].Value = record.MustEncode(r)
		}
	}
	return kvs
}

// falsifyOutcome is what a leader with the bug would make of an answer.
func (t *term) falsifyOutcome(p queued, o txn.Outcome) txn.Outcome {
	if o != txn.Unknown {
		return o
	}
	switch bug := t.sim.bug; {
	case len(t.sim.store.commits(p.Write)) > 0 && bug == UnknownIsAborted, len(t.sim.store.evictsFor(p.Write)) > 0 && bug == VictimsNotRead:
		return txn.Conflict
	}
	return o
}

// afterReply brings about what a leader with the bug would make of an answer.
func (t *term) afterReply(r grant.Replied) {
	if t.ended || r.State != grant.Tombstone {
		return
	}
	switch t.sim.bug {
	case TombstoneForgottenEarly:
		t.send(r.Node, grant.Forget{Tx: r.Tx})
	case ReleasedBeforeAllFreed:
		rec, _ := value[record.Tx](t.sim.store, record.TxKey(r.Tx))
		t.allFreed(r.Tx, rec)
	}
}

// allFreed has the leader believe that all members have ended.
func (t *term) allFreed(tx resource.TxID, rec record.Tx) {
	for _, m := range rec.Members {
		t.heard(grant.Replied{Node: m.Node, Tx: tx, State: grant.Tombstone})
	}
}

// afterWrite brings about what a leader with the bug would do once a write was
// answered.
func (t *term) afterWrite(p queued, o txn.Outcome) {
	if t.ended {
		return
	}
	tx, by := first(t.sim.store.commits(p.Write)), first(t.sim.store.evictsFor(p.Write))
	if o == txn.Unknown {
		t.doubted[tx], t.doubtedEviction[by] = true, true
	}
	for other, r := range t.sim.store.records(p.Write) {
		switch bug := t.sim.bug; {
		case o != txn.Landed:
		case bug == CollectInDoubt && r.State == grant.RecordAborted && t.doubted[other], bug == CollectEvictionInDoubt && r.State == grant.RecordAborted && t.doubtedEviction[other],
			bug == CollectUnheard && len(r.Unheard) > 0, bug == CollectNamed && r.State == grant.RecordAborted && t.sim.leavesFor(other):
			t.sim.logf("%s: collects %s", t.name, short(other))
			t.submitOwn("collection of "+short(other), post.Write{Ops: []record.Op{record.Delete(record.TxKey(other))}})
		case bug == SwapBeforeFreed && r.State == grant.RecordEvicting && r.By != "":
			t.allFreed(other, r)
		}
	}
}

// confirmAnew is a confirmed death that has met a conflict, of whoever is
// registered by then; false where that is not the bug.
func (t *term) confirmAnew(p queued, o txn.Outcome) bool {
	if t.sim.bug != DeathRetried || o != txn.Conflict {
		return false
	}
	for _, op := range p.Ops {
		who, is := identityIn(op)
		if !is || !who.ConfirmedDead {
			continue
		}
		now, kv := value[record.NodeIdentity](t.sim.store, op.Key)
		now.Fenced, now.ConfirmedDead = true, true
		p.Compares, p.Ops = []record.Compare{record.ModRevIs(op.Key, kv.ModRev)}, []record.Op{record.Put(op.Key, record.MustEncode(now))}
		t.enqueue(p)
		return true
	}
	return false
}

// worstMoment brings about what a Txn is to be safe against: a node whose agent
// waits for victims, or one that was dead, is back before the Txn lands. It
// reports whether the Txn is slow for that.
func (t *term) worstMoment(w post.Write) (slow bool) {
	s := t.sim
	for _, by := range t.sim.store.evictsFor(w) {
		if len(t.asksOf[by]) > 0 && s.mishap(30) {
			h := s.host(pick(s, t.asksOf[by]))
			h.reboot() // what waits is lost
			h.startAgent()
			slow = true
		}
	}
	for _, r := range s.store.records(w) {
		if r.State == grant.RecordCommitted && (s.bug == CommitWithoutIncarnation || s.bug == CompareIdentityReadAnew) && s.mishap(3) {
			h := s.host(r.Members[0].Node)
			h.reboot() // what was promised may be lost
			if h.startAgent(); h.agent != nil && s.bug == CompareIdentityReadAnew {
				s.store.commit(nil, []record.Op{record.Put(record.NodeIdentityKey(h.node), record.MustEncode(record.NodeIdentity{Incarnation: h.agent.incarnation}))})
			}
			slow = true
		}
	}
	for _, o := range w.Ops {
		key, err := record.ParseNodeKey(o.Key)
		who, is := identityIn(o)
		if err != nil || !is || !who.ConfirmedDead {
			continue
		}
		if h := s.host(key.ID); h.off && !h.condemned() && s.mishap(3) {
			h.powerOn()
			h.startAgent()
			slow = true
		}
	}
	return slow
}
