package rig

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/storetest"
)

// TestNoInstantIsBeforeThoseOfAnEarlierLeader: the store has an instant of a leader with a
// fast clock. The next leader's instants are later, in the right order, and durations are as
// long as before.
func TestNoInstantIsBeforeThoseOfAnEarlierLeader(t *testing.T) {
	for name, fast := range map[string]time.Duration{"an hour": time.Hour, "a day": 24 * time.Hour, "slow": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { nextLeader(t, New(t, Options{}), fast) })
		})
	}
}

func nextLeader(t *testing.T, c *Cluster, fast time.Duration) {
	allocate := func(s Submission) (a *api.Allocation) {
		t.Helper()
		s.RequestID = s.Name
		c.Eventually(s.Name+" is taken", func() (taken bool) { // also over an election
			var err error
			a, _, err = c.Leader().Allocate(t.Context(), s)
			return err == nil
		})
		return a
	}
	remove := func(name string) {
		t.Helper()
		if _, err := c.Leader().DeleteAllocation(t.Context(), Namespace, name, api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(name string) {
		t.Helper()
		c.Eventually(name+" runs", func() bool {
			a, err := c.Leader().GetAllocation(t.Context(), Namespace, name, 0)
			return err == nil && a.Status.Phase == api.Running
		})
	}
	c.Bring(1)
	allocate(Submission{Name: "first", GPUs: 8, Wait: time.Minute})
	allocate(Submission{Name: "waits", GPUs: 8})
	ahead := time.Now().Add(fast)
	c.Eventually("the reason of the wait is in the store", func() bool { return setWaiting(t, c, ahead) })
	l, found, err := storetest.CurrentLeader(t.Context(), c.Store)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(l.Key)}}); err != nil {
		t.Fatal(err)
	}
	c.Eventually("there is another leader", func() bool {
		next, found, err := storetest.CurrentLeader(t.Context(), c.Store)
		return err == nil && found && next.Key != l.Key
	})
	c.AwaitReady(1)
	want := time.Now().UnixMilli()
	if fast > 0 {
		want = ahead.UnixMilli()
	}
	made := allocate(Submission{Name: "made", GPUs: 8, TTL: "60s"})
	remove("first")
	runs("waits")
	remove("waits")
	runs("made")
	started := time.Now()
	for tx, r := range c.Records() {
		if r.Unit.Name != "first" && (r.CommittedMillis < want || r.CommittedMillis > want+time.Minute.Milliseconds()) {
			t.Errorf("%s of %s is committed at %d, want an instant within a minute from %d", tx, r.Unit.Name, r.CommittedMillis, want)
		}
		created, err := time.Parse(time.RFC3339, made.Metadata.CreationTimestamp)
		if r.Unit.Name == "made" && (err != nil || created.UnixMilli() > r.CommittedMillis) {
			t.Errorf("made is created at %s, after its start at %d; %v", made.Metadata.CreationTimestamp, r.CommittedMillis, err)
		}
	}
	c.Eventually("the work with a ttl has ended", func() bool {
		a, err := c.Leader().GetAllocation(t.Context(), Namespace, "made", 0)
		return err != nil || a.Status.Phase.Ended()
	})
	if took := time.Since(started); took < 58*time.Second || took > 80*time.Second {
		t.Errorf("a ttl of 60 s lasts %s", took)
	}
}

// setWaiting sets the first instant of a unit's wait, and reports whether the store has a wait.
func setWaiting(t *testing.T, c *Cluster, since time.Time) bool {
	t.Helper()
	kvs, _, err := c.Store.Range(t.Context(), record.OrderPrefix, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range kvs {
		o, err := record.Decode[record.Order](kv.Key, kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		if o.Waiting != nil {
			o.Waiting.SinceMillis = since.UnixMilli()
			if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.MustPutRecord(kv.Key, o)}}); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	return false
}
