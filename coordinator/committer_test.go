package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// committerBench is a committer on a store that notes every Txn and may hold
// the first ones until more decisions wait.
type committerBench struct {
	*committer
	store   *mem.Store
	release chan struct{} // closed: Txns that hold may go on
	arrived chan struct{} // one for each Txn that is held
	end     context.CancelFunc

	deposals atomic.Int32

	mu   sync.Mutex
	txns []record.Txn
	// fails refuses a Txn, lost forgets its answer; by a key that it writes.
	fails map[string]error
	lost  string
}

func writes(x record.Txn, key string) bool {
	return slices.ContainsFunc(x.Then, func(o record.Op) bool { return o.Key == key })
}

const testLeaderKey = "/registry/leader/1"

func newCommitterBench(t *testing.T, maxOps int) *committerBench {
	t.Helper()
	b := &committerBench{release: make(chan struct{}), arrived: make(chan struct{}), fails: map[string]error{}}
	b.store = mem.Open(mem.Options{
		MaxTxnOps: maxOps,
		BeforeCommit: func(x record.Txn) error {
			if writes(x, testLeaderKey) {
				return nil
			}
			b.mu.Lock()
			b.txns = append(b.txns, x)
			b.mu.Unlock()
			if strings.HasPrefix(x.Then[0].Key, "/held/") {
				b.arrived <- struct{}{}
				<-b.release
			}
			for key, err := range b.fails {
				if writes(x, key) {
					return err
				}
			}
			return nil
		},
		AfterCommit: func(x record.Txn, _ record.TxnResult) error {
			if writes(x, b.lost) {
				return record.ErrUnknownOutcome
			}
			return nil
		},
	})
	result, err := b.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(testLeaderKey, []byte("me"))}})
	if err != nil {
		t.Fatal(err)
	}
	b.committer = newCommitter(b.store, record.CreateRevIs(testLeaderKey, result.Revision), func(error) { b.deposals.Add(1) }, func(f func()) { f() })
	ctx, cancel := context.WithCancel(context.Background())
	b.end = cancel
	b.start(ctx)
	t.Cleanup(func() {
		cancel()
		b.wait()
		b.store.Close()
	})
	return b
}

// answered is the answer to a decision.
type answered struct {
	Outcome  txn.Outcome
	Revision resource.Revision
	Err      error
}

// decide submits a decision that creates the keys; the answer comes over the
// channel.
func (b *committerBench) decide(d pendingWrite, keys ...string) <-chan answered {
	done := make(chan answered, 2) // a second answer would be a fault
	for _, k := range keys {
		d.compares = append(d.compares, record.Absent(k))
		d.ops = append(d.ops, record.Put(k, []byte("x")))
	}
	d.done = func(o txn.Outcome, rev resource.Revision, err error) { done <- answered{o, rev, err} }
	b.submit(d)
	return done
}

// crowd keeps the committer as busy as it gets while others are submitted, and
// then lets it go on. It returns the answers to its own decisions.
func (b *committerBench) crowd(t *testing.T, others func()) []<-chan answered {
	t.Helper()
	var held []<-chan answered
	for i := range batch.InFlight {
		held = append(held, b.decide(pendingWrite{}, fmt.Sprint("/held/", i)))
		select {
		case <-b.arrived:
		case <-time.After(20 * time.Second):
			t.Fatalf("decision %d did not reach the store", i)
		}
	}
	others()
	close(b.release)
	return held
}

func await(t *testing.T, c <-chan answered) answered {
	t.Helper()
	select {
	case a := <-c:
		return a
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
		return answered{}
	}
}

// sent are the numbers of writes of the Txns that others led to, ascending.
func (b *committerBench) sent() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n []int
	for _, x := range b.txns[batch.InFlight:] {
		n = append(n, len(x.Then))
	}
	slices.Sort(n)
	return n
}

func TestDecisionsThatWaitShareATxn(t *testing.T) {
	b := newCommitterBench(t, 100)
	var rest []<-chan answered
	b.crowd(t, func() {
		for i := range 5 {
			rest = append(rest, b.decide(pendingWrite{compares: []record.Compare{record.Absent("/shared")}}, fmt.Sprint("/rest/", i)))
		}
	})
	var revision resource.Revision
	for _, c := range rest {
		a := await(t, c)
		if a.Outcome != txn.Landed || a.Err != nil || a.Revision == 0 || revision != 0 && a.Revision != revision {
			t.Errorf("answer %+v, the one before was at %d", a, revision)
		}
		revision = a.Revision
	}
	if diff := cmp.Diff([]int{5}, b.sent()); diff != "" {
		t.Errorf("writes per Txn (-want +got):\n%s", diff)
	}
	if shared := b.txns[batch.InFlight]; len(shared.If) != 1+1+5 || shared.If[0].Key != testLeaderKey {
		t.Errorf("the shared Txn compares %v: want the leader's key, and the equal compare once", shared.If)
	}
}

func TestAFailedCompareIsItsOwnDecisionsAlone(t *testing.T) {
	b := newCommitterBench(t, 100)
	var good, bad, other <-chan answered
	b.crowd(t, func() {
		good = b.decide(pendingWrite{}, "/good")
		bad = b.decide(pendingWrite{compares: []record.Compare{record.Absent(testLeaderKey)}}, "/bad")
		other = b.decide(pendingWrite{}, "/other")
	})
	if a := await(t, good); a.Outcome != txn.Landed {
		t.Errorf("good: %+v", a)
	}
	if a := await(t, bad); a.Outcome != txn.Conflict || a.Err != nil {
		t.Errorf("bad: %+v", a)
	}
	if a := await(t, other); a.Outcome != txn.Landed {
		t.Errorf("other: %+v", a)
	}
	if diff := cmp.Diff([]int{1, 1, 1, 3}, b.sent()); diff != "" {
		t.Errorf("writes per Txn (-want +got):\n%s", diff)
	}
}

func TestADeposedLeaderWritesNothingButFencesAndRefusesNothing(t *testing.T) {
	b := newCommitterBench(t, 100)
	var late, fence <-chan answered
	held := b.crowd(t, func() {
		if _, err := b.store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(testLeaderKey)}}); err != nil {
			t.Fatal(err)
		}
		late = b.decide(pendingWrite{}, "/late")
		fence = b.decide(pendingWrite{anyEpoch: true}, "/fence")
	})
	for _, c := range append(held, late) {
		if a := await(t, c); a.Outcome != txn.Unknown || !errors.Is(a.Err, post.ErrDeposed) {
			t.Errorf("%+v, want it unknown: the next leader decides", a)
		}
	}
	if a := await(t, fence); a.Outcome != txn.Landed {
		t.Errorf("fence: %+v", a)
	}
	if b.deposals.Load() == 0 {
		t.Error("nobody was told that the term is over")
	}
}

func TestFencesGoAlone(t *testing.T) {
	b := newCommitterBench(t, 100)
	var all []<-chan answered
	b.crowd(t, func() {
		for i, anyEpoch := range []bool{false, false, true, true, false} {
			all = append(all, b.decide(pendingWrite{anyEpoch: anyEpoch}, fmt.Sprint("/k/", i)))
		}
	})
	for _, c := range all {
		if a := await(t, c); a.Outcome != txn.Landed {
			t.Errorf("%+v", a)
		}
	}
	if diff := cmp.Diff([]int{1, 1, 1, 2}, b.sent()); diff != "" {
		t.Errorf("writes per Txn (-want +got):\n%s", diff)
	}
}

func TestABatchIsSplitAtTheLimit(t *testing.T) {
	b := newCommitterBench(t, 8)
	var all []<-chan answered
	b.crowd(t, func() {
		for i := range 5 {
			k := fmt.Sprint("/k/", i)
			all = append(all, b.decide(pendingWrite{}, k+"a", k+"b", k+"c"))
		}
	})
	for i, c := range all {
		if a := await(t, c); a.Outcome != txn.Landed {
			t.Errorf("decision %d: %+v", i, a)
		}
	}
	if diff := cmp.Diff([]int{3, 6, 6}, b.sent()); diff != "" {
		t.Errorf("writes per Txn (-want +got):\n%s", diff)
	}
}

func TestADecisionThatIsTooLargeIsRefusedAlone(t *testing.T) {
	b := newCommitterBench(t, 4)
	var large, small <-chan answered
	b.crowd(t, func() {
		large = b.decide(pendingWrite{}, "/a", "/b", "/c", "/d")
		small = b.decide(pendingWrite{}, "/e")
	})
	var tooMany *record.TooManyOpsError
	if a := await(t, large); a.Outcome != txn.Conflict || !errors.As(a.Err, &tooMany) || tooMany.Ops != 5 || tooMany.Limit != 4 {
		t.Errorf("large: %+v", a)
	}
	if a := await(t, small); a.Outcome != txn.Landed {
		t.Errorf("small: %+v", a)
	}
}

func TestADefiniteErrorOfABatchIsItsOwnDecisionsAlone(t *testing.T) {
	b := newCommitterBench(t, 100)
	b.fails["/bad"] = record.ErrNoSpace
	var good, bad <-chan answered
	b.crowd(t, func() {
		good = b.decide(pendingWrite{}, "/good")
		bad = b.decide(pendingWrite{}, "/bad")
	})
	if a := await(t, good); a.Outcome != txn.Landed {
		t.Errorf("good: %+v", a)
	}
	if a := await(t, bad); a.Outcome != txn.Conflict || !errors.Is(a.Err, record.ErrNoSpace) {
		t.Errorf("bad: %+v", a)
	}
}

func TestAnUnknownOutcomeIsEveryDecisionsAndNotRepeated(t *testing.T) {
	for name, landed := range map[string]bool{"it had landed": true, "it was lost": false} {
		t.Run(name, func(t *testing.T) {
			b := newCommitterBench(t, 100)
			if landed {
				b.lost = "/one"
			} else {
				b.fails["/one"] = fmt.Errorf("send: %w", record.ErrUnknownOutcome)
			}
			var one, two <-chan answered
			b.crowd(t, func() { one, two = b.decide(pendingWrite{}, "/one"), b.decide(pendingWrite{}, "/two") })
			for _, c := range []<-chan answered{one, two} {
				if a := await(t, c); a.Outcome != txn.Unknown || !errors.Is(a.Err, record.ErrUnknownOutcome) {
					t.Errorf("%+v, want Unknown", a)
				}
			}
			if a := await(t, b.decide(pendingWrite{}, "/three")); a.Outcome != txn.Landed {
				t.Errorf("the next one: %+v", a)
			}
			if diff := cmp.Diff([]int{1, 2}, b.sent()); diff != "" {
				t.Errorf("writes per Txn (-want +got):\n%s", diff)
			}
			if _, found, _, _ := b.store.Get(t.Context(), "/one"); found != landed {
				t.Errorf("the store has it: %t", found)
			}
		})
	}
}

func TestWhatWaitsWhenTheTermEndsIsUnknown(t *testing.T) {
	b := newCommitterBench(t, 100)
	var rest []<-chan answered
	held := b.crowd(t, func() {
		for i := range 3 {
			rest = append(rest, b.decide(pendingWrite{anyEpoch: true}, fmt.Sprint("/k/", i)))
		}
		b.end()
	})
	for _, c := range append(rest, held...) {
		if a := await(t, c); a.Outcome != txn.Unknown || !errors.Is(a.Err, context.Canceled) {
			t.Errorf("%+v, want Unknown", a)
		}
	}
	b.wait()
	for i, c := range rest {
		if len(c) > 0 {
			t.Errorf("decision %d was answered twice: %+v", i, <-c)
		}
	}
}

func TestReadersWaitUntilTheLeaderHasTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		fails  error
		passes bool // a reader that came before the leader had the answer
		want   txn.Outcome
	}{
		"it has landed":      {nil, true, txn.Landed},
		"its answer is lost": {record.ErrUnknownOutcome, false, txn.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mem.Open(mem.Options{BeforeCommit: func(record.Txn) error { return c.fails }})
				defer s.Close()
				var posted []func()
				committer := newCommitter(s, record.Absent(testLeaderKey), nil, func(f func()) { posted = append(posted, f) })
				ctx, cancel := context.WithCancel(t.Context())
				committer.start(ctx)
				var outcome txn.Outcome
				committer.submit(pendingWrite{ops: []record.Op{record.Put("/a", nil)}, done: func(o txn.Outcome, _ resource.Revision, _ error) { outcome = o }})
				passed := make(chan bool, 1)
				go func() { passed <- committer.barrier.pass(ctx, nil) }()
				synctest.Wait()
				if refused := len(passed) == 1 && !<-passed; refused == c.passes || len(posted) != 1 || outcome != c.want {
					t.Fatalf("outcome %d, %d functions posted, the reader is refused: %t", outcome, len(posted), refused)
				}
				posted[0]()
				if !c.passes {
					go func() { passed <- committer.barrier.pass(ctx, nil) }()
				}
				if !<-passed {
					t.Error("the reader is refused once the leader has the answer")
				}
				cancel()
				committer.wait()
			})
		})
	}
}

func TestAFullStoresRefusalIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.Open(mem.Options{BeforeCommit: func(record.Txn) error { return record.ErrNoSpace }})
		defer s.Close()
		committer := newCommitter(s, record.Absent(testLeaderKey), nil, func(f func()) { f() })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		committer.start(ctx)
		for _, term := range []struct {
			end  bool
			want time.Duration
		}{{false, lastReread}, {true, 0}} {
			began, done := time.Now(), make(chan answered, 1)
			committer.submit(pendingWrite{ops: []record.Op{record.Put("/a", nil)}, done: func(o txn.Outcome, rev resource.Revision, err error) { done <- answered{o, rev, err} }})
			synctest.Wait()
			if term.end {
				cancel()
			}
			if a := <-done; a.Outcome != txn.Conflict || !errors.Is(a.Err, record.ErrNoSpace) || time.Since(began) != term.want {
				t.Errorf("answer %+v after %v, want Conflict after %v", a, time.Since(began), term.want)
			}
		}
		committer.wait()
	})
}
