package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// memory is what the checks remember beyond the cluster's own state.
type memory struct {
	decided map[resource.TxID]grant.RecordState // the last state of every record, collected ones too
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
		decided: map[resource.TxID]grant.RecordState{}, begun: map[resource.TxID]admission{}, ack: map[resource.TxID]bool{}, dirty: map[*host]bool{},
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
		if s.dirty[h] && h.agent != nil && !h.lying() {
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
func (s *Sim) eachLive(f func(tx resource.TxID, r record.Tx)) {
	for _, key := range s.store.under(txKey("")) {
		if r := s.store.keys[key].value.(record.Tx); r.State.Charged() {
			f(resource.TxID(key[len(txKey("")):]), r)
		}
	}
}

// checkI1 verifies that no device belongs to two grants, to two workloads that
// run, or to two COMMITTED records. (A ledger's own Check covers grants.)
func (s *Sim) checkI1() {
	for _, h := range s.hosts {
		if h.lying() {
			continue
		}
		owners := map[string]resource.TxID{}
		for _, tx := range slices.Sorted(maps.Keys(h.running)) {
			for _, a := range h.running[tx].assignment {
				s.own(owners, string(h.node)+" runs", tx, a)
			}
		}
		s.ownStragglers(h, owners)
	}
	owners := map[string]resource.TxID{}
	s.eachLive(func(tx resource.TxID, r record.Tx) {
		if r.State != grant.RecordCommitted || s.back[tx] {
			return // its agent may have freed it already
		}
		for _, m := range r.Members {
			if !s.host(m.Node).lying() {
				s.own(owners, "the store lists", tx, m.Assignment)
			}
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

// checkI3 verifies that a COMMITTED record is protected by every member's
// agent, unless that is down or has not registered since it lost its memory.
// What its workload started for is checked by checkLaunch.
func (s *Sim) checkI3() {
	s.eachLive(func(tx resource.TxID, r record.Tx) {
		if r.State != grant.RecordCommitted || s.back[tx] {
			return
		}
		for _, m := range r.Members {
			h := s.host(m.Node)
			if h.agent == nil || h.agent.l.Registration() == 0 || h.lying() {
				continue
			}
			g, ok := h.agent.l.Lookup(tx)
			if !ok || g.State != grant.Reserved && g.State != grant.Held && g.State != grant.Evicting {
				s.fail("I3", "%s is COMMITTED and %s on %s", short(tx), g.State, m.Node)
				return
			}
			i := slices.IndexFunc(g.Members, func(x ledger.Holding) bool { return x.Index == m.Member })
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
			if r, _ := value[record.Tx](s.store, txKey(u.tx)); r.State != grant.RecordCommitted {
				s.fail("I4", "client %s has %s, whose record %s is %q", c.name, u.uid, short(u.tx), r.State)
			}
		case u.phase == terminating:
			if r, _ := value[record.Tx](s.store, txKey(u.tx)); !r.Evicted {
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
	if state := s.decided[tx]; !state.Charged() && state != grant.RecordReleased {
		s.fail("I4", "%s is acknowledged and %q", short(tx), state)
	}
}
