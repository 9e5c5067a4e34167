package coordinator

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// refusals is a leader of a store, whose terms end when it resigns.
type refusals struct {
	*term
	c     *Coordinator
	kv    *mem.Store
	terms int // that have ended
}

func newRefusals(t *testing.T) *refusals {
	s := mem.Open(mem.Options{})
	t.Cleanup(func() { s.Close() })
	r := &refusals{c: &Coordinator{}, kv: s}
	ctx, cancel := context.WithCancel(t.Context())
	r.term = newTerm(lead.NewLeader(lead.Beginning{Now: time.Now()}), s, slog.New(slog.DiscardHandler), newMetrics(nil))
	r.ctx, r.mayResign = ctx, r.c.mayResign
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			select {
			case f := <-r.inbox:
				f()
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-served })
	r.elect(t)
	return r
}

// elect begins a term, at a revision that is 100 higher.
func (r *refusals) elect(t *testing.T) {
	t.Helper()
	for range 100 {
		if _, err := r.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put("/else", nil)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(testLeaderKey)}}); err != nil {
		t.Fatal(err)
	}
	result, err := r.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(testLeaderKey, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	held := record.CreateRevIs(testLeaderKey, result.Revision)
	r.Leader = lead.NewLeader(lead.Beginning{Epoch: resource.Epoch(result.Revision), Held: held, Now: time.Now()})
	r.epoch = resource.Epoch(result.Revision)
	r.commit = newCommitter(r.store, held, func(error) { r.terms++ }, r.post)
}

// say has an agent refuse the term for an epoch that much higher; it reports
// whether the term ends for that.
func (r *refusals) say(node resource.NodeID, higher resource.Epoch) bool {
	before := r.terms
	r.post(func() { r.apply(lead.AgentEvent{Event: grant.Refused{Node: node, Highest: r.epoch + higher}}) })
	synctest.Wait()
	return r.terms > before
}

func TestAgentsEndTermsOnlyForAReasonAndNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusals(t)
		got := map[string]bool{}
		got["the store has not been there"] = r.say("n1", 50)
		for range 50 {
			if _, err := r.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put("/else", nil)}}); err != nil {
				t.Fatal(err)
			}
		}
		got["the next epoch would be the same"] = r.say("n1", 50)
		got["the next epoch is higher"] = r.say("n1", 49)
		r.elect(t)
		age := func() {
			for range 50 {
				if _, err := r.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put("/else", nil)}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		age()
		got["another one, at once"] = r.say("n2", 1)
		<-time.NewTimer(resignEvery).C
		got["the same one again"] = r.say("n1", 1)
		got["another one, later"] = r.say("n2", 1)
		r.elect(t)
		age()
		<-time.NewTimer(24 * time.Hour).C
		got["the first one a day later"] = r.say("n1", 1)
		r.c.deposers = nil // as forget does
		got["the first one after another restoration"] = r.say("n1", 1)
		if diff := cmp.Diff(map[string]bool{
			"the store has not been there": false, "the next epoch would be the same": false, "the next epoch is higher": true,
			"another one, at once": false, "the same one again": false, "another one, later": true,
			"the first one a day later": false, "the first one after another restoration": true,
		}, got); diff != "" {
			t.Errorf("terms ended (-want +got):\n%s", diff)
		}
	})
}

func TestARefusalShowsALeaderThatItIsDeposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusals(t)
		if _, err := r.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(testLeaderKey)}}); err != nil {
			t.Fatal(err)
		}
		if !r.say("n1", 1) || len(r.c.deposers) != 0 {
			t.Errorf("%d terms ended because of %v", r.terms, r.c.deposers)
		}
	})
}
