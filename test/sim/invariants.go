package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// memory is what the checks remember beyond the cluster's own state.
type memory struct {
	decided map[resource.TxID]store.TxState // the last state of every record, collected ones too
	begun   map[resource.TxID]admission
	ack     map[resource.TxID]bool // AckCommitted was carried out
	// nominated are preemptions; asked are transactions that an operator evicts.
	nominated map[resource.TxID]nomination
	asked     map[resource.TxID]bool
	dirty     map[*host]bool // hosts whose ledger or workloads changed
	changed   bool           // records or units changed
}

func newMemory() memory {
	return memory{
		decided: map[resource.TxID]store.TxState{}, begun: map[resource.TxID]admission{}, ack: map[resource.TxID]bool{}, dirty: map[*host]bool{},
		nominated: map[resource.TxID]nomination{}, asked: map[resource.TxID]bool{},
	}
}

// touched says that a host is to be checked after this step.
func (s *Sim) touched(h *host) { s.dirty[h] = true }

// check runs after every step over what the step changed.
func (s *Sim) check() {
	if len(s.dirty) == 0 && !s.changed {
		return
	}
	for _, h := range s.hosts {
		if s.dirty[h] && h.agent != nil {
			if err := h.agent.l.Check(); err != nil {
				s.fail("I1", "%s: %v", h.node, err)
			}
			s.checkI5(h)
		}
	}
	if s.changed {
		s.checkI4()
		s.checkI6()
	}
	s.checkI1()
	s.checkI3()
	clear(s.dirty)
	s.changed = false
}

// live calls f for every record that is charged, in order.
func (s *Sim) eachLive(f func(tx resource.TxID, r store.TxRecord)) {
	for _, key := range s.store.under(txKey("")) {
		if r := s.store.keys[key].value.(store.TxRecord); r.State.Charged() {
			f(resource.TxID(key[len(txKey("")):]), r)
		}
	}
}

// checkI1 verifies that no device belongs to two grants, to two workloads that
// run, or to two COMMITTED records. (A ledger's own Check covers grants.)
func (s *Sim) checkI1() {
	for _, h := range s.hosts {
		owners := map[string]resource.TxID{}
		for _, tx := range slices.Sorted(maps.Keys(h.running)) {
			for _, a := range h.running[tx].assignment {
				s.own(owners, string(h.node)+" runs", tx, a)
			}
		}
	}
	owners := map[string]resource.TxID{}
	s.eachLive(func(tx resource.TxID, r store.TxRecord) {
		if r.State != store.TxCommitted || s.back[tx] {
			return // its agent may have freed it already
		}
		for _, m := range r.Members {
			s.own(owners, "the store lists", tx, m.Assignment)
		}
	})
}

func (s *Sim) own(owners map[string]resource.TxID, where string, tx resource.TxID, a resource.Assignment) {
	for _, g := range a.GPUs {
		if other, taken := owners[g.UUID]; taken && other != tx {
			s.fail("I1", "%s %s for %s and for %s", where, g.UUID, short(other), short(tx))
		}
		owners[g.UUID] = tx
	}
}

// recordsOf is what the records that a Txn writes are before it.
func (s *Sim) recordsOf(ops []op) map[resource.TxID]store.TxState {
	var before map[resource.TxID]store.TxState
	for _, o := range ops {
		if tx, is := strings.CutPrefix(o.key, txKey("")); is {
			if before == nil {
				before = map[resource.TxID]store.TxState{}
			}
			r, _ := value[store.TxRecord](s.store, o.key)
			before[resource.TxID(tx)] = r.State
		}
	}
	return before
}

// landed checks every record that a Txn has written.
func (s *Sim) landed(w *write, before map[resource.TxID]store.TxState) {
	s.changed = true
	for _, tx := range slices.Sorted(maps.Keys(before)) {
		r, e := value[store.TxRecord](s.store, txKey(tx))
		s.checkI11(tx, before[tx], r.State, e.value == nil)
		if e.value == nil {
			continue
		}
		s.decided[tx] = r.State
		switch r.State {
		case store.TxCommitted:
			s.stats["commits"]++
			s.checkI2(tx)
			s.checkNominated(tx, r)
		case store.TxEvicting:
			s.stats["evictions"]++
			s.checkI7(tx, r)
		case store.TxReleasing:
			if c := s.clientOf(r); (c == nil || !c.ends) && before[tx] != store.TxEvicting {
				s.fail("I4", "%s is RELEASING and nobody asked for its end", short(tx))
			}
		case store.TxReleased:
			s.stats["releases"]++
			s.checkI10(tx, r)
			s.checkSwap(tx, before, r)
		case store.TxAborted:
			s.stats["aborted records"]++
		}
	}
}

func (s *Sim) clientOf(r store.TxRecord) *client {
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
	s.eachLive(func(tx resource.TxID, r store.TxRecord) {
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

// checkI3 verifies that a COMMITTED record is protected by every member's
// agent, unless that is down or has not registered since it lost its memory.
// What its workload started for is checked by checkLaunch.
func (s *Sim) checkI3() {
	s.eachLive(func(tx resource.TxID, r store.TxRecord) {
		if r.State != store.TxCommitted || s.back[tx] {
			return
		}
		for _, m := range r.Members {
			h := s.host(m.Node)
			if h.agent == nil || h.agent.l.Registration() == 0 {
				continue
			}
			g, ok := h.agent.l.Lookup(tx)
			if !ok || g.State != ledger.Reserved && g.State != ledger.Held && g.State != ledger.Evicting {
				s.fail("I3", "%s is COMMITTED and %s on %s", short(tx), g.State, m.Node)
				return
			}
			i := slices.IndexFunc(g.Members, func(x ledger.Member) bool { return x.Index == m.Member })
			if i < 0 || !sameThings(g.Members[i].Assignment, m.Assignment) {
				s.fail("I3", "%s is COMMITTED and member %d has other things on %s", short(tx), m.Member, m.Node)
				return
			}
		}
	})
}

// sameThings compares assignments whatever the devices' indices are.
func sameThings(a, b resource.Assignment) bool {
	uuids := func(a resource.Assignment) []string {
		var list []string
		for _, g := range a.GPUs {
			list = append(list, fmt.Sprintf("%s %d", g.UUID, g.Milli))
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(uuids(a), uuids(b)) && slices.Equal(a.CPUs, b.CPUs) && slices.Equal(a.Memory, b.Memory)
}

func (s *Sim) host(id resource.NodeID) *host { return s.hosts[int(id[1]-'1')] }

// checkI4 verifies that what clients were told they have is there.
func (s *Sim) checkI4() {
	for _, c := range s.live {
		if c.acked == "" || c.ends {
			continue
		}
		u, e := value[unitRecord](s.store, unitKey(c.name))
		switch {
		case e.value == nil || u.uid != c.acked:
			s.fail("I4", "client %s was told that it has %s, the store has %q", c.name, c.acked, u.uid)
		case u.phase == running:
			if r, _ := value[store.TxRecord](s.store, txKey(u.tx)); r.State != store.TxCommitted {
				s.fail("I4", "client %s has %s, whose record %s is %q", c.name, u.uid, short(u.tx), r.State)
			}
		case u.phase == terminating:
			if r, _ := value[store.TxRecord](s.store, txKey(u.tx)); !r.Evicted {
				s.fail("I4", "client %s has %s, which is %s, and its record %s is %q and not evicted", c.name, u.uid, u.phase, short(u.tx), r.State)
			}
		case u.phase != pending:
			s.fail("I4", "client %s has %s, which is %s", c.name, u.uid, u.phase)
		}
	}
}

// told acknowledges a unit to its client; the answer may be lost.
func (s *Sim) told(c *client, u *unit) {
	if s.mishap(10) {
		c.asked = nil
		return
	}
	if c.acked != "" && c.acked != u.record.uid {
		s.fail("I4", "client %s was told of %s and of %s", c.name, c.acked, u.record.uid)
	}
	c.acked = u.record.uid
	s.changed = true
	s.logf("client %s: is told of %s", c.name, u.record.uid)
}

// checkAcknowledged is called when a commit is acknowledged.
func (s *Sim) checkAcknowledged(tx resource.TxID) {
	s.ack[tx] = true
	if state := s.decided[tx]; !state.Charged() && state != store.TxReleased {
		s.fail("I4", "%s is acknowledged and %q", short(tx), state)
	}
}

// checkI6 verifies that a unit has one live transaction.
func (s *Sim) checkI6() {
	units := map[string]resource.TxID{}
	s.eachLive(func(tx resource.TxID, r store.TxRecord) {
		if other, twice := units[r.Unit.Name]; twice {
			s.fail("I6", "unit %s is live in %s and in %s", r.Unit.Name, short(other), short(tx))
		}
		units[r.Unit.Name] = tx
	})
}

// checkI10 verifies, when a charge has ended, that nothing of it is owned or
// runs any more.
func (s *Sim) checkI10(tx resource.TxID, r store.TxRecord) {
	for _, m := range r.Members {
		h := s.host(m.Node)
		if h.running[tx] != nil {
			s.fail("I10", "%s is RELEASED and runs on %s", short(tx), m.Node)
		}
		if h.agent == nil || !h.lossless || h.agent.l.Registration() == 0 {
			continue
		}
		if g, ok := h.agent.l.Lookup(tx); ok && g.State.Holds() {
			s.fail("I10", "%s is RELEASED and %s on %s", short(tx), g.State, m.Node)
		}
	}
}

// edges are the steps that a record may take; "" is absent.
var edges = map[store.TxState][]store.TxState{
	"":                {store.TxCommitted, store.TxAborted},
	store.TxCommitted: {store.TxEvicting, store.TxReleasing},
	store.TxEvicting:  {store.TxReleasing, store.TxReleased},
	store.TxReleasing: {store.TxReleased},
}

// checkI11 verifies the step that a record has taken, and that one that was
// collected does not come back as anything else: only an agent that asks again
// may find it ABORTED.
func (s *Sim) checkI11(tx resource.TxID, before, after store.TxState, deleted bool) {
	switch was := s.decided[tx]; {
	case deleted && before != "" && !before.Terminal():
		s.fail("I11", "%s is deleted while it is %s", short(tx), before)
	case deleted:
	case !slices.Contains(edges[before], after):
		s.fail("I11", "%s goes from %q to %s", short(tx), before, after)
	case before == "" && was != "" && after == store.TxCommitted:
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
