package audit

import (
	"context"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/lead/entries"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
)

// Kept is how long the store keeps the entry of a change.
const Kept = 25 * time.Hour

// Noted is a store that notes the changes of persons: each Txn under the context of a
// request that asks for a change (service.ChangeOf) carries the entry of the change.
// The Txns of one request carry one key. Every coordinator writes tokens, bindings and
// certificates by itself through it; the leader notes its own changes.
func Noted(s store.Store) store.Store { return &noted{Store: s} }

type noted struct {
	store.Store

	mu     sync.Mutex
	hour   entries.Hour
	lease  record.LeaseID
	leased time.Time
}

// Txn implements store.KVStore.
func (n *noted) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	change := service.ChangeOf(ctx)
	if change == nil || len(t.Then) == 0 {
		return n.Store.Txn(ctx, t)
	}
	lease, entry, err := n.leaseFor(ctx, time.Now(), change)
	if err != nil {
		return record.TxnResult{}, err
	}
	t.Then = append(t.Then[:len(t.Then):len(t.Then)], entry.Note(lease, t.Then))
	return n.Store.Txn(ctx, t)
}

// leaseFor is the lease of the entries of the present hour, and the entry for a change. The
// hour has the entries of the Txns whose answers were lost, too: a count may be too great.
func (n *noted) leaseFor(ctx context.Context, now time.Time, change *record.Audit) (record.LeaseID, record.Audit, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	lease, err := n.leaseAt(ctx, now)
	if err != nil {
		return 0, record.Audit{}, err
	}
	return lease, n.hour.Next(now, *change), nil
}

// leaseAt is the lease of the present hour. n.mu is held.
func (n *noted) leaseAt(ctx context.Context, now time.Time) (record.LeaseID, error) {
	if n.lease != 0 && now.Sub(n.leased) < time.Hour {
		return n.lease, nil
	}
	lease, err := n.Grant(ctx, Kept)
	if err != nil {
		return 0, err
	}
	n.lease, n.leased = lease.ID, now
	return n.lease, nil
}

// NoteIn notes the request of a context that changes nothing else in the store, such as
// a look at the output of a job.
func NoteIn(s store.Store) func(context.Context) error {
	n := &noted{Store: s}
	return func(ctx context.Context) error {
		request := service.ChangeOf(ctx)
		if request == nil {
			return nil
		}
		lease, entry, err := n.leaseFor(ctx, time.Now(), request)
		if err != nil {
			return err
		}
		_, err = n.Store.Txn(ctx, record.Txn{Then: []record.Op{entry.Note(lease, nil)}})
		return err
	}
}
