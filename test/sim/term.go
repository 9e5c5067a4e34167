package sim

import (
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
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

	counter     uint64
	nodes       map[resource.NodeID]*nodeView
	order       []*place.Node
	units       map[string]*unit
	attempts    map[resource.TxID]*attempt
	requests    map[string]*unit // nil: what it made is gone
	queue       queue.Queue
	limits      *quota.Limits
	limitRev    map[string]resource.Revision
	limitNow    map[string]int64
	changing    bool
	trees       *quota.Manager
	account     *decisions.Tracker
	coordinator string
	// renumbered: a host has other cards than before, so that what its agent had not
	// confirmed is nominated under numbers that are others' now.
	renumbered bool

	generation uint64
	expectant  bool // a unit waits for another to become evictable
	operating  bool // an operator's decision is under way
	adoptions  map[resource.TxID]*adoption
	waiting    []decision
	terminal   []resource.TxID
	unheard    map[resource.TxID]map[resource.NodeID]bool // terminal records: who has not told of itself
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
	short    bool       // of quota, when it was tried last
	helpless uint64     // the generation at which nobody gave way for it
	counted  []*attempt // were leaving then, and their room would do
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
	charges  []record.Charge
	requests map[resource.NodeID][]grant.MemberRequest
	budget   bool // the time for votes, or for the victims to leave, runs

	// victims end for this one; prey is the attempt that has chosen this one.
	victims   []*attempt
	prey      *attempt
	notice    *txn.EvictAsked // the eviction that ends it, by another if so
	by        resource.TxID
	closing   *unitEnd          // of the first Txn to RELEASED
	committed resource.Revision // its commit

	presumed map[resource.NodeID]bool // count as freed: they are dead
	unheard  []resource.NodeID        // of these, when it was last ended
}

// decision is a set of writes that must land together.
type decision struct {
	what     string
	compares []record.Compare
	ops      []op
	anyEpoch bool
	delicate bool // as of write
	slow     bool // as of write
	done     func(txn.Outcome, resource.Revision)
}

// must is for calls of the quota manager that only a broken invariant makes
// fail.
func must(err error) {
	if err != nil {
		panic("sim: " + err.Error())
	}
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
	t.account.Freed(t.generation)
}

func (t *term) nextTx(unit resource.UnitUID) resource.TxID {
	t.counter++
	var nonce resource.Nonce
	for i := range 4 {
		nonce[i] = byte(t.sim.rng.Uint32())
	}
	return resource.NewTxID(unit, t.epoch, t.counter, nonce)
}
