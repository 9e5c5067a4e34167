package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/resource"
)

// resolver asks coordinators for records that the owner wants to know. What
// cannot be had is left: the owner asks again, and keeps its promise.
type resolver struct {
	agent *Agent
	more  chan struct{} // capacity 1: there is something in wanted

	mu     sync.Mutex
	wanted map[resource.TxID]bool // to fence or not
}

func newResolver(a *Agent) *resolver {
	return &resolver{agent: a, more: make(chan struct{}, 1), wanted: map[resource.TxID]bool{}}
}

// want never blocks.
func (r *resolver) want(tx resource.TxID, fence bool) {
	r.mu.Lock()
	r.wanted[tx] = fence
	r.mu.Unlock()
	wake(r.more)
}

func (r *resolver) take() map[resource.TxID]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.wanted
	r.wanted = map[resource.TxID]bool{}
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
				r.agent.log.Warn("record cannot be read now; the grant stays as it is", "tx", string(tx), "fence", batch[tx], "error", err)
				break // nobody answers: the owner asks again
			}
		}
	}
}

func (r *resolver) one(ctx context.Context, tx resource.TxID, fence bool) error {
	record, err := r.agent.calls.Resolve(ctx, r.agent.config.Node, tx, fence)
	if err != nil {
		return err
	}
	return r.agent.owner.send(ctx, item{
		command: ledger.Resolved{Tx: tx, State: record.State, Revision: record.Revision, Grace: record.Grace},
	})
}

// listener is the session that may be told things, or nil.
func (o *owner) listener() *rpc.Outbox {
	if o.ledger.Registration() == 0 {
		return nil
	}
	return o.session
}

// registrar registers this incarnation, reads what the store has for the node
// and has the owner apply it, at the start and whenever it is wished, until
// ctx ends.
func (a *Agent) registrar(ctx context.Context) {
	for {
		for attempt := 0; ; attempt++ {
			err := a.registerOnce(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, rpc.ErrStopping) {
				break
			}
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
		select {
		case <-a.register:
		case <-ctx.Done():
			return
		}
	}
}

// registerOnce is register, read, apply, in this order; model: mutants READ_BEFORE_REGISTERING, REJOIN_WITHOUT_READING
func (a *Agent) registerOnce(ctx context.Context) error {
	revision, err := a.calls.Register(ctx, rpc.Registration{
		Cluster: a.config.Cluster, Node: a.config.Node, Incarnation: a.Incarnation(), Host: a.hardware.Load().wire,
		Address: a.address, Version: a.config.Version,
	})
	if err != nil {
		return err
	}
	records, err := a.calls.ReadNode(ctx, a.config.Node)
	if err != nil {
		return err
	}
	if _, err = a.owner.do(ctx, ledger.Registered{Revision: revision, Records: records}); err != nil {
		return err
	}
	a.registered.Store(true)
	return nil
}
