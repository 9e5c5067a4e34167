package follow

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// slowStore answers a read with its revision at a drawn instant within the call, and
// counts the reads that are under way.
type slowStore struct {
	store.KVStore
	revision      atomic.Int64
	under, asked  atomic.Int32
	most          atomic.Int32
	before, after chan time.Duration
}

func (s *slowStore) Get(context.Context, string) (record.KV, bool, resource.Revision, error) {
	if now := s.under.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	defer s.under.Add(-1)
	s.asked.Add(1)
	<-time.After(<-s.before)
	rev := s.revision.Load()
	<-time.After(<-s.after)
	return record.KV{}, false, resource.Revision(rev), nil
}

// Reads at drawn instants, among writes and questions of drawn lengths: each read shows
// every write that was acknowledged before the read began, and none that was not yet made
// when it ended; one question is under way at a time, and reads that come meanwhile share
// the next one.
func TestPropertySharedQuestionsAreLinearizable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pause := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 9).Draw(rt, name)) * 100 * time.Microsecond
		}
		reads := rapid.IntRange(1, 30).Draw(rt, "reads")
		gaps, writes := make([]time.Duration, reads), make([]int64, reads)
		lengths := make(chan time.Duration, 2*reads)
		rest := make(chan time.Duration, 2*reads)
		for i := range reads {
			gaps[i], writes[i] = pause("gap"), int64(rapid.IntRange(0, 2).Draw(rt, "writes"))
			lengths <- pause("before the answer is made")
			rest <- pause("until the answer is there")
		}
		synctest.Test(t, func(t *testing.T) {
			s := &slowStore{before: lengths, after: rest}
			index := &readIndex{store: s}
			faults := make(chan [3]resource.Revision, reads)
			for i := range reads {
				<-time.After(gaps[i])
				s.revision.Add(writes[i]) // acknowledged now
				atLeast := resource.Revision(s.revision.Load())
				go func() {
					got, err := index.read(t.Context())
					if most := resource.Revision(s.revision.Load()); err != nil || got < atLeast || got > most {
						faults <- [3]resource.Revision{got, atLeast, most}
					}
				}()
			}
			<-time.After(time.Hour)
			synctest.Wait()
			close(faults)
			for f := range faults {
				t.Errorf("a read is at revision %d, want %d to %d", f[0], f[1], f[2])
			}
			if s.most.Load() != 1 || int(s.asked.Load()) > reads {
				t.Errorf("%d questions at a time, %d for %d reads", s.most.Load(), s.asked.Load(), reads)
			}
		})
	})
}

// Reads that come while a question is under way are all answered by the next one.
func TestReadsShareTheNextQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{before: make(chan time.Duration, 2), after: make(chan time.Duration, 2)}
		for range 2 {
			s.before <- time.Millisecond
			s.after <- time.Millisecond
		}
		index := &readIndex{store: s}
		for i := range 100 {
			go func() {
				if _, err := index.read(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			if i == 0 {
				synctest.Wait()
			}
		}
		<-time.After(time.Second)
		if got := s.asked.Load(); got != 2 {
			t.Errorf("100 reads took %d questions, want 2", got)
		}
	})
}
