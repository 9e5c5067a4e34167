package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// follower is a coordinator's cache of the store: every key of the store as of
// one revision, kept up to date by a watch. It answers reads, knows the leader,
// and is the start of the next term of this coordinator. One goroutine (run)
// writes it; any may read it.
type follower struct {
	store   store.Store
	log     *slog.Logger
	metrics *metrics
	check   time.Duration // how often the store is asked how far it is
	index   readIndex
	// forget ends the term that is built on the store's past, and has the store
	// answer again.
	forget func(context.Context, *record.WentBackError)
	// leads reports whether this coordinator leads: then nobody reads here, and
	// keys are taken without being looked into.
	leads func() bool
	// registered takes each registration and each new address of a node that the
	// watch brings; it must not block.
	registered func(news)

	mu       sync.Mutex
	revision resource.Revision // of kvs; 0: nothing loaded yet
	kvs      map[string]record.KV
	leaders  map[string]record.KV // those of kvs below record.LeaderPrefix
	// requests are the requests remembered below record.RequestsPrefix, which
	// kvs leaves out: there are very many, and readers need no more of them.
	requests map[lead.RequestKey]lead.Remembered
	// cache is of the same revision, unless unseen: then keys have changed
	// while nobody looked.
	cache   cache
	unseen  bool
	broken  error         // the reason why the loaded keys cannot be shown
	changed chan struct{} // closed and replaced whenever revision changes
	restart func()        // ends the watch, so that everything is loaded anew
}

func newFollower(c Config, s store.Store, log *slog.Logger, m *metrics, leads func() bool) *follower {
	return &follower{
		store: s, log: log, metrics: m, check: c.LeaseTTL / 2, index: readIndex{store: s}, leads: leads,
		changed: make(chan struct{}), restart: func() {},
		forget: func(_ context.Context, back *record.WentBackError) { s.Acknowledge(back) }, registered: func(news) {},
	}
}

// Waits of a follower.
const (
	firstReload = 50 * time.Millisecond // after a load that failed, doubling to lastReload
	lastReload  = 2 * time.Second
	// catchUp bounds the time that a read waits until the cache has the store's
	// revision of the call.
	catchUp = time.Second
)

// errBehind refuses a read that would be older than it may be.
var errBehind = errors.New("this coordinator has not caught up with the store")

// run loads and follows until ctx ends.
func (f *follower) run(ctx context.Context) {
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
func (f *follower) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision = 0
}

// load takes everything at one revision; restart ends the watch that begins
// with the load.
func (f *follower) load(ctx context.Context, restart func()) (resource.Revision, error) {
	kvs, rev, err := f.store.Range(ctx, record.Root, store.RangeOptions{})
	if err != nil {
		return 0, fmt.Errorf("load the cache: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if rev < f.revision {
		f.log.Error("store_went_back", "revision_before", int64(f.revision), "revision_now", int64(rev))
	}
	f.kvs, f.leaders, f.requests = map[string]record.KV{}, map[string]record.KV{}, map[lead.RequestKey]lead.Remembered{}
	for _, kv := range kvs {
		f.put(kv)
	}
	f.restart = restart
	f.unseen = true
	f.move(rev)
	f.log.Debug("cache_loaded", "revision", int64(rev), "keys", len(kvs))
	return rev, nil
}

// put takes a key. f.mu is held.
func (f *follower) put(kv record.KV) {
	if strings.HasPrefix(kv.Key, record.RequestsPrefix) {
		if key, r, err := lead.ReadRequest(kv); err == nil { // else the next term reads it, and reports the fault
			f.requests[key] = r
			return
		}
	}
	f.kvs[kv.Key] = kv
	if strings.HasPrefix(kv.Key, record.LeaderPrefix) {
		f.leaders[kv.Key] = kv
	}
}

// remove takes a key out. f.mu is held.
func (f *follower) remove(key string) {
	if strings.HasPrefix(key, record.RequestsPrefix) {
		if tenant, id, err := record.ParseRequestKey(key); err == nil {
			delete(f.requests, lead.RequestKeyOf(tenant, id))
		}
	}
	delete(f.kvs, key)
	delete(f.leaders, key)
}

// move notes that the cache is at a revision, and shows it unless nobody looks.
// f.mu is held.
func (f *follower) move(rev resource.Revision) {
	f.revision = rev
	f.metrics.cached.Set(float64(rev))
	if !f.leads() {
		f.refresh()
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// refresh brings the shown objects up to the revision. f.mu is held.
func (f *follower) refresh() {
	if f.unseen {
		f.unseen, f.broken, f.cache = false, nil, newCache(f.revision)
		for key := range f.kvs {
			f.cache.touch(key)
		}
	}
	if f.broken != nil {
		return
	}
	if err := f.cache.refresh(f.kvs, time.Now()); err != nil {
		f.broken = fmt.Errorf("the store's state at revision %d cannot be shown: %w", f.revision, err)
		f.log.Error("cache_unreadable", "error", f.broken)
	}
}

// follow takes changes until the watch ends; its error is the reason.
func (f *follower) follow(ctx context.Context, from resource.Revision) error {
	batches := f.store.Watch(ctx, record.Root, store.WatchOptions{From: from + 1})
	check := time.NewTicker(f.check)
	defer check.Stop()
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
		case <-check.C:
			var err error
			if late, err = f.compare(ctx, late); err != nil {
				return err
			}
		}
	}
}

// apply takes the changes of one revision.
func (f *follower) apply(b record.Batch) {
	for _, n := range f.take(b) {
		f.registered(n)
	}
}

// take is apply without telling the news that it returns.
func (f *follower) take(b record.Batch) (told []news) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range b.Events {
		if n, is := f.newsOf(e); is {
			told = append(told, n)
		}
		if e.Type == record.EventDelete {
			f.remove(e.KV.Key)
		} else {
			f.put(e.KV)
		}
		if !f.unseen {
			f.cache.touch(e.KV.Key)
		}
	}
	f.unseen = f.unseen || f.leads()
	f.move(b.Revision)
	return told
}

// compare asks the store how far it is; one that does not answer is the watch's
// to notice. One that is behind the cache has been restored from a backup, and
// a watch would wait for its future. One that is ahead has changes that the
// watch does not bring: a cache that is late twice at the same revision is
// loaded anew.
func (f *follower) compare(ctx context.Context, late resource.Revision) (resource.Revision, error) {
	known, _ := f.at()
	ctx, cancel := context.WithTimeout(ctx, catchUp)
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
