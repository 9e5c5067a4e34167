// Package mem is a store in memory with the semantics of etcd: one revision
// per change, history until compaction, leases, watches from the past. It is
// for tests, which can also make it fail or forget answers at chosen points;
// it keeps nothing and decides nothing.
//
// All times are taken by time.AfterFunc and time.Now, so that inside a
// testing/synctest bubble leases run on the bubble's clock.
package mem

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// The limits of the embedded etcd, which a Store has unless told otherwise.
const (
	DefaultMaxTxnOps = 2048
	maxTxnBytes      = 10 << 20
)

// Options of a store. The hooks run in the caller's goroutine without any lock,
// so they may block, read the store or run further transactions.
type Options struct {
	// MaxTxnOps is the limit of one Txn; 0 is DefaultMaxTxnOps.
	MaxTxnOps int
	// BeforeCommit sees every Txn. An error is returned in place of a commit:
	// with record.ErrUnknownOutcome, a Txn that was lost on its way.
	BeforeCommit func(record.Txn) error
	// AfterCommit sees every definite outcome. An error is returned in its
	// place: with record.ErrUnknownOutcome, an answer that was lost.
	AfterCommit func(record.Txn, record.TxnResult) error
}

// version is a key as of one revision until the key's next version.
type version struct {
	kv      record.KV
	deleted bool
}

// change is all that one revision did.
type change struct {
	rev    resource.Revision
	events []record.Event // with Prev
}

type lease struct {
	ttl   time.Duration
	ends  time.Time
	timer *time.Timer
	keys  map[string]struct{}
}

// database is what a store holds; all connections to it share it.
type database struct {
	mu sync.Mutex
	// Invariant: names and fresh together hold exactly the keys of keys, names
	// ascending, fresh as they came; the versions
	// of a key ascend by ModRev; changes holds the revisions of
	// [floor, rev] in order, each of which changed something.
	rev      resource.Revision
	floor    resource.Revision
	keys     map[string][]version
	names    []string
	fresh    []string
	changes  []change
	leases   map[record.LeaseID]*lease
	lastID   record.LeaseID
	watchers map[*watcher]struct{}
	stores   []*Store // those not closed
	full     bool
	over     bool // no lease ends any more
}

// Store is a store.Store: one client's connection to a database.
type Store struct {
	*database
	o      Options
	owner  bool // made the database, and ends it
	closed chan struct{}

	// Under database.mu: the highest revision that this client has seen, and
	// what it must acknowledge if the database was put back below it.
	seen     resource.Revision
	wentBack *record.WentBackError
}

// Open makes an empty store at revision 1.
func Open(o Options) *Store {
	db := &database{
		rev:      1,
		keys:     make(map[string][]version),
		leases:   make(map[record.LeaseID]*lease),
		watchers: make(map[*watcher]struct{}),
	}
	s := db.connect(o)
	s.owner = true
	return s
}

// Connect makes another client of the same database, with hooks of its own and
// its own view of the past.
func (s *Store) Connect(o Options) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connect(o)
}

func (db *database) connect(o Options) *Store {
	if o.MaxTxnOps == 0 {
		o.MaxTxnOps = DefaultMaxTxnOps
	}
	s := &Store{database: db, o: o, closed: make(chan struct{})}
	db.stores = append(db.stores, s)
	return s
}

// MaxTxnOps is the limit set at Open.
func (s *Store) MaxTxnOps() int { return s.o.MaxTxnOps }

// Close ends the client's watches, and all leases if it made the database.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return nil
	}
	close(s.closed)
	s.stores = slices.DeleteFunc(s.stores, func(other *Store) bool { return other == s })
	if s.owner {
		s.over = true
		for _, l := range s.leases {
			l.timer.Stop()
		}
	}
	return nil
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// usable is called with mu held at the start of every operation.
func (s *Store) usable(ctx context.Context) error {
	if s.isClosed() {
		return store.ErrClosed
	}
	if s.wentBack != nil {
		return s.wentBack
	}
	return ctx.Err()
}

// saw is called with mu held: the client learns of the present revision.
func (s *Store) saw() resource.Revision {
	s.seen = max(s.seen, s.rev)
	return s.rev
}

// Get reads one key.
func (s *Store) Get(ctx context.Context, key string) (record.KV, bool, resource.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return record.KV{}, false, 0, err
	}
	kv := s.live(key)
	return kv, kv.ModRev != 0, s.saw(), nil
}

// Range reads all keys that begin with prefix.
func (s *Store) Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, 0, err
	}
	at := o.AtRevision
	switch {
	case at == 0:
		at = s.saw()
	case at > s.rev:
		return nil, 0, store.ErrFutureRevision
	case at < s.floor:
		return nil, 0, &record.CompactedError{Asked: at, Floor: s.floor}
	}
	s.sortNames()
	var kvs []record.KV
	first := sort.SearchStrings(s.names, max(prefix, o.StartAfter))
	for _, name := range s.names[first:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if o.StartAfter != "" && name <= o.StartAfter {
			continue
		}
		if o.Limit > 0 && len(kvs) == o.Limit {
			break
		}
		if v, ok := versionAt(s.keys[name], at); ok && !v.deleted {
			kvs = append(kvs, v.kv)
		}
	}
	return kvs, at, nil
}

// sortNames puts the keys that came since the last range in their places.
func (db *database) sortNames() {
	if len(db.fresh) == 0 {
		return
	}
	slices.Sort(db.fresh)
	old := db.names
	db.names = make([]string, 0, len(old)+len(db.fresh))
	for _, name := range db.fresh {
		n, _ := slices.BinarySearch(old, name)
		db.names = append(append(db.names, old[:n]...), name)
		old = old[n:]
	}
	db.names, db.fresh = append(db.names, old...), nil
}

// versionAt returns the newest version not newer than rev.
func versionAt(vs []version, rev resource.Revision) (version, bool) {
	i := sort.Search(len(vs), func(i int) bool { return vs[i].kv.ModRev > rev })
	if i == 0 {
		return version{}, false
	}
	return vs[i-1], true
}

// Compact forgets what is older than rev.
func (s *Store) Compact(ctx context.Context, rev resource.Revision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if rev <= s.floor {
		return &record.CompactedError{Asked: rev, Floor: s.floor}
	}
	if rev > s.rev {
		return store.ErrFutureRevision
	}
	s.floor = rev
	s.sortNames()
	kept := s.names[:0]
	for _, name := range s.names {
		vs := s.keys[name]
		first := sort.Search(len(vs), func(i int) bool { return vs[i].kv.ModRev > rev })
		if first > 0 && !vs[first-1].deleted {
			first-- // still visible at rev
		}
		if first == len(vs) {
			delete(s.keys, name)
			continue
		}
		s.keys[name] = slices.Clone(vs[first:])
		kept = append(kept, name)
	}
	clear(s.names[len(kept):])
	s.names = kept
	first := sort.Search(len(s.changes), func(i int) bool { return s.changes[i].rev >= rev })
	s.changes = slices.Clone(s.changes[first:])
	return nil
}
