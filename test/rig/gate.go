package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
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
	cluster *Cluster
	proc    *process

	mu     sync.Mutex
	faults func(record.Txn) Fault
	under  string // reads below it fail with reads
	reads  error
	leases error
}

// OnTxn lets f choose a fault for every Txn from now on; nil ends it. It runs
// in the caller's goroutine.
func (g *Gate) OnTxn(f func(record.Txn) Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = f
}

// FailUnder makes every Get and Range below a prefix fail from now on, but for looks at
// an earlier revision; nil ends the failures.
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

func (g *Gate) chooser() func(record.Txn) Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.faults
}

// mayRead is the near side of a read. FailUnder fails the read by its key or prefix below.
func (g *Gate) mayRead(verb, key, below string) error {
	if !g.proc.pass() {
		return store.ErrClosed
	}
	g.mu.Lock()
	under, err := g.under, g.reads
	g.mu.Unlock()
	if err != nil && strings.HasPrefix(below, under) {
		return err
	}
	name, node := readStep(verb, key)
	return g.at(name, false, node)
}

// mayLease is the near side of a lease's call.
func (g *Gate) mayLease(name string) error {
	if !g.proc.pass() {
		return store.ErrClosed
	}
	g.mu.Lock()
	err := g.leases
	g.mu.Unlock()
	if err != nil {
		return err
	}
	return g.at(name, false, "")
}

// at is one side of a step of this process; an error is what it ends with.
func (g *Gate) at(name string, after bool, node resource.NodeID) error {
	if err := g.cluster.at(Step{Name: name, After: after, Coordinator: g.proc.name, Node: node}); err != nil {
		return err
	}
	if !g.proc.pass() {
		return store.ErrClosed
	}
	return nil
}

// Txn implements store.KVStore.
func (g *Gate) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if err := ctx.Err(); err != nil {
		return record.TxnResult{}, err
	}
	if !g.proc.pass() {
		return record.TxnResult{}, store.ErrClosed
	}
	fault := None
	if f := g.chooser(); f != nil {
		fault = f(t)
	}
	switch fault {
	case Lost:
		return unknown("the request was lost")
	case Late:
		g.late(t)
		return unknown("the request is on its way")
	case CrashBefore:
		g.proc.kill()
		go g.crash()
		return record.TxnResult{}, store.ErrClosed
	}
	names, node := TxnSteps(t)
	if err := g.txnAt(names, false, node); err != nil {
		return record.TxnResult{}, err
	}
	result, err := g.commit(ctx, t)
	if err != nil {
		return result, err
	}
	if err := g.txnAt(names, true, node); err != nil {
		return record.TxnResult{}, err
	}
	switch fault {
	case AnswerLost:
		return unknown("the answer was lost")
	case CrashAfter:
		g.proc.kill()
		go g.crash()
		return record.TxnResult{}, store.ErrClosed
	}
	return result, nil
}

func unknown(why string) (record.TxnResult, error) {
	return record.TxnResult{}, fmt.Errorf("%w: %s", record.ErrUnknownOutcome, why)
}

// txnAt is one side of all the steps that a Txn is.
func (g *Gate) txnAt(names []string, after bool, node resource.NodeID) error {
	for _, name := range names {
		if err := g.at(name, after, node); err != nil && !errors.Is(err, store.ErrClosed) {
			return fmt.Errorf("%w: %w", record.ErrUnknownOutcome, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// commit lets a Txn land and notes who sent it. A program that was paused sends
// what it was about to send, whatever the time is now.
func (g *Gate) commit(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	result, err := g.Store.Txn(context.WithoutCancel(ctx), t)
	if err == nil && result.Succeeded {
		g.cluster.audit.landed(g.proc.name, result.Revision, t)
	}
	return result, err
}

// late sends a Txn after a delay, whatever has become of the process by then.
func (g *Gate) late(t record.Txn) {
	g.delayed.Go(func() {
		<-time.NewTimer(g.Delay()).C
		_, _ = g.commit(context.Background(), t) // nobody waits for it any more
	})
}

// Get implements store.KVStore.
func (g *Gate) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	if err := g.mayRead("read", key, key); err != nil {
		return record.KV{}, false, 0, err
	}
	kv, found, revision, err := g.Store.Get(ctx, key)
	if err == nil {
		name, node := readStep("read", key)
		err = g.at(name, true, node)
	}
	return kv, found, revision, err
}

// Range implements store.KVStore.
func (g *Gate) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error) {
	below := prefix
	if o.AtRevision != 0 {
		below = ""
	}
	if err := g.mayRead("read", prefix, below); err != nil {
		return nil, 0, err
	}
	kvs, revision, err := g.Store.Range(ctx, prefix, o)
	if err == nil {
		name, node := readStep("read", prefix)
		err = g.at(name, true, node)
	}
	return kvs, revision, err
}

// Watch implements store.Watcher. Each batch is a step; where that ends in an
// error, so does the watch.
func (g *Gate) Watch(ctx context.Context, prefix string, o store.WatchOptions) <-chan record.Batch {
	out := make(chan record.Batch)
	ctx, cancel := context.WithCancel(ctx)
	in := g.Store.Watch(ctx, prefix, o)
	name, node := readStep("watch", prefix)
	go func() {
		defer cancel()
		defer close(out)
		for b := range in {
			if !g.proc.pass() {
				return
			}
			if err := g.at(name, false, node); err != nil {
				b = record.Batch{Err: err}
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.Err != nil || g.at(name, true, node) != nil {
				return
			}
		}
	}()
	return out
}

// Grant implements store.Leaser.
func (g *Gate) Grant(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := g.mayLease("lease grant"); err != nil {
		return store.Lease{}, err
	}
	lease, err := g.Store.Grant(ctx, ttl)
	if err == nil {
		err = g.at("lease grant", true, "")
	}
	return lease, err
}

// KeepAlive implements store.Leaser.
func (g *Gate) KeepAlive(ctx context.Context, id record.LeaseID) error {
	if err := g.mayLease("lease renewal"); err != nil {
		return err
	}
	if err := g.Store.KeepAlive(ctx, id); err != nil {
		return err
	}
	return g.at("lease renewal", true, "")
}

// Revoke implements store.Leaser.
func (g *Gate) Revoke(ctx context.Context, id record.LeaseID) error {
	if err := g.mayLease("lease revocation"); err != nil {
		return err
	}
	if err := g.Store.Revoke(ctx, id); err != nil {
		return err
	}
	return g.at("lease revocation", true, "")
}

// Writes reports whether a Txn writes a transaction's record in a state.
func Writes(t record.Txn, state grant.RecordState) bool {
	for _, op := range t.Then {
		if op.Delete || !strings.HasPrefix(op.Key, record.TxPrefix) {
			continue
		}
		if r, err := record.Decode[record.Tx](op.Key, op.Value); err == nil && r.State == state {
			return true
		}
	}
	return false
}

// Touches reports whether a Txn writes or deletes a key below a prefix.
func Touches(t record.Txn, prefix string) bool {
	for _, op := range t.Then {
		if strings.HasPrefix(op.Key, prefix) {
			return true
		}
	}
	return false
}

// Once returns a chooser that gives a fault to the first Txn that fits, and a
// channel that closes then.
func Once(fault Fault, fits func(record.Txn) bool) (func(record.Txn) Fault, <-chan struct{}) {
	done := make(chan struct{})
	var once sync.Once
	return func(t record.Txn) Fault {
		hit := None
		if fits(t) {
			once.Do(func() { hit = fault; close(done) })
		}
		return hit
	}, done
}
