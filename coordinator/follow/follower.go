package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/events"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Follower is a coordinator's cache of the store: every key of the store as of
// one revision, kept up to date by a watch. It answers reads, knows the leader,
// and is the start of the next term of this coordinator. One goroutine (Run)
// writes it; any may read it.
type Follower struct {
	name       string
	store      store.Store
	log        *slog.Logger
	check      time.Duration
	index      readIndex
	written    written
	moved      func(resource.Revision)
	forget     func(context.Context, *record.WentBackError)
	leads      func() bool
	registered func(News)
	noted      func(record.Audit)
	saw        func(*record.KV)
	restored   string // the mark of the last restoration of the store, or "", under mu
	reborn     func()
	// allocations is Options.NamespaceAllocations.
	allocations int
	loading     bool          // of all keys at once, under mu
	rights      *access.Table // changed under mu

	owners atomic.Pointer[owners]        // replaced under mu
	mode   atomic.Pointer[api.QuotaMode] // likewise; nil for Normal, never changed
	rates  atomic.Pointer[rates]         // likewise
	live   atomic.Int32                  // len(leaders) of revision

	mu       sync.Mutex
	revision resource.Revision // of kvs; 0: nothing loaded yet
	kvs      map[string]record.KV
	leaders  map[string]record.KV // those of kvs below record.LeaderPrefix
	// requests are the requests remembered below record.RequestsPrefix, which
	// kvs leaves out: there are very many, and readers need no more of them.
	requests map[record.RequestDigest]record.Remembered
	// events are those of all changes since the follower began, or since the store
	// went back; nil until the first load.
	events *events.Log
	// past is what the store could forget.
	past past
	// cache is of the same revision once refreshed. unseen: it has none of the
	// loaded keys yet.
	cache   *objects.Cache
	unseen  bool
	broken  error // the reason why the loaded keys cannot be shown
	feeds   feeds
	kept    []keptView    // of lists that go on, oldest first
	changed chan struct{} // closed and replaced whenever revision changes
	restart func()        // ends the watch, so that everything is loaded anew

	replays chan struct{} // one for each reading of the store's past
}

// Options are the parts that a follower works with.
type Options struct {
	// Name is the coordinator's, as the source of its events.
	Name  string
	Store store.Store
	Log   *slog.Logger
	// Check is how often the store is asked how far it is.
	Check time.Duration
	// NamespaceAllocations is the limit of a namespace that has none of its own.
	NamespaceAllocations int
	// Moved takes the cache's revision whenever it changes; it must not block.
	Moved func(resource.Revision)
	// Forget ends the term that is built on the store's past, and has the store
	// answer again.
	Forget func(context.Context, *record.WentBackError)
	// Leads reports whether this coordinator leads: then it keeps a history for
	// watches only while somebody needs one.
	Leads func() bool
	// Registered takes each registration and each new address of a node that the
	// watch brings; it must not block.
	Registered func(News)
	// Rights takes the access tokens and the role bindings; nil = nobody needs them.
	Rights *access.Table
	// Noted takes each change of a person that the store has, some of them more than
	// once; it must not block. nil = nobody needs them.
	Noted func(record.Audit)
	// Saw takes each loaded or written key, must not block and keeps no pointer; may be
	// nil.
	Saw func(*record.KV)
	// Reborn is called after the declaration of a restored store, and must not block; may
	// be nil.
	Reborn func()
}

// New returns a follower that has not loaded anything yet.
func New(o Options) *Follower {
	if o.Rights == nil {
		o.Rights = access.NewTable(o.Log)
	}
	return &Follower{
		name: o.Name, store: o.Store, log: o.Log, check: o.Check, index: readIndex{store: o.Store}, leads: o.Leads, moved: o.Moved, forget: o.Forget,
		registered: o.Registered, rights: o.Rights, noted: o.Noted, changed: make(chan struct{}), restart: func() {}, feeds: newFeeds(), replays: make(chan struct{}, mostReplays),
		allocations: o.NamespaceAllocations, saw: o.Saw, reborn: o.Reborn,
	}
}

// Waits of a follower.
const (
	firstReload = 50 * time.Millisecond // after a load that failed, doubling to lastReload
	lastReload  = 2 * time.Second
)

// CatchUp bounds the time that a read waits until the cache has the store's
// revision of the call.
const CatchUp = time.Second

// ErrBehind refuses a read that would be older than it may be.
var ErrBehind = errors.New("this coordinator has not caught up with the store")

// Run loads and follows until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	wait := firstReload
	for ctx.Err() == nil {
		watch, cancel := context.WithCancel(ctx)
		from, err := f.load(watch, cancel)
		if err == nil {
			wait = firstReload
			err = f.follow(watch, from)
		}
		cancel()
		var back *record.WentBackError
		if errors.As(err, &back) {
			f.drop()
			f.forget(ctx, back)
			continue
		}
		if ctx.Err() == nil && err != nil {
			f.log.Warn("cache_interrupted", "error", err, "retry_in", wait)
			if !pause(ctx, wait) {
				return
			}
			wait = min(2*wait, lastReload)
		}
	}
}

// drop forgets the loaded keys, so that no read shows them any more.
func (f *Follower) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = 0
	f.kept, f.events = nil, nil
	f.feeds.end(&objects.GoneError{Reason: "the store was restored from a backup"})
}

// load takes everything at one revision; restart ends the watch that begins
// with the load.
func (f *Follower) load(ctx context.Context, restart func()) (resource.Revision, error) {
	kvs, rev, err := f.store.Range(ctx, record.Root, store.RangeOptions{})
	if err != nil {
		return 0, fmt.Errorf("load the cache: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if rev < f.revision {
		f.log.Error("store_went_back", "revision_before", int64(f.revision), "revision_now", int64(rev))
		f.events = nil
	}
	f.kvs, f.leaders, f.requests = map[string]record.KV{}, map[string]record.KV{}, map[record.RequestDigest]record.Remembered{}
	f.owners.Store(nil)
	f.rates.Store(nil)
	f.mode.Store(nil)
	f.past.position = 0
	f.rights.Reset()
	f.loading = true
	for _, kv := range kvs {
		f.put(kv)
	}
	f.loading = false
	f.noteRestored(f.kvs[record.LastRestoredKey])
	f.restart = restart
	f.unseen = true
	f.feeds.reloaded()
	f.move(rev)
	f.log.Debug("cache_loaded", "revision", int64(rev), "keys", len(kvs))
	return rev, nil
}

// put takes a key. f.mu is held.
func (f *Follower) put(kv record.KV) {
	if f.saw != nil {
		f.saw(&kv)
	}
	if kv.Key == record.LastRestoredKey && !f.loading {
		f.noteRestored(kv)
	}
	of := f.written.take(&kv)
	if strings.HasPrefix(kv.Key, record.RequestsPrefix) {
		if key, r, err := readRequest(kv, of); err == nil { // else the next term reads it, and reports the fault
			f.requests[key] = r
			return
		}
	}
	if apart := f.noteChange(&kv, &of); apart {
		return
	}
	if of != nil && !f.unseen && !f.loading {
		f.cache.Know(kv.Key, of)
	}
	f.kvs[kv.Key] = kv
	f.noteOwner(kv.Key, &kv)
	f.noteRate(kv.Key, &kv)
	f.noteMode(kv.Key, &kv)
	f.notePosition(kv.Key, &kv)
	f.rights.Note(kv.Key, &kv)
	if strings.HasPrefix(kv.Key, record.LeaderPrefix) {
		f.leaders[kv.Key] = kv
	}
}

// readRequest is record.ReadRequest, where of points to the record or is nil.
func readRequest(kv record.KV, of any) (record.RequestDigest, record.Remembered, error) {
	if rec, known := of.(*record.Request); known {
		return rec.Digest(kv.Key)
	}
	return record.ReadRequest(kv)
}

// remove takes a key out. f.mu is held.
func (f *Follower) remove(key string) {
	if strings.HasPrefix(key, record.RequestsPrefix) {
		if tenant, id, err := record.ParseRequestKey(key); err == nil {
			delete(f.requests, record.DigestOfRequest(tenant, id))
		}
	}
	delete(f.kvs, key)
	f.noteOwner(key, nil)
	f.noteRate(key, nil)
	f.noteMode(key, nil)
	f.notePosition(key, nil)
	f.rights.Note(key, nil)
	delete(f.leaders, key)
}

// move notes that the cache is at a revision, and shows it: events come of each
// revision by itself. f.mu is held.
func (f *Follower) move(rev resource.Revision) {
	f.rights.Publish() // before anybody sees the revision
	f.revision = rev
	f.live.Store(int32(len(f.leaders)))
	f.moved(rev)
	f.refresh()
	if f.broken == nil {
		if !f.leads() {
			f.keepChanges()
		}
		f.feeds.publish(f.cache, rev)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// refresh brings the shown objects up to the revision. f.mu is held.
func (f *Follower) refresh() {
	first := f.unseen
	if f.unseen {
		f.unseen, f.broken, f.cache = false, nil, objects.New()
		f.cache.BoundAllocations(f.allocations)
		for key := range f.kvs {
			f.cache.Touch(key)
		}
	}
	if f.broken != nil {
		return
	}
	now := time.Now()
	if err := f.cache.Refresh(f.kvs, f.revision, now); err != nil {
		f.broken = fmt.Errorf("the store's state at revision %d cannot be shown: %w", f.revision, err)
		f.log.Error("cache_unreadable", "error", f.broken)
		return
	}
	if first {
		f.resumeEvents(now)
	}
}

// resumeEvents begins the events, or goes on with them after a load, which has not
// shown each change by itself. f.mu is held.
func (f *Follower) resumeEvents(now time.Time) {
	if f.events == nil {
		f.events = events.New(events.Default, now)
	} else {
		f.events.Resume(now)
	}
	f.cache.KeepEvents(f.events, f.name, f.revision, now)
}

// tidy ends a leader's history that nobody has needed for a while, and drops events
// and views that are too old.
func (f *Follower) tidy(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.leads() {
		f.feeds.needed = now // clients of a leader that dies come here
	}
	if f.feeds.idle(now) {
		f.cache.Forget()
		f.feeds.records = false
	}
	if !f.unseen {
		f.cache.ExpireEvents(now)
	}
	f.dropKept(now)
	f.past.sample(now, f.revision)
}

// follow takes changes until the watch ends; its error is the reason.
func (f *Follower) follow(ctx context.Context, from resource.Revision) error {
	batches := f.store.Watch(ctx, record.Root, store.WatchOptions{From: from + 1})
	check := time.NewTicker(f.check)
	defer check.Stop()
	tidy := time.NewTicker(time.Second)
	defer tidy.Stop()
	var late resource.Revision // where the cache was when it was last found behind
	for {
		select {
		case b, open := <-batches:
			switch {
			case !open && ctx.Err() == nil:
				return store.ErrClosed
			case !open:
				return ctx.Err()
			case b.Err != nil: // e.g. compacted: the missed changes are loaded
				return b.Err
			}
			f.apply(b)
		case now := <-tidy.C:
			f.tidy(now)
		case <-check.C:
			var err error
			if late, err = f.compare(ctx, late); err != nil {
				return err
			}
		}
	}
}

// apply takes the changes of one revision.
func (f *Follower) apply(b record.Batch) {
	for _, n := range f.take(b) {
		f.registered(n)
	}
}

// take is apply without telling the news that it returns.
func (f *Follower) take(b record.Batch) (told []News) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.past.count(b)
	for _, e := range b.Events {
		if n, is := f.newsOf(e); is {
			told = append(told, n)
		}
		if !f.unseen {
			f.cache.Touch(e.KV.Key)
		}
		if e.Type == record.EventDelete {
			f.remove(e.KV.Key)
		} else {
			f.put(e.KV)
		}
	}
	f.move(b.Revision)
	return told
}

// compare asks the store how far it is; one that does not answer is the watch's
// to notice. One that is behind the cache has been restored from a backup, and
// a watch would wait for its future. One that is ahead has changes that the
// watch does not bring: a cache that is late twice at the same revision is
// loaded anew.
func (f *Follower) compare(ctx context.Context, late resource.Revision) (resource.Revision, error) {
	known, _ := f.At()
	ctx, cancel := context.WithTimeout(ctx, CatchUp)
	defer cancel()
	rev, err := f.index.read(ctx)
	switch {
	case err != nil || rev == known:
		return 0, nil
	case rev < known:
		return 0, fmt.Errorf("the store is at revision %d and was at %d: it was restored from a backup", rev, known)
	case late == known:
		return 0, fmt.Errorf("the watch has stopped at revision %d, the store is at %d", known, rev)
	}
	return known, nil
}

// pause waits; it reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
