package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/load.go: a term begins with what the store has.

// begin starts a term on what was read from the store.
func (s *Sim) begin(name, key string, epoch resource.Epoch, state *kvStore) *term {
	t := &term{
		sim: s, name: fmt.Sprintf("%s@%d", name, epoch), coordinator: name, key: key, epoch: epoch,
		nodes: map[resource.NodeID]*nodeView{}, units: map[string]*unit{}, attempts: map[resource.TxID]*attempt{},
		requests: map[string]*unit{}, limits: quota.New(), limitRev: map[string]resource.Revision{}, limitNow: map[string]int64{},
		trees: s.newTrees(), generation: 1, adoptions: map[resource.TxID]*adoption{},
		unheard: map[resource.TxID]map[resource.NodeID]bool{},
	}
	for _, h := range s.hosts {
		v := t.node(h.node)
		if who, e := value[identity](state, identityKey(h.node)); e.value != nil {
			v.fence = fenceOf(who, e.mod)
		}
	}
	for _, namespace := range namespaces {
		amount, e := value[int64](state, limitPrefix+namespace)
		t.setLimit(namespace, amount, e.mod)
	}
	t.loadUnits(state)
	live := t.loadRecords(state)
	t.keepAccount()
	t.resume(live)
	s.logf("%s: leads with %d units, %d live", t.name, len(t.units), len(t.attempts))
	s.stats["terms"]++
	return t
}

func (s *Sim) newTrees() *quota.Manager {
	m := quota.NewManager(quota.Options{})
	must(m.SetMode(quota.Normal))
	_, err := m.AddTree(quota.TreeSpec{Name: treeName, Resources: []resource.Name{resource.GPU}, Nodes: s.treeNodes()})
	must(err)
	return m
}

func (t *term) loadUnits(state *kvStore) {
	for _, key := range state.under(requestKey("")) {
		t.requests[key[len(requestKey("")):]] = nil
	}
	for _, key := range state.under(unitKey("")) {
		r, e := value[unitRecord](state, key)
		u := t.newUnit(t.sim.clients[r.client], r)
		u.stored = e.mod
	}
	for _, key := range state.under(orderKey("")) {
		u := t.units[key[len(orderKey("")):]]
		u.queued, u.failed = true, 1
		t.queue.Push(u.key)
	}
}

// recovered is a live transaction found in the store.
type recovered struct {
	attempt   *attempt
	effects   []txn.Effect
	committed resource.Revision
}

func (t *term) loadRecords(state *kvStore) []recovered {
	var live []recovered
	decided := map[resource.TxID]bool{}
	for _, key := range state.under(txKey("")) {
		tx := resource.TxID(key[len(txKey("")):])
		rec, e := value[record.Tx](state, key)
		decided[tx] = true
		if rec.State.Terminal() {
			t.bury(tx, rec.Unheard)
			continue
		}
		u := t.units[rec.Unit.Name]
		if u == nil || u.record.tx != tx {
			t.sim.fail("I6", "record %s is %s, its unit %s does not name it", short(tx), rec.State, rec.Unit.Name)
			return nil
		}
		votes := map[resource.NodeID]txn.Vote{}
		for _, m := range rec.Members {
			v := votes[m.Node]
			v.Incarnation = m.Incarnation
			v.Members = append(v.Members, m.AsMember())
			votes[m.Node] = v
		}
		for n, v := range votes {
			t.node(n).held[tx] = &hold{members: v.Members}
		}
		found := txn.Found{
			State: rec.State, Revision: e.mod, GraceSeconds: rec.GraceSeconds, Reason: rec.Reason, Evicted: rec.Evicted,
		}
		a := &attempt{unit: u, charges: rec.Charges, by: rec.By, committed: e.create}
		switch {
		case rec.State == grant.RecordEvicting:
			found.By = rec.By // until it is known what became of that
			fallthrough
		case rec.State == grant.RecordReleasing && rec.Evicted:
			a.notice = &txn.EvictAsked{GraceSeconds: rec.GraceSeconds, Reason: rec.Reason}
		case rec.State == grant.RecordReleasing:
			u.ending = &txn.ReleaseAsked{GraceSeconds: rec.GraceSeconds, Reason: rec.Reason}
		}
		var effects []txn.Effect
		a.machine, effects = txn.Recover(tx, found, votes)
		u.attempt, t.attempts[tx] = a, a
		live = append(live, recovered{a, effects, e.create})
	}
	t.adoptFrom(live, decided)
	slices.SortFunc(live, func(a, b recovered) int {
		return cmp.Or(cmp.Compare(a.committed, b.committed), cmp.Compare(a.attempt.machine.ID(), b.attempt.machine.ID()))
	})
	return live
}

// resume charges what earlier leaders committed, in the order of their commits,
// and goes on with it.
func (t *term) resume(live []recovered) {
	for _, r := range live {
		t.limits.Charge(r.attempt.machine.ID(), r.attempt.unit.charge)
		t.seat(r.attempt.unit)
	}
	if err := cmp.Or(t.limits.Check(), t.trees.Check()); err != nil {
		t.sim.fail("I2", "%s: %v", t.name, err)
	}
	for _, r := range live {
		t.perform(r.attempt, r.effects)
	}
	for _, tx := range slices.Sorted(maps.Keys(t.adoptions)) {
		if d := t.adoptions[tx]; d.unit == nil {
			t.abandon(d)
		}
	}
}
