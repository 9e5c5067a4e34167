package rig

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// Fault is what happens to one Txn on its way.
type Fault uint8

// The faults.
const (
	None        Fault = iota
	Lost              // it never lands; the outcome is unknown
	Late              // it lands a while later; the outcome is unknown
	AnswerLost        // it lands; the outcome is unknown
	CrashBefore       // the process dies before it is sent
	CrashAfter        // it lands, and the process dies before it hears so
)

// Gate is one process' way to the store. When the process has died nothing of
// it reaches the store any more.
type Gate struct {
	*mem.Store
	// Delay is how long the next Late takes; it may be replaced before use.
	Delay   func() time.Duration
	crash   func()
	delayed *sync.WaitGroup

	mu     sync.Mutex
	dead   bool
	faults func(store.Txn) Fault
	under  string // reads below it fail with reads
	reads  error
	leases error
}

// OnTxn lets f choose a fault for every Txn from now on; nil ends it. It runs
// in the caller's goroutine.
func (g *Gate) OnTxn(f func(store.Txn) Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = f
}

// FailUnder makes every Get and Range below a prefix fail from now on; nil ends
// it.
func (g *Gate) FailUnder(prefix string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under, g.reads = prefix, err
}

// FailLeases makes every grant, renewal and revocation fail from now on; nil
// ends it.
func (g *Gate) FailLeases(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leases = err
}

func (g *Gate) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
}

// mayTxn, mayRead and mayLease say why a call fails at once, if it does.
func (g *Gate) mayTxn() (func(store.Txn) Fault, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return nil, store.ErrClosed
	}
	return g.faults, nil
}

func (g *Gate) mayRead(key string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.dead:
		return store.ErrClosed
	case strings.HasPrefix(key, g.under):
		return g.reads
	}
	return nil
}

func (g *Gate) mayLease() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return store.ErrClosed
	}
	return g.leases
}

// Txn implements store.KVStore.
func (g *Gate) Txn(ctx context.Context, t store.Txn) (store.TxnResult, error) {
	faults, err := g.mayTxn()
	if err != nil {
		return store.TxnResult{}, err
	}
	fault := None
	if faults != nil {
		fault = faults(t)
	}
	switch fault {
	case Lost:
		return store.TxnResult{}, fmt.Errorf("%w: the request was lost", store.ErrUnknownOutcome)
	case Late:
		g.late(t)
		return store.TxnResult{}, fmt.Errorf("%w: the request is on its way", store.ErrUnknownOutcome)
	case CrashBefore:
		g.kill()
		go g.crash()
		return store.TxnResult{}, store.ErrClosed
	}
	result, err := g.Store.Txn(ctx, t)
	switch {
	case err != nil:
		return result, err
	case fault == AnswerLost:
		return store.TxnResult{}, fmt.Errorf("%w: the answer was lost", store.ErrUnknownOutcome)
	case fault == CrashAfter:
		g.kill()
		go g.crash()
		return store.TxnResult{}, store.ErrClosed
	}
	return result, nil
}

// late sends a Txn after a delay, whatever has become of the process by then.
func (g *Gate) late(t store.Txn) {
	g.delayed.Go(func() {
		<-time.NewTimer(g.Delay()).C
		_, _ = g.Store.Txn(context.Background(), t) // nobody waits for it any more
	})
}

// Get implements store.KVStore.
func (g *Gate) Get(ctx context.Context, key string) (store.KV, bool, resource.Revision, error) {
	if err := g.mayRead(key); err != nil {
		return store.KV{}, false, 0, err
	}
	return g.Store.Get(ctx, key)
}

// Range implements store.KVStore.
func (g *Gate) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]store.KV, resource.Revision, error) {
	if err := g.mayRead(prefix); err != nil {
		return nil, 0, err
	}
	return g.Store.Range(ctx, prefix, o)
}

// Grant implements store.Leaser.
func (g *Gate) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := g.mayLease(); err != nil {
		return store.Lease{}, err
	}
	return g.Store.Grant(ctx, ttl)
}

// KeepAlive implements store.Leaser.
func (g *Gate) KeepAlive(ctx context.Context, id store.LeaseID) error {
	if err := g.mayLease(); err != nil {
		return err
	}
	return g.Store.KeepAlive(ctx, id)
}

// Revoke implements store.Leaser.
func (g *Gate) Revoke(ctx context.Context, id store.LeaseID) error {
	if err := g.mayLease(); err != nil {
		return err
	}
	return g.Store.Revoke(ctx, id)
}

// Writes reports whether a Txn writes a transaction's record in a state.
func Writes(t store.Txn, state store.TxState) bool {
	for _, op := range t.Then {
		if op.Delete || !strings.HasPrefix(op.Key, store.TxPrefix) {
			continue
		}
		if r, err := store.Decode[store.TxRecord](op.Key, op.Value); err == nil && r.State == state {
			return true
		}
	}
	return false
}

// Touches reports whether a Txn writes or deletes a key below a prefix.
func Touches(t store.Txn, prefix string) bool {
	for _, op := range t.Then {
		if strings.HasPrefix(op.Key, prefix) {
			return true
		}
	}
	return false
}

// Once returns a chooser that gives a fault to the first Txn that fits, and a
// channel that closes then.
func Once(fault Fault, fits func(store.Txn) bool) (func(store.Txn) Fault, <-chan struct{}) {
	done := make(chan struct{})
	var once sync.Once
	return func(t store.Txn) Fault {
		hit := None
		if fits(t) {
			once.Do(func() { hit = fault; close(done) })
		}
		return hit
	}, done
}
