package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// What the leader is told by configuration.
const (
	reservationTTL = 10 * time.Second
	treeName       = "t"
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// term is one coordinator's time as the leader, or what it takes for that: a
// deposed leader goes on until it notices. The machines in it are real, what
// stands around them is coordinator/*.go again, as short as may be.
type term struct {
	sim   *Sim
	name  string
	key   string // of the election
	epoch resource.Epoch
	ended bool

	counter  uint64
	nodes    map[resource.NodeID]*nodeView
	order    []*place.Node
	units    map[string]*unit
	attempts map[resource.TxID]*attempt
	requests map[string]*unit // nil: what it made is gone
	queue    queue.Queue
	limits   *quota.Limits
	limitRev map[string]resource.Revision
	limitNow map[string]int64
	changing bool
	trees    *quota.Manager

	generation uint64
	operating  bool // an operator's decision is under way
	adoptions  map[resource.TxID]*adoption
	waiting    []decision
	terminal   []resource.TxID
}

// nodeView is the leader's view of one host.
type nodeView struct {
	view       place.Node
	stream     *stream
	dialing    bool
	connected  bool
	registered resource.Revision
	unhealthy  uint64
	// quarantined agents promise nothing until an operator has reconciled them.
	quarantined bool
	held        map[resource.TxID]*hold
}

// hold is what a transaction has on a node: planned, or confirmed by the agent.
type hold struct {
	members   []txn.Member
	confirmed bool
	waiting   bool // others have some of it still
}

// unit as the leader knows it.
type unit struct {
	client *client
	record unitRecord
	stored resource.Revision
	queued bool
	key    queue.Key
	charge quota.Charge

	create   bool // its creation is to be written with its first Txn
	attempt  *attempt
	writing  bool
	ending   *txn.ReleaseAsked
	failed   uint64
	resting  bool
	enrolled bool
	gone     bool

	adopting *adoption
	helpless uint64 // the generation at which nobody gave way for it
}

// unitRecord is the value of a unit's key, nodeSpec of a node's specification,
// of which only the revision matters here.
type (
	unitRecord struct {
		uid     resource.UnitUID
		client  int
		phase   string
		tx      resource.TxID
		epoch   resource.Epoch // with counter: arrival
		counter uint64
	}
	nodeSpec struct{}
)

const (
	pending     = "Pending"
	running     = "Running"
	terminating = "Terminating"
)

// attempt is one transaction for a unit.
type attempt struct {
	machine  *txn.Machine
	unit     *unit
	charges  []store.Charge
	requests map[resource.NodeID][]ledger.MemberRequest
	budget   bool // the time for votes, or for the victims to leave, runs

	// victims end for this one; prey is the attempt that has chosen this one.
	victims   []*attempt
	prey      *attempt
	notice    *txn.EvictAsked // the eviction that ends it, by another if so
	by        resource.TxID
	closing   *unitEnd          // of the first Txn to RELEASED
	committed resource.Revision // its commit
}

// decision is a set of writes that must land together.
type decision struct {
	what     string
	compares []store.Compare
	ops      []op
	anyEpoch bool
	delicate bool // as of write
	slow     bool // as of write
	done     func(txn.Outcome, resource.Revision)
}

// begin starts a term on what was read from the store.
func (s *Sim) begin(name, key string, epoch resource.Epoch, state *kvStore) *term {
	t := &term{
		sim: s, name: fmt.Sprintf("%s@%d", name, epoch), key: key, epoch: epoch,
		nodes: map[resource.NodeID]*nodeView{}, units: map[string]*unit{}, attempts: map[resource.TxID]*attempt{},
		requests: map[string]*unit{}, limits: quota.New(), limitRev: map[string]resource.Revision{}, limitNow: map[string]int64{},
		trees: s.newTrees(), generation: 1, adoptions: map[resource.TxID]*adoption{},
	}
	for _, h := range s.hosts {
		t.node(h.node)
	}
	for _, namespace := range namespaces {
		amount, e := value[int64](state, limitPrefix+namespace)
		t.setLimit(namespace, amount, e.mod)
	}
	t.loadUnits(state)
	t.resume(t.loadRecords(state))
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

// must is for calls of the quota manager that only a broken invariant makes
// fail.
func must(err error) {
	if err != nil {
		panic("sim: " + err.Error())
	}
}

func (t *term) node(id resource.NodeID) *nodeView {
	v := t.nodes[id]
	if v == nil {
		v = &nodeView{view: place.Node{ID: id}, held: map[resource.TxID]*hold{}}
		t.nodes[id] = v
		i, _ := slices.BinarySearchFunc(t.order, id, func(n *place.Node, id resource.NodeID) int { return cmp.Compare(n.ID, id) })
		t.order = slices.Insert(t.order, i, &v.view)
	}
	return v
}

func (t *term) setLimit(namespace string, amount int64, rev resource.Revision) {
	t.limitRev[namespace], t.limitNow[namespace] = rev, amount
	t.limits.SetLimit(quota.Limit{Group: namespace, Name: "hard", Hard: resource.Vector{resource.GPU: amount}})
}

func (t *term) newUnit(c *client, r unitRecord) *unit {
	u := &unit{client: c, record: r}
	u.key = queue.Key{Priority: c.priority, Epoch: r.epoch, Counter: r.counter, Path: c.name}
	u.charge = quota.Charge{Group: c.namespace, Request: c.vector(), Members: int64(c.demand.Members)}
	t.units[c.name], t.requests[c.name] = u, u
	return u
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
		record, e := value[store.TxRecord](state, key)
		decided[tx] = true
		if record.State.Terminal() {
			t.terminal = append(t.terminal, tx)
			continue
		}
		u := t.units[record.Unit.Name]
		if u == nil || u.record.tx != tx {
			t.sim.fail("I6", "record %s is %s, its unit %s does not name it", short(tx), record.State, record.Unit.Name)
			return nil
		}
		votes := map[resource.NodeID]txn.Vote{}
		for _, m := range record.Members {
			v := votes[m.Node]
			v.Incarnation = m.Incarnation
			v.Members = append(v.Members, txn.Member{Index: m.Member, Assignment: m.Assignment})
			votes[m.Node] = v
		}
		for n, v := range votes {
			t.node(n).held[tx] = &hold{members: v.Members}
		}
		found := txn.Found{
			State: machineStates[record.State], Revision: e.mod, GraceSeconds: record.GraceSeconds, Reason: record.Reason, Evicted: record.Evicted,
		}
		a := &attempt{unit: u, charges: record.Charges, by: record.By, committed: e.create}
		switch {
		case record.State == store.TxEvicting:
			found.By = record.By // until it is known what became of that
			fallthrough
		case record.State == store.TxReleasing && record.Evicted:
			a.notice = &txn.EvictAsked{GraceSeconds: record.GraceSeconds, Reason: record.Reason}
		case record.State == store.TxReleasing:
			u.ending = &txn.ReleaseAsked{GraceSeconds: record.GraceSeconds, Reason: record.Reason}
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

// end stops the term; nothing that it has asked for is heard any more.
func (t *term) stop(why string) {
	t.sim.logf("%s: ends: %s", t.name, why)
	t.ended = true
	for _, st := range t.sim.streams {
		if st.term == t {
			st.cut()
		}
	}
}

// wake lets everything that waits be tried again.
func (t *term) wake() {
	t.generation++
	t.queue.Wake()
}

func (t *term) nextTx(unit resource.UnitUID) resource.TxID {
	t.counter++
	var nonce resource.Nonce
	for i := range 4 {
		nonce[i] = byte(t.sim.rng.Uint32())
	}
	return resource.NewTxID(unit, t.epoch, t.counter, nonce)
}

// rebuild computes what is free on a node anew from the holds, confirmed ones
// first, then those that wait for them; a planned one that does not fit stays
// untaken.
func (v *nodeView) rebuild() {
	if v.view.Host == nil {
		return
	}
	v.view.Free = v.view.Host.NewFree()
	v.view.Free.Unhealthy = v.unhealthy
	for rank := range 3 {
		for _, tx := range slices.Sorted(maps.Keys(v.held)) {
			h := v.held[tx]
			if h.rank() != rank {
				continue
			}
			for i, m := range h.members {
				if err := v.view.Host.Take(v.view.Free, m.Assignment); err == nil {
					continue
				}
				if h.confirmed || h.waiting {
					v.takePresent(m.Assignment)
					continue
				}
				for _, n := range h.members[:i] {
					must(v.view.Host.Give(v.view.Free, n.Assignment))
				}
				break
			}
		}
	}
	v.view.Refresh()
}

// rank is the place in the order in which holds take what they have.
func (h *hold) rank() int {
	switch {
	case h.waiting:
		return 1
	case h.confirmed:
		return 0
	}
	return 2
}

// takePresent takes what the host still has of an assignment.
func (v *nodeView) takePresent(a resource.Assignment) {
	for i := range a.GPUs {
		_ = v.view.Host.Take(v.view.Free, resource.Assignment{GPUs: a.GPUs[i : i+1]}) // it may be gone
	}
	for i := range a.CPUs {
		_ = v.view.Host.Take(v.view.Free, resource.Assignment{CPUs: a.CPUs[i : i+1]}) // as above
	}
}

func (v *nodeView) drop(tx resource.TxID) {
	if v.held[tx] != nil {
		delete(v.held, tx)
		v.rebuild()
	}
}

func (v *nodeView) setHost(h *fit.Host) { v.view.Host = h }

func (v *nodeView) setReady() {
	v.view.Ready = v.connected && v.registered != 0 && !v.quarantined && v.view.Host != nil
}
