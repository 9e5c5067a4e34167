package rig

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// audit follows the records and checks, revision by revision, what must hold
// after every commit: the edges of a record's life (I11), that no device is in
// two COMMITTED records (I1), that charges are within the limits and the quota
// trees (I2), that a unit has one live transaction (I6), and what reign checks.
type audit struct {
	t      testing.TB
	limits map[string]coordinator.Namespace
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	revision resource.Revision
	records  map[string]record.Tx // by key: those that are not collected
	aborted  int                  // ABORTED records ever written
	trees    map[string]*tree     // by key
	units    map[resource.UnitUID]record.Unit
	nodes    map[resource.NodeID]record.NodeIdentity
	reign    reign
	// overQuota: what runs was adopted, and is charged beyond the limits.
	overQuota bool
	promises  map[resource.NodeID]*promises
	attempts  map[attempt]resource.TxID // that any leader ever asked for
	notices   notices
	evicting  map[resource.TxID]time.Time   // since when
	restarts  map[resource.NodeID]time.Time // the last of each
	free      map[notice]bool               // what agents were heard to be rid of
	// running is what agents were heard to hold since their host started.
	running map[notice]bool
}

func startAudit(t testing.TB, s *mem.Store, limits map[string]coordinator.Namespace) *audit {
	ctx, cancel := context.WithCancel(context.Background())
	a := &audit{
		t: t, limits: limits, cancel: cancel, ended: make(chan struct{}), restarts: map[resource.NodeID]time.Time{},
	}
	a.begin()
	s = s.Connect(mem.Options{})
	batches := s.Watch(ctx, record.Root, store.WatchOptions{From: 1})
	go func() {
		defer close(a.ended)
		for {
			b, open := <-batches
			if !open {
				return
			}
			var back *record.WentBackError
			if errors.As(b.Err, &back) { // what is acknowledged is lost, as the test wants it
				s.Acknowledge(back)
				a.begin()
				batches = s.Watch(ctx, record.Root, store.WatchOptions{From: 1})
				continue
			}
			if b.Err != nil {
				a.t.Errorf("the audit fell behind: %v", b.Err)
				return
			}
			a.follow(b)
		}
	}()
	return a
}

// begin knows of nothing yet.
func (a *audit) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision, a.aborted = 0, 0
	a.records, a.trees, a.units = map[string]record.Tx{}, map[string]*tree{}, map[resource.UnitUID]record.Unit{}
	a.nodes, a.reign, a.promises = map[resource.NodeID]record.NodeIdentity{}, newReign(), map[resource.NodeID]*promises{}
	a.attempts, a.notices, a.evicting, a.free = map[attempt]resource.TxID{}, notices{}, map[resource.TxID]time.Time{}, map[notice]bool{}
	a.running = map[notice]bool{}
}

// stop ends the audit and checks what can be checked only then.
func (a *audit) stop() {
	a.cancel()
	<-a.ended
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, problem := range a.reign.check(a.revision) {
		a.t.Error(problem)
	}
}

func (a *audit) follow(b record.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision = max(a.revision, b.Revision)
	changed := false
	for _, e := range b.Events {
		switch {
		case strings.HasPrefix(e.KV.Key, record.TxPrefix):
			a.followRecord(b.Revision, e)
			changed = true
		case strings.HasPrefix(e.KV.Key, record.QuotaPrefix):
			a.followQuota(e)
		case strings.HasPrefix(e.KV.Key, record.LeaderPrefix):
			a.reign.follow(b.Revision, e)
		case strings.HasPrefix(e.KV.Key, record.UnitsPrefix) && e.Type == record.EventPut:
			u, err := record.Decode[record.Unit](e.KV.Key, e.KV.Value)
			if err != nil {
				continue // some tests want to see what becomes of it
			}
			a.units[u.UID] = u
		case strings.HasPrefix(e.KV.Key, record.NodesPrefix):
			a.followNode(e)
		}
	}
	if changed {
		a.check(b.Revision)
	}
}

func (a *audit) followNode(e record.Event) {
	key, err := record.ParseNodeKey(e.KV.Key)
	if err != nil || key.Part != record.NodeIdentityPart {
		return
	}
	delete(a.nodes, key.ID)
	if identity, err := record.Decode[record.NodeIdentity](e.KV.Key, e.KV.Value); err == nil && e.Type == record.EventPut {
		a.nodes[key.ID] = identity
	}
}
