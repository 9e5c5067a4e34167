package era

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// SaveEvery is the least time between two writes of a coordinator's file: after a kill of
// all coordinators only agents know the writes to the store of that last time.
const SaveEvery = 250 * time.Millisecond

// Keeper keeps a coordinator's Known on disk. Any goroutine may call the methods; the
// methods of a nil Keeper return at once.
type Keeper struct {
	by, path, cluster string
	log               *slog.Logger

	mu sync.Mutex
	// known is the past, newest the newest write, whose hash is not in known yet.
	known  Known
	newest record.KV
	// pending is a restoration before its declaration, or nil; known is of the restored
	// store then.
	pending *record.Restored
	blind   bool
	saved   Known
}

// Open reads the file of a coordinator in the data folder dir. Without a file the
// coordinator has no knowledge of the past.
func Open(dir, cluster, coordinator string, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{by: "coordinator " + coordinator, path: filepath.Join(dir, FileName), cluster: cluster, log: log}
	known, found, err := load(k.path, cluster)
	if err != nil {
		return nil, fmt.Errorf("the past that this coordinator knew: %w", err)
	}
	k.known, k.saved, k.blind = known, known, !found
	return k, nil
}

// Start compares the file with the store, and declares a restoration at a contradiction.
// Start precedes every write of the coordinator.
func (k *Keeper) Start(ctx context.Context, s store.KVStore) error {
	if k == nil || k.blind {
		return nil
	}
	why, has, last, err := Contradiction(ctx, s, k.known)
	if err != nil {
		return err
	}
	if why != "" {
		k.log.Warn("store_was_restored", "why", why, "revision_before", int64(k.known.Revision), "revision_after", int64(has))
		r := witness(k.by, why, k.known, has)
		k.pending, k.known = &r, Known{Restored: last.Mark}
		return k.Settle(ctx, s)
	}
	k.known.Restored = last.Mark
	return nil
}

// Blind reports whether the coordinator started without knowledge of the past: only
// agents can notice a restored store.
func (k *Keeper) Blind() bool { return k != nil && k.blind }

// WentBack takes a loss during the life of the coordinator, for Settle.
func (k *Keeper) WentBack(back *record.WentBackError) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := witness(k.by, back.Error(), Known{Revision: max(back.Had, k.known.Revision)}, back.Has)
	k.pending, k.known, k.newest = &r, Known{Restored: k.known.Restored}, record.KV{}
}

// Settle declares a pending restoration. Settle precedes each campaign.
func (k *Keeper) Settle(ctx context.Context, s store.KVStore) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	pending, before := k.pending, record.Restored{Mark: k.known.Restored}
	k.mu.Unlock()
	if pending == nil {
		return nil
	}
	if lost, err := lostRestoration(ctx, s, before.Mark); err != nil {
		return err
	} else if lost != "" { // the last restoration in the store is older than before
		_, _, before, err = Contradiction(ctx, s, Known{})
		if err != nil {
			return err
		}
	}
	last, err := Declare(ctx, s, before, *pending)
	if err != nil {
		return err
	}
	k.log.Warn("store_restoration_declared", "by", last.By, "revision_before", int64(last.Had), "revision_after", int64(last.Has), "why", last.Why)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending == pending {
		k.pending, k.known.Restored = nil, last.Mark
	}
	return nil
}

// Saw takes a key of the store, and Moved the revision of a change.
func (k *Keeper) Saw(kv *record.KV) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if kv.ModRev > k.newest.ModRev {
		k.newest = *kv
	}
	switch {
	case strings.HasPrefix(kv.Key, record.TermsPrefix):
		if e := resource.Epoch(kv.CreateRev); e > k.known.Epoch {
			k.known.Epoch, k.known.Mark = e, strings.TrimPrefix(kv.Key, record.TermsPrefix)
		}
	case kv.Key == record.LastRestoredKey && k.pending == nil:
		if r, err := record.Decode[record.Restored](kv.Key, kv.Value); err == nil {
			k.known.Restored = r.Mark
		}
	}
}

// Moved takes the newest followed revision.
func (k *Keeper) Moved(at resource.Revision) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.Revision = max(k.known.Revision, at)
}

// Term is the newest followed term; mark may be "".
func (k *Keeper) Term() (epoch resource.Epoch, mark string) {
	if k == nil {
		return 0, ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known.Epoch, k.known.Mark
}

// present is the past for the file; changed is false for the past of the file, and while
// a loss of that past is pending.
func (k *Keeper) present() (now Known, changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.newest.Key != "" && k.newest.ModRev > k.known.Anchor.Revision {
		k.known.Anchor = Anchor{Key: k.newest.Key, Revision: k.newest.ModRev, Hash: HashOf(k.newest.Value)}
	}
	return k.known, k.pending == nil && k.known.Revision > 0 && k.known != k.saved
}

// Save writes the file where the past has changed.
func (k *Keeper) Save() error {
	if k == nil {
		return nil
	}
	now, changed := k.present()
	if !changed {
		return nil
	}
	if err := save(k.path, k.cluster, now); err != nil {
		return fmt.Errorf("keep the past of the store: %w", err)
	}
	k.saved = now
	return nil
}

// Run saves again and again, and once more when ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if k == nil {
		return
	}
	every := time.NewTicker(SaveEvery)
	defer every.Stop()
	failing := false
	for goes := true; goes; {
		select {
		case <-every.C:
		case <-ctx.Done():
			goes = false
		}
		err := k.Save()
		if err != nil && !failing {
			k.log.Error("store_past_not_kept", "error", err)
		}
		failing = err != nil
	}
}
