package rig

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// audit follows the records and checks, revision by revision, what must hold
// after every commit: the edges of a record's life (I11), that no device is in
// two COMMITTED records (I1), that charges are within the limits and the quota
// trees (I2), that a unit has one live transaction (I6).
type audit struct {
	t      testing.TB
	limits map[string]coordinator.Namespace
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	revision resource.Revision
	records  map[string]store.TxRecord // those that are not collected
	trees    map[string]*tree          // by key
	aborted  int                       // ABORTED records ever written
}

func startAudit(t testing.TB, s *mem.Store, limits map[string]coordinator.Namespace) *audit {
	ctx, cancel := context.WithCancel(context.Background())
	a := &audit{t: t, limits: limits, cancel: cancel, ended: make(chan struct{}), records: map[string]store.TxRecord{}, trees: map[string]*tree{}}
	batches := s.Watch(ctx, store.Root, store.WatchOptions{From: 1})
	go func() {
		defer close(a.ended)
		for b := range batches {
			if b.Err != nil {
				a.t.Errorf("the audit fell behind: %v", b.Err)
				return
			}
			a.follow(b)
		}
	}()
	return a
}

func (a *audit) stop() { a.cancel(); <-a.ended }

// edges are the steps that a record may take; "" is absent.
var edges = map[store.TxState][]store.TxState{
	"":                {store.TxCommitted, store.TxAborted},
	store.TxCommitted: {store.TxEvicting, store.TxReleasing},
	store.TxEvicting:  {store.TxReleasing, store.TxReleased},
	store.TxReleasing: {store.TxReleased},
}

func (a *audit) follow(b store.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision = max(a.revision, b.Revision)
	changed := false
	for _, e := range b.Events {
		if strings.HasPrefix(e.KV.Key, store.QuotaPrefix) {
			a.followQuota(e)
		}
		if !strings.HasPrefix(e.KV.Key, store.TxPrefix) {
			continue
		}
		changed = true
		before := a.records[e.KV.Key]
		if e.Type == store.EventDelete {
			if !before.State.Terminal() {
				a.t.Errorf("revision %d deletes %s, which is %q", b.Revision, e.KV.Key, before.State)
			}
			delete(a.records, e.KV.Key)
			continue
		}
		record, err := store.Decode[store.TxRecord](e.KV.Key, e.KV.Value)
		if err != nil {
			a.t.Error(err)
			continue
		}
		allowed := false
		for _, next := range edges[before.State] {
			allowed = allowed || next == record.State
		}
		if !allowed {
			a.t.Errorf("I11: revision %d takes %s from %q to %s", b.Revision, e.KV.Key, before.State, record.State)
		}
		if record.State == store.TxAborted {
			a.aborted++
		}
		a.records[e.KV.Key] = record
	}
	if changed {
		a.check(b.Revision)
	}
}

// check is called with mu held.
func (a *audit) check(revision resource.Revision) {
	used := map[group]resource.Vector{}
	units := map[resource.UnitUID]string{}
	taken := map[string]string{}
	for key, r := range a.records {
		if !r.State.Charged() {
			continue
		}
		for _, c := range r.Charges {
			at := group{c.Tree, c.Group}
			if used[at] == nil {
				used[at] = resource.Vector{}
			}
			used[at].Add(c.Request)
		}
		if other := units[r.UnitUID]; other != "" {
			a.t.Errorf("I6: at revision %d unit %s is live in %s and in %s", revision, r.UnitUID, key, other)
		}
		units[r.UnitUID] = key
		if r.State != store.TxCommitted {
			continue // its agent may have freed it already
		}
		for _, m := range r.Members {
			for _, g := range m.Assignment.MIG {
				if other := taken[g.UUID]; other != "" {
					a.t.Errorf("I1: at revision %d MIG instance %s belongs to %s and to %s", revision, g.UUID, key, other)
				}
				taken[g.UUID] = key
			}
			for _, g := range m.Assignment.GPUs {
				if g.Milli != resource.WholeDevice {
					continue
				}
				if other := taken[g.UUID]; other != "" {
					a.t.Errorf("I1: at revision %d device %s belongs to %s and to %s", revision, g.UUID, key, other)
				}
				taken[g.UUID] = key
			}
		}
	}
	for namespace, limits := range a.limits {
		sum := used[group{quota.Tree, namespace}]
		for name, limit := range limits.Hard {
			if sum[name] > limit {
				a.t.Errorf("I2: at revision %d namespace %s is charged %d of %s, its limit is %d", revision, namespace, sum[name], name, limit)
			}
		}
	}
	for _, t := range a.trees {
		for _, problem := range t.check(used) {
			a.t.Errorf("I2: at revision %d %s", revision, problem)
		}
	}
}

// Records returns the records by transaction, as of some recent revision.
func (c *Cluster) Records() map[resource.TxID]store.TxRecord {
	kvs, _, err := c.Store.Range(context.Background(), store.TxPrefix, store.RangeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	records := map[resource.TxID]store.TxRecord{}
	for _, kv := range kvs {
		tx, err := store.ParseTxKey(kv.Key)
		if err != nil {
			c.t.Fatal(err)
		}
		if records[tx], err = store.Decode[store.TxRecord](kv.Key, kv.Value); err != nil {
			c.t.Fatal(err)
		}
	}
	return records
}

// Aborted counts the ABORTED records ever written.
func (c *Cluster) Aborted() int {
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	return c.audit.aborted
}
