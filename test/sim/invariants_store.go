package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is the invariants of what lands in the store.

// recordsOf is what the records that a Txn writes are before it.
func (s *Sim) recordsOf(ops []op) map[resource.TxID]grant.RecordState {
	var before map[resource.TxID]grant.RecordState
	for _, o := range ops {
		if tx, is := strings.CutPrefix(o.key, txKey("")); is {
			if before == nil {
				before = map[resource.TxID]grant.RecordState{}
			}
			r, _ := value[record.Tx](s.store, o.key)
			before[resource.TxID(tx)] = r.State
		}
	}
	return before
}

// landed checks every record that a Txn has written.
func (s *Sim) landed(w *write, before map[resource.TxID]grant.RecordState) {
	s.changed = true
	for _, tx := range slices.Sorted(maps.Keys(before)) {
		r, e := value[record.Tx](s.store, txKey(tx))
		s.checkI11(tx, before[tx], r.State, e.value == nil)
		if e.value == nil {
			continue
		}
		s.decided[tx] = r.State
		switch r.State {
		case grant.RecordCommitted:
			s.stats["commits"]++
			s.checkAsked(tx, r)
			s.checkI2(tx)
			s.checkNominated(tx, r)
		case grant.RecordEvicting:
			s.stats["evictions"]++
			s.checkI7(tx, r)
		case grant.RecordReleasing:
			if c := s.clientOf(r); (c == nil || !c.ends) && before[tx] != grant.RecordEvicting {
				s.fail("I4", "%s is RELEASING and nobody asked for its end", short(tx))
			}
		case grant.RecordReleased:
			s.stats["releases"]++
			s.checkI10(tx, r)
			s.checkSwap(tx, before, r)
		case grant.RecordAborted:
			s.stats["aborted records"]++
		}
	}
}

func (s *Sim) clientOf(r record.Tx) *client {
	for _, c := range s.clients {
		if c.name == r.Unit.Name {
			return c
		}
	}
	return nil
}

// admission is what a leader saw when it charged an attempt.
type admission struct {
	order int   // among all attempts
	limit int64 // of its namespace, then
}

// checkI2 verifies, when a record is COMMITTED, that the root and the hard nodes
// of the tree have what is charged below them (where below the root a sharer is
// counted is nobody's record), and that each namespace keeps to its limit. A
// limit that is lowered ends nothing, so an attempt is held to the one that it
// was admitted under, with all that was admitted before it and lives.
func (s *Sim) checkI2(committed resource.TxID) {
	sums := map[string]int64{}
	inNamespace := map[string][]resource.TxID{}
	amounts := map[resource.TxID]int64{}
	s.eachLive(func(tx resource.TxID, r record.Tx) {
		for _, charge := range r.Charges {
			if charge.Tree == treeName {
				sums[charge.Group] += charge.Request[resource.GPU]
				sums["root"] += charge.Request[resource.GPU]
			} else {
				inNamespace[charge.Group] = append(inNamespace[charge.Group], tx)
				amounts[tx] = charge.Request[resource.GPU]
			}
		}
	})
	for _, name := range []string{"root", "b"} {
		if limit := s.treeNodes()[name].Quota[resource.GPU]; sums[name] > limit {
			s.fail("I2", "with %s node %s is charged %d milli of GPUs, its quota is %d", short(committed), name, sums[name], limit)
		}
	}
	for _, namespace := range namespaces {
		txs := inNamespace[namespace]
		slices.SortFunc(txs, func(a, b resource.TxID) int { return cmp.Compare(s.begun[a].order, s.begun[b].order) })
		sum := int64(0)
		for _, tx := range txs {
			if sum += amounts[tx]; sum > s.begun[tx].limit {
				s.fail("I2", "with %s namespace %s is charged %d milli of GPUs up to %s, which was admitted under %d",
					short(committed), namespace, sum, short(tx), s.begun[tx].limit)
			}
		}
	}
}

// checkI6 verifies that a unit has one live transaction.
func (s *Sim) checkI6() {
	units := map[string]resource.TxID{}
	s.eachLive(func(tx resource.TxID, r record.Tx) {
		if other, twice := units[r.Unit.Name]; twice {
			s.fail("I6", "unit %s is live in %s and in %s", r.Unit.Name, short(other), short(tx))
		}
		units[r.Unit.Name] = tx
	})
}

// checkI10 verifies, when a charge has ended, that nothing of it is owned or
// runs any more.
func (s *Sim) checkI10(tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		h := s.host(m.Node)
		if h.lying() {
			continue
		}
		if h.running[tx] != nil {
			s.fail("I10", "%s is RELEASED and runs on %s", short(tx), m.Node)
		}
		if who, _ := value[identity](s.store, identityKey(m.Node)); !h.freed[tx] && !who.dead && !s.restored {
			s.fail("I10", "%s is RELEASED, %s has not freed it and is not confirmed dead", short(tx), m.Node)
		}
		if h.agent == nil || !h.lossless || h.agent.l.Registration() == 0 {
			continue
		}
		if g, ok := h.agent.l.Lookup(tx); ok && g.State.Holds() {
			s.fail("I10", "%s is RELEASED and %s on %s", short(tx), g.State, m.Node)
		}
	}
}

// checkAsked verifies, when a record is COMMITTED, that it is what its client
// asked for, whatever agents have said: each member once, with as many devices,
// and no device of another host. Agents say what their devices are called: by
// the names of another's devices a liar gives away its own.
func (s *Sim) checkAsked(tx resource.TxID, r record.Tx) {
	c := s.clientOf(r)
	if c == nil {
		return
	}
	var indices []int
	for _, m := range r.Members {
		indices = append(indices, m.Member)
		if len(m.Assignment.GPUs) != c.demand.Request.GPUs {
			s.fail("I3", "%s is COMMITTED with %d devices for member %d, which asked for %d", short(tx), len(m.Assignment.GPUs), m.Member, c.demand.Request.GPUs)
		}
		for _, g := range m.Assignment.GPUs {
			misnamed := s.liar.host != nil && s.liar.host.node == m.Node && s.liar.claimed[g.UUID]
			if !misnamed && !strings.HasPrefix(g.UUID, "GPU-"+string(m.Node)+"-") {
				s.fail("I1", "%s is COMMITTED on %s with %s", short(tx), m.Node, g.UUID)
			}
		}
	}
	slices.Sort(indices)
	for i, index := range indices {
		if i != index || len(indices) != c.demand.Members {
			s.fail("I3", "%s is COMMITTED with the members %v, which asked for %d", short(tx), indices, c.demand.Members)
			return
		}
	}
	if len(indices) == 0 {
		s.fail("I3", "%s is COMMITTED without members", short(tx))
	}
}

// checkI11 verifies the step that a record has taken, and that one that was
// collected does not come back as anything else: only an agent that asks again
// may find it ABORTED.
func (s *Sim) checkI11(tx resource.TxID, before, after grant.RecordState, deleted bool) {
	switch was := s.decided[tx]; {
	case deleted && before != grant.RecordAbsent && !before.Terminal():
		s.fail("I11", "%s is deleted while it is %s", short(tx), before)
	case deleted:
	case !before.MayBecome(after):
		s.fail("I11", "%s goes from %q to %s", short(tx), before, after)
	case before == grant.RecordAbsent && was != grant.RecordAbsent && after == grant.RecordCommitted:
		s.fail("I11", "%s was %s and becomes %s", short(tx), was, after)
	}
}

// checkI12Store verifies that no Txn of an older epoch takes effect.
func (s *Sim) checkI12Store(w *write, leader resource.Epoch) {
	if w.epoch != 0 && w.epoch != leader {
		s.fail("I12", "%s lands while epoch %d leads", w.what, leader)
	}
}

// checkDisjoint verifies what the committer assumes of decisions that share a
// Txn.
func (s *Sim) checkDisjoint(w *write) {
	seen := map[string]bool{}
	for _, o := range w.ops {
		if seen[o.key] {
			s.fail("store", "%s writes %s twice", w.what, o.key)
		}
		seen[o.key] = true
	}
}
