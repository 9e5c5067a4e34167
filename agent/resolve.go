package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// resolver asks coordinators for records that the owner wants to know. A record
// that cannot be read is left out: the owner asks again, and keeps its promise.
type resolver struct {
	agent *Agent
	more  chan struct{} // capacity 1: there is something in wanted

	mu     sync.Mutex
	wanted map[resource.TxID]question
}

// question is a question about a record, with the grant's state at that time.
type question struct {
	fence bool
	asked grant.State
}

func newResolver(a *Agent) *resolver {
	return &resolver{agent: a, more: make(chan struct{}, 1), wanted: map[resource.TxID]question{}}
}

// want never blocks.
func (r *resolver) want(tx resource.TxID, q question) {
	r.mu.Lock()
	r.wanted[tx] = q
	r.mu.Unlock()
	wake(r.more)
}

func (r *resolver) take() map[resource.TxID]question {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.wanted
	r.wanted = map[resource.TxID]question{}
	return batch
}

// run resolves until ctx ends.
func (r *resolver) run(ctx context.Context) {
	for {
		select {
		case <-r.more:
		case <-ctx.Done():
			return
		}
		batch := r.take()
		txs := make([]resource.TxID, 0, len(batch))
		for tx := range batch {
			txs = append(txs, tx)
		}
		slices.Sort(txs)
		for _, tx := range txs {
			if err := r.one(ctx, tx, batch[tx]); err != nil {
				r.agent.log.Warn("record_unreadable", "tx", string(tx), "fence", batch[tx].fence, "error", err)
				break // nobody answers: the owner asks again
			}
		}
	}
}

func (r *resolver) one(ctx context.Context, tx resource.TxID, q question) error {
	record, err := r.agent.calls.Resolve(ctx, r.agent.config.Node, tx, q.fence)
	if err != nil {
		return err
	}
	return r.agent.owner.send(ctx, item{
		command: ledger.Resolved{Tx: tx, State: record.State, Revision: record.Revision, Grace: record.Grace, Asked: q.asked},
	})
}

// listener is the session that may get news, or nil.
func (o *owner) listener() *rpc.Outbox {
	if !o.ledger.Known() {
		return nil
	}
	return o.session
}

// auditEvery is at most the time between two registrations: each compares the
// store's records with the ledger, and sees whether the store has gone back.
const auditEvery = 10 * time.Minute

// registrar registers this incarnation, reads the store's records of the node
// and has the owner apply them: at the start, on every request, and at
// intervals, until ctx ends.
func (a *Agent) registrar(ctx context.Context) {
	for {
		for attempt := 0; ; attempt++ {
			err := a.registerOnce(ctx)
			a.link.registers(err)
			if err == nil || ctx.Err() != nil || errors.Is(err, rpc.ErrStopping) {
				break
			}
			a.doubtIdentity(err)
			wait := backoff(attempt, 100*time.Millisecond, 5*time.Second)
			level := a.log.Debug
			if attempt%10 == 3 {
				level = a.log.Warn
			}
			level("not registered yet", "attempt", attempt+1, "retry_in", wait.String(), "error", err)
			if !pauseUntil(ctx, wait, a.register) {
				return
			}
		}
		if !a.awaitAudit(ctx) {
			return
		}
	}
}

// registerOnce is register, read, apply, in this order; model: mutants READ_BEFORE_REGISTERING, REJOIN_WITHOUT_READING
func (a *Agent) registerOnce(ctx context.Context) error {
	// The highest revision before the store is asked: a read at a lower revision shows a
	// store that has gone back. A revision received meanwhile may be higher.
	var heard resource.Revision
	var known rpc.KnownStore
	if err := a.owner.ask(ctx, func(o *owner) { heard, known = o.ledger.Heard(), rpc.KnownOf(o.ledger) }); err != nil {
		return err
	}
	announced := a.contact.announce()
	left := a.deps.Now()
	done, err := a.calls.Register(ctx, rpc.Registration{
		AssumeDeadAfter: announced, StartsWork: a.config.Run != nil, RunsContainers: a.config.Run.runsContainers(), MountsFolders: a.config.Run.mountsFolders(),
		Cluster: a.config.Cluster, Node: a.config.Node, Incarnation: a.Incarnation(), Host: a.hardware.Load().wire,
		Address: a.address, Version: a.config.Version, Known: known,
	})
	if err != nil {
		return err
	}
	a.contact.registered(announced, left)
	records, read, err := a.calls.ReadNode(ctx, a.config.Node)
	if err != nil {
		return err
	}
	if _, err = a.owner.do(ctx, registration(done, read, heard, records)); err != nil {
		return err
	}
	a.registered.Store(true)
	return nil
}

// registration joins a registration and the read after it; a revision of 0 is
// unknown.
func registration(done rpc.Registered, read, heard resource.Revision, records []ledger.Record) ledger.Registered {
	c := ledger.Registered{Revision: done.Revision, Store: done.Store, Heard: max(heard, done.Store), Lost: done.Lost != "", Marks: done.Marks, Records: records}
	if c.Store == 0 || read > 0 && read < c.Store {
		c.Store = read
	}
	return c
}
