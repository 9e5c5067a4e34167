package coordinator_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// story is all changes of a store.
type story struct{ batches []record.Batch }

// listen takes all changes of a cluster's store.
func listen(ctx context.Context, c *rig.Cluster) (s *story, heard func()) {
	ctx, cancel := context.WithCancel(ctx)
	s = &story{}
	over := make(chan struct{})
	changes := c.Store.Watch(ctx, record.Root, store.WatchOptions{From: 1})
	go func() {
		defer close(over)
		for b := range changes {
			if b.Err == nil && len(b.Events) > 0 {
				s.batches = append(s.batches, b)
			}
		}
	}()
	return s, func() {
		pass(time.Second)
		cancel()
		<-over
	}
}

// keysAt are the keys behind the first changes.
func (s *story) keysAt(changes int) []record.KV {
	kvs := map[string]record.KV{}
	for _, b := range s.batches[:changes] {
		for _, e := range b.Events {
			if e.Type == record.EventDelete {
				delete(kvs, e.KV.Key)
			} else {
				kvs[e.KV.Key] = e.KV
			}
		}
	}
	list := make([]record.KV, 0, len(kvs))
	for _, key := range slices.Sorted(maps.Keys(kvs)) {
		list = append(list, kvs[key])
	}
	return list
}

// tell narrates the changes from one to another, and takes the rows after each number of
// changes that every chooses.
func (s *story) tell(t *testing.T, n *narrate.Narrator, from, to int, every func() int, take func(history.Batch)) {
	left := every()
	for _, b := range s.batches[from:to] {
		n.Follow(b)
		if left--; left <= 0 {
			take(n.Take())
			left = every()
		}
	}
	take(n.Take())
	for _, err := range n.Faults() {
		t.Errorf("not read: %v", err)
	}
}

// TestNarratorsAgree holds that the rows follow from the keys: a narrator that begins
// anywhere, with or without the rows of a full read, leads to the same history as one
// that has followed all changes, however the changes are cut into batches; and batches
// that come again change nothing.
func TestNarratorsAgree(t *testing.T) {
	for range 3 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var s *story
			runRandomWorld(t, seed, func(*coordinator.Config) {}, func(c *rig.Cluster) func() {
				var heard func()
				s, heard = listen(context.Background(), c)
				return heard
			})
			random := rand.New(rand.NewPCG(seed, 2))
			all := mem.New()
			var batches []history.Batch
			write := func(h *mem.History) func(history.Batch) {
				return func(b history.Batch) {
					if err := h.Write(t.Context(), b); err != nil {
						t.Fatal(err)
					}
					batches = append(batches, b)
				}
			}
			s.tell(t, narrate.New("rig"), 0, len(s.batches), func() int { return 1 }, write(all))
			want := all.Rows()
			for range 8 {
				middle := random.IntN(len(s.batches))
				h := mem.New()
				batches = nil
				every := func() int { return 1 + random.IntN(50) }
				s.tell(t, narrate.New("rig"), 0, middle, every, write(h))
				next, at := narrate.New("rig"), resource.Revision(0)
				if middle > 0 {
					at = s.batches[middle-1].Revision
				}
				if random.IntN(2) == 0 {
					next.Load(s.keysAt(middle), at)
				} else {
					next.LoadAll(s.keysAt(middle), at)
				}
				s.tell(t, next, middle, len(s.batches), every, write(h))
				got := h.Rows()
				for _, b := range batches {
					got.Add(b)
				}
				if diff := cmp.Diff(comparable(want), comparable(got)); diff != "" {
					t.Fatalf("with a new narrator at revision %d (-want +got):\n%s", at, diff)
				}
			}
			judgeRows(t, want)
		})
	}
}

// comparable leaves out what a full read may say otherwise: the names that are built in,
// the revision of a node whose newest key makes no row, and conditions whose status is that
// of the row before, which a full read states again.
func comparable(r mem.Rows) mem.Rows {
	r.Slots = nil
	for id, kept := range r.Nodes {
		kept.Row.Revision = 0
		r.Nodes[id] = kept
	}
	status := map[[2]string]string{}
	for _, key := range slices.SortedFunc(maps.Keys(r.Conditions), func(a, b string) int {
		return int(r.Conditions[a].Row.Revision - r.Conditions[b].Row.Revision)
	}) {
		row := r.Conditions[key].Row
		of := [2]string{string(row.Node), row.Type}
		if status[of] == row.New {
			delete(r.Conditions, key)
		}
		status[of] = row.New
	}
	return r
}

// judgeRows holds what each history of a cluster that has come to rest keeps.
func judgeRows(t *testing.T, r mem.Rows) {
	t.Helper()
	if len(r.Units) == 0 || len(r.Grants) == 0 || len(r.Waits) == 0 {
		t.Errorf("%d units, %d grants, %d waits: the world was too quiet", len(r.Units), len(r.Grants), len(r.Waits))
	}
	for uid, u := range r.Units {
		if u.Row.Ended.IsZero() || u.Row.Created.IsZero() || u.Row.Tenant == "" || len(u.Row.Requests) == 0 || u.Row.Ended.Before(u.Row.Created) {
			t.Errorf("unit %s has ended, and its row is %+v", uid, u.Row)
		}
	}
	last := map[resource.UnitUID]history.Grant{}
	for _, g := range slices.SortedFunc(maps.Values(r.Grants), func(a, b mem.Kept[history.Grant]) int {
		return a.Row.Committed.Compare(b.Row.Committed)
	}) {
		row := g.Row
		if row.State != "RELEASED" || row.Ended.Before(row.Committed) || row.Committed.IsZero() || len(row.Members) == 0 || row.Members[0].Requested == nil {
			t.Errorf("grant %s has ended, and its row is %+v", row.Tx, row)
		}
		if before, again := last[row.Unit]; again && row.Committed.Before(before.Ended) {
			t.Errorf("unit %s has held two grants at once: %s until %s, and %s from %s on", row.Unit, before.Tx, before.Ended, row.Tx, row.Committed)
		}
		last[row.Unit] = row
	}
	for key, w := range r.Waits {
		if w.Row.Until.IsZero() || w.Row.Until.Before(w.Row.Since) || w.Row.Code == "" {
			t.Errorf("wait %s has ended, and its row is %+v", key, w.Row)
		}
	}
	for _, p := range r.Preemptions {
		if p.Row.Outcome == "Evicting" || p.Row.Evicted.IsZero() || p.Row.By != "" && p.Row.Preemptor == "" {
			t.Errorf("preemption %+v has no end", p.Row)
		}
	}
}
