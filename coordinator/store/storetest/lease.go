package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

func (f *fixture) grant(t *testing.T, ttl time.Duration) store.Lease {
	t.Helper()
	l, err := f.s.Grant(f.ctx, ttl)
	if err != nil {
		t.Fatalf("grant: %v", err)
	}
	if l.TTL < ttl || l.ID == 0 {
		t.Fatalf("granted %+v, want at least %v", l, ttl)
	}
	return l
}

func testRevoke(t *testing.T, f *fixture) {
	l := f.grant(t, time.Hour)
	base := f.must(t, record.PutLeased(f.key("a"), []byte("1"), l.ID), record.PutLeased(f.key("b"), []byte("2"), l.ID), record.PutLeased(f.key("freed"), []byte("3"), l.ID))
	kv, _ := f.get(t, "a")
	diff(t, "lease of the key", l.ID, kv.Lease)
	f.put(t, "freed", "4") // a put without the lease detaches
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	batches := f.s.Watch(ctx, f.root, store.WatchOptions{From: base + 2})
	if err := f.s.KeepAlive(f.ctx, l.ID); err != nil {
		t.Errorf("keep alive: %v", err)
	}
	if err := f.s.Revoke(f.ctx, l.ID); err != nil {
		t.Fatalf("revoke: %v", err)
	}
	diff(t, "deletes", "+2: delete a delete b", f.describe(base, f.next(t, batches)))
	diff(t, "keys left", []string{"freed"}, f.names(t, "", store.RangeOptions{}))
	for what, err := range map[string]error{"revoke again": f.s.Revoke(f.ctx, l.ID), "keep alive": f.s.KeepAlive(f.ctx, l.ID)} {
		if !errors.Is(err, record.ErrLeaseGone) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.s.Grant(f.ctx, 0); err == nil {
		t.Error("a lease of no time was granted")
	}
}

func testExpiry(t *testing.T, f *fixture) {
	for !keptOneOfTwo(t, f) {
		t.Log("this machine stalled for longer than the lease: again")
	}
}

// keptOneOfTwo renews one of two leases until the other one has ended. It
// reports false if it came too late itself.
func keptOneOfTwo(t *testing.T, f *fixture) bool {
	renewed := time.Now()
	short, kept := f.grant(t, time.Second), f.grant(t, time.Second)
	late := func() bool { return time.Since(renewed) > kept.TTL*3/4 }
	put, err := f.s.Txn(f.ctx, record.Txn{Then: []record.Op{record.PutLeased(f.key("short"), nil, short.ID), record.PutLeased(f.key("kept"), nil, kept.ID)}})
	switch {
	case errors.Is(err, record.ErrLeaseGone) && late():
		return false
	case err != nil || !put.Succeeded:
		t.Fatalf("transaction: %+v, %v", put, err)
	}
	base := put.Revision
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	batches := f.s.Watch(ctx, f.key("short"), store.WatchOptions{From: base + 1})
	renew := time.NewTicker(100 * time.Millisecond)
	defer renew.Stop()
	for {
		select {
		case <-renew.C:
			sent := time.Now()
			switch err := f.s.KeepAlive(f.ctx, kept.ID); {
			case err != nil && late():
				return false
			case err != nil:
				t.Fatalf("keep alive: %v", err)
			}
			renewed = sent
		case b := <-batches:
			if len(b.Events) == 0 {
				continue
			}
			left := f.names(t, "", store.RangeOptions{})
			if len(left) == 0 && late() {
				return false
			}
			if err := f.s.KeepAlive(f.ctx, short.ID); !errors.Is(err, record.ErrLeaseGone) {
				t.Errorf("keep the ended lease alive: %v", err)
			}
			diff(t, "what ended", "delete short", strings.SplitN(f.describe(base, b), " ", 2)[1])
			diff(t, "keys left", []string{"kept"}, left)
			return true
		case <-f.ctx.Done():
			t.Fatalf("the lease of %v did not end within %v", short.TTL, patience)
		}
	}
}

func address(id int) record.LeaderAddress {
	return record.LeaderAddress{ID: fmt.Sprint("c", id), GRPC: "127.0.0.1:1", REST: "127.0.0.1:2"}
}

func testElection(t *testing.T, f *fixture) {
	if l, found, err := CurrentLeader(f.ctx, f.s); found || err != nil {
		t.Fatalf("a leader before any election: %+v, %v", l, err)
	}
	const ttl = time.Minute // a stalled machine renews late; nobody here waits for its end
	first, err := store.NewCandidate(f.s, address(1), ttl).Campaign(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	won := make(chan *store.Leadership)
	for id := 2; id <= 3; id++ {
		started := f.candidates(t)
		go func() {
			l, err := store.NewCandidate(f.s, address(id), ttl).Campaign(f.ctx)
			if err != nil {
				t.Errorf("campaign %d: %v", id, err)
			}
			won <- l
		}()
		for f.candidates(t) == started { // until the candidate stands in line
			if f.ctx.Err() != nil {
				t.Fatal("the candidate does not appear")
			}
		}
	}
	leader := first
	for id := 1; id <= 3; id++ {
		now, found, err := CurrentLeader(f.ctx, f.s)
		if err != nil || !found {
			t.Fatalf("leader: found %v, %v", found, err)
		}
		diff(t, "leader", store.Leader{Address: address(id), Epoch: leader.Epoch, Key: leader.Key}, now)
		if !f.try(t, fmt.Sprint("by", id), leader.Held()) {
			t.Error("the leader's transaction was refused")
		}
		select {
		case l := <-won:
			t.Fatalf("epoch %d was elected beside %d", l.Epoch, leader.Epoch)
		default:
		}
		if err := leader.Resign(f.ctx); err != nil {
			t.Fatal(err)
		}
		<-leader.Done()
		if leader.Err() != nil {
			t.Errorf("a resigned leader reports %v", leader.Err())
		}
		if f.try(t, "late", leader.Held()) {
			t.Error("a transaction of the old epoch landed")
		}
		if id == 3 {
			break
		}
		next := <-won
		if next == nil || next.Epoch <= leader.Epoch {
			t.Fatalf("next %+v after epoch %d", next, leader.Epoch)
		}
		leader = next
	}
	diff(t, "candidates left", 0, f.candidates(t))
}

func (f *fixture) candidates(t *testing.T) int {
	t.Helper()
	kvs, _, err := f.s.Range(f.ctx, record.LeaderPrefix, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(kvs)
}

func testDeposed(t *testing.T, f *fixture) {
	l, err := store.NewCandidate(f.s, address(1), time.Minute).Campaign(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	f.must(t, record.Delete(l.Key))
	select {
	case <-l.Done():
	case <-f.ctx.Done():
		t.Fatal("the leader did not learn that its key is gone")
	}
	if l.Err() == nil {
		t.Error("a lost leadership has no reason")
	}
	kv, _, rev, err := f.s.Get(f.ctx, l.Key)
	if err != nil || kv.ModRev != 0 || rev <= resource.Revision(l.Epoch) {
		t.Errorf("key %+v at revision %d, %v", kv, rev, err)
	}
	if err := l.Resign(f.ctx); err != nil {
		t.Errorf("resign after the loss: %v", err)
	}
}

func testCandidateGivesUp(t *testing.T, f *fixture) {
	l, err := store.NewCandidate(f.s, address(1), time.Minute).Campaign(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	failed := make(chan error)
	go func() {
		_, err := store.NewCandidate(f.s, address(2), time.Minute).Campaign(ctx)
		failed <- err
	}()
	for f.candidates(t) < 2 {
		if f.ctx.Err() != nil {
			t.Fatal("the candidate does not appear")
		}
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("campaign: %v", err)
	}
	diff(t, "candidates", 1, f.candidates(t))
	if err := l.Resign(f.ctx); err != nil {
		t.Error(err)
	}
}

// CurrentLeader reads the leader; found is false while there is no leader. To follow
// changes, watch record.LeaderPrefix and read again.
func CurrentLeader(ctx context.Context, s store.KVStore) (l store.Leader, found bool, err error) {
	kvs, _, err := s.Range(ctx, record.LeaderPrefix, store.RangeOptions{})
	if err != nil {
		return store.Leader{}, false, fmt.Errorf("read leader: %w", err)
	}
	candidates, err := store.Candidates(kvs)
	if err != nil || len(candidates) == 0 {
		return store.Leader{}, false, err
	}
	return candidates[0], true, nil
}
