// Package store is the coordinator's access to its only durable state: the
// small interface that a store must offer, and the leader's election built on
// that interface. Keys, records, transactions and their outcomes are values of
// coordinator/record.
//
// It decides what an answer of the store means (done, refused, unknown). It
// does not decide what to write: transactions are coordinator/txn's, order is
// coordinator/queue's, limits are coordinator/quota's. Implementations:
// store/etcd (external or embedded) and store/mem (tests); store/storetest is
// the contract that all of them pass.
package store

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Lease is a time to live that keys can be attached to. When it ends, all its
// keys are deleted in one revision.
type Lease struct {
	ID record.LeaseID
	// TTL is what the store granted: whole seconds, never less than asked.
	TTL time.Duration
}

// RangeOptions narrow a Range. The zero value reads everything now.
type RangeOptions struct {
	// AtRevision reads the past; 0 is now. Below the floor it is a
	// *record.CompactedError, above the newest revision ErrFutureRevision.
	AtRevision resource.Revision
	// Limit is the most keys returned; 0 is no limit.
	Limit int
	// StartAfter skips keys up to and including it.
	StartAfter string
}

// WatchOptions say where a watch begins.
type WatchOptions struct {
	// From is the first revision wanted, at least 1. Read at R, then watch
	// from R+1, and nothing is missed or doubled.
	From resource.Revision
	// Prev asks for Event.Prev.
	Prev bool
}

// KVStore reads and writes. All reads are linearizable: they see every Txn
// that was acknowledged before they began.
type KVStore interface {
	// Txn commits t or refuses it. An error is either definite, and then
	// nothing was and will be written (*record.TooManyOpsError,
	// *record.TooLargeError, record.ErrLeaseGone, record.ErrDuplicateKey, …), or
	// it wraps record.ErrUnknownOutcome, and then t may have landed or may yet;
	// one that also wraps record.ErrWentBack landed, if it did, in the restored
	// store. The implementation never repeats a Txn by itself.
	Txn(ctx context.Context, t record.Txn) (record.TxnResult, error)
	// Get reads one key. The revision is that of the store at the read.
	Get(ctx context.Context, key string) (kv record.KV, found bool, rev resource.Revision, err error)
	// Range reads all keys that begin with prefix, ascending, as of one
	// revision, which it returns. Large ranges are paged internally.
	Range(ctx context.Context, prefix string, o RangeOptions) ([]record.KV, resource.Revision, error)
}

// Watcher follows changes.
type Watcher interface {
	// Watch delivers every revision that touches the prefix, in order, from
	// o.From on, over any loss of connection. The channel closes when ctx
	// ends, when the store is closed, or after a batch with Err: a
	// *record.CompactedError or a *record.WentBackError, after which the receiver
	// reads anew and watches from there. Watch does not block; its goroutine waits
	// while the receiver is slow.
	Watch(ctx context.Context, prefix string, o WatchOptions) <-chan record.Batch
}

// Leaser gives out leases.
type Leaser interface {
	// Grant makes a lease. ttl is rounded up to whole seconds.
	Grant(ctx context.Context, ttl time.Duration) (Lease, error)
	// KeepAlive starts the lease's time anew, once. record.ErrLeaseGone if the
	// lease has ended.
	KeepAlive(ctx context.Context, id record.LeaseID) error
	// Revoke ends the lease and deletes its keys. record.ErrLeaseGone if the lease
	// has ended already.
	Revoke(ctx context.Context, id record.LeaseID) error
}

// Store is all of it. Methods may be called from any goroutine and block no
// longer than their ctx: while the store cannot be reached or has no majority,
// reads, grants and renewals are tried again until then. After Close calls
// return ErrClosed.
type Store interface {
	KVStore
	Watcher
	Leaser
	// Acknowledge ends the refusals that follow a *record.WentBackError. Its
	// caller has dropped everything that was read from the store before and has
	// ended every term of leadership. An error that is not the present one, e.g.
	// an earlier one, changes nothing.
	Acknowledge(*record.WentBackError)
	// Compact forgets what is older than rev, which stays readable. At or
	// below the present floor it is a *record.CompactedError.
	Compact(ctx context.Context, rev resource.Revision) error
	// MaxTxnOps is the most operations of one Txn, as found at start.
	MaxTxnOps() int
	// Close ends all watches and frees the store. It may block for the time
	// that a clean stop takes.
	Close() error
}
