package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// leader is one term of office: everything the leader keeps in memory and the
// one goroutine that owns it. Others reach it through do and post.
//
// Invariant: every attempt is in attempts exactly while its machine has not
// ended; quotas charge exactly the transactions in attempts.
type leader struct {
	config Config
	store  store.Store
	log    *slog.Logger
	epoch  resource.Epoch
	// holds reports whether the term still goes on by this host's clocks.
	holds func() bool
	// leased reports whether a node's lease lives, as far as this coordinator
	// has followed the store.
	leased func(resource.NodeID) bool
	// banOf returns a node's ban, likewise; nil for none.
	banOf func(resource.NodeID) *record.Ban
	// ctx ends with the term. It is kept for the goroutines that answer the
	// loop later; nothing in the loop waits on it.
	ctx context.Context

	inbox  chan func()
	mail   *agents.Mailbox
	idle   uint64        // messages that said nothing new
	ended  chan struct{} // closed when the loop has ended
	commit *committer
	pool   *agents.Pool

	counter uint64 // of attempts and arrivals in this epoch

	view
	requests requests

	// generation grows whenever something was freed or added: what failed
	// before may fit now. hopeless holds demands that failed at it.
	generation uint64
	hopeless   map[string]uint64
	// expectant: a unit waits for another to be committed, to have it evicted.
	expectant bool
	adoptions map[resource.TxID]*adoption // that are under way

	reconciling bool // a node is
	restored    bool // it is in the account that the store was
	looking     bool // whether this term is still of use to an agent that refused it
	mayResign   func(resource.NodeID) bool
	// sever isolates a node at the end of this term; letBack ends that.
	sever   func(resource.NodeID, string)
	letBack func(resource.NodeID)
	// identity is the revision of a node's registration, as far as this
	// coordinator has followed the store; 0 where there is none.
	identityAt   func(resource.NodeID) resource.Revision
	requestLease record.LeaseID
	compactedAt  time.Time
	compactRev   resource.Revision // the store's revision at compactedAt
	leasedAt     time.Time
	terminal     []terminalRecord                           // ascending by when
	unheard      map[resource.TxID]map[resource.NodeID]bool // terminal records that wait for nodes to tell of themselves
	// doubtful are transactions that ended while a Txn for them was in doubt:
	// their records stay in this epoch.
	doubtful map[resource.TxID]bool
	sweptAt  time.Time // of fences
	metrics  *metrics
	account  *decisions.Tracker // nil: nobody keeps one
	census   census             // nil before the first creation
}

// terminalRecord waits to be collected.
type terminalRecord struct {
	tx   resource.TxID
	when time.Time
}

// inboxSize lets clients, timers and the store's answers run ahead of the loop a
// little; beyond it they wait. Agents' messages come through the mailbox.
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

// run is the loop. It returns when ctx ends, or when the term cannot go on.
func (l *leader) run(ctx context.Context) {
	defer close(l.ended)
	defer l.mail.Close()
	housekeeping := time.NewTicker(time.Second)
	defer housekeeping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-l.inbox:
			f()
			l.drain()
		case <-l.mail.Waiting():
			news, goesOn := l.hear()
			if !goesOn {
				return
			}
			if !news {
				continue
			}
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
	l.account.Freed(l.generation)
}

// nextTx draws an attempt's identifier.
func (l *leader) nextTx(unit resource.UnitUID) resource.TxID {
	l.counter++ // model: mutant ATTEMPT_REUSED
	var nonce resource.Nonce
	rand.Read(nonce[:])
	return resource.NewTxID(unit, l.epoch, l.counter, nonce)
}

// step drives a transaction and carries out its effects.
func (l *leader) step(a *attempt, in txn.Input) { l.perform(a, a.machine.Step(in)) }
