package coordinator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// leader is one term of office: everything the leader keeps in memory and the
// one goroutine that owns it. Others reach it through do and post.
//
// Invariant: nodes, order and views agree (order ascends by ID over all of
// nodes); every attempt is in attempts exactly while its machine has not ended;
// quotas charge exactly the transactions in attempts.
type leader struct {
	config Config
	store  store.Store
	log    *slog.Logger
	epoch  resource.Epoch
	// ctx ends with the term. It is kept for the goroutines that answer the
	// loop later; nothing in the loop waits on it.
	ctx context.Context

	inbox  chan func()
	ended  chan struct{} // closed when the loop has ended
	commit *committer
	pool   *agents.Pool

	counter uint64 // of attempts and arrivals in this epoch

	nodes    map[resource.NodeID]*node
	order    []*place.Node
	lastHost *fit.Host // whose score tables a new host of the same kind shares
	units    map[string]*unit
	jobs     map[string]*job    // by namespace/name
	members  map[string]*member // by namespace/name: all allocations clients see
	attempts map[resource.TxID]*attempt
	requests map[string]request // by tenant/request id
	queue    queue.Queue
	quotas   *quotas

	// generation grows whenever something was freed or added: what failed
	// before may fit now. hopeless holds demands that failed at it.
	generation uint64
	hopeless   map[string]uint64

	requestLease store.LeaseID
	compactedAt  time.Time
	compactRev   resource.Revision // the store's revision at compactedAt
	leasedAt     time.Time
	terminal     []terminalRecord // ascending by when
	metrics      *metrics
}

// member is one line among the allocations.
type member struct {
	unit  *unit
	index int
}

// request remembers what a request id made.
type request struct {
	unit *unit // for both kinds: a job's first unit; nil when it was gone already
	hash string
	when time.Time
}

// terminalRecord waits to be collected.
type terminalRecord struct {
	tx   resource.TxID
	when time.Time
}

// inboxSize lets agents' streams and clients run ahead of the loop a little;
// beyond it they wait.
const inboxSize = 1024

// errDeposed ends a wait on a leader that has lost its office.
var errDeposed = errors.New("this coordinator no longer leads")

// post hands f to the loop; it may block, and drops f once the loop has ended.
func (l *leader) post(f func()) {
	select {
	case l.inbox <- f:
	case <-l.ended:
	}
}

// do runs f in the loop and waits for it.
func (l *leader) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case l.inbox <- func() { f(); close(done) }:
	case <-l.ended:
		return errDeposed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-l.ended:
		return errDeposed
	}
}

// run is the loop. It returns when ctx ends.
func (l *leader) run(ctx context.Context) {
	defer close(l.ended)
	housekeeping := time.NewTicker(time.Second)
	defer housekeeping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-l.inbox:
			f()
			l.drain()
		case <-housekeeping.C:
			l.housekeep(ctx)
		}
		l.schedule()
	}
}

// drain takes what else is waiting, so that one scheduling pass and one shared
// Txn serve it all.
func (l *leader) drain() {
	for range inboxSize {
		select {
		case f := <-l.inbox:
			f()
		default:
			return
		}
	}
}

// wake lets everything that waits be tried again.
func (l *leader) wake() {
	l.generation++
	clear(l.hopeless)
	l.queue.Wake()
}

// nextTx draws an attempt's identifier.
func (l *leader) nextTx(unit resource.UnitUID) resource.TxID {
	l.counter++ // model: mutant ATTEMPT_REUSED
	var nonce resource.Nonce
	rand.Read(nonce[:])
	return resource.NewTxID(unit, l.epoch, l.counter, nonce)
}

// node returns the view of a node, made on first sight.
func (l *leader) node(id resource.NodeID) *node {
	n := l.nodes[id]
	if n == nil {
		n = newNode(id)
		l.nodes[id] = n
		i, _ := slices.BinarySearchFunc(l.order, id, func(v *place.Node, id resource.NodeID) int { return cmp.Compare(v.ID, id) })
		l.order = slices.Insert(l.order, i, &n.view)
	}
	return n
}

// step drives a transaction and carries out its effects.
func (l *leader) step(a *attempt, in txn.Input) { l.perform(a, a.machine.Step(in)) }

// deliver takes an agent's event from the pool.
func (l *leader) deliver(e agents.Event) { l.post(func() { l.agentEvent(e) }) }

// member finds an allocation as clients name it.
func (l *leader) member(namespace, name string) (*unit, int, *api.Status) {
	m := l.members[namespace+"/"+name]
	if m == nil {
		return nil, 0, api.Errorf(404, "allocation %s not found in namespace %s", name, namespace)
	}
	return m.unit, m.index, nil
}
