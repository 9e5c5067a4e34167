package post_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// of is the author of a change, by an administrator: each change has an entry of its own.
func of(id string) *post.Author {
	a := post.NewAuthor(&record.Audit{
		Actor: record.Actor{ID: fmt.Sprintf("%013d-ada%s", start.UnixMilli(), id), Person: "ada", RequestID: "r-" + id}, AtMillis: start.UnixMilli(),
		Verb: "patch", Kind: "allocations", Namespace: "default", Name: "a", Apart: true,
	}, ceiling.Caller{})
	return &a
}

// plain is a write of some keys, with a function for the outcome.
func plain(keys int, done func(txn.Outcome)) post.Decision {
	d := post.Decision{Done: func(o txn.Outcome, _ resource.Revision, _ error) { done(o) }}
	for i := range keys {
		d.Ops = append(d.Ops, record.Put(fmt.Sprint("/", i), nil))
	}
	return d
}

// TestAChangeHasOneEntry: the first write that lands has it, and no other.
func TestAChangeHasOneEntry(t *testing.T) {
	for name, c := range map[string]struct {
		author *post.Author
		keys   int
		made   bool // the record of a submission has the person
		first  txn.Outcome
		want   []int // operations of the first write and of the second
	}{
		"nobody's":                        {nil, 1, false, txn.Landed, []int{1, 1}},
		"without a person":                {&post.Author{}, 1, false, txn.Landed, []int{1, 1}},
		"the first lands":                 {of("1"), 1, false, txn.Landed, []int{2, 1}},
		"the first meets a conflict":      {of("2"), 1, false, txn.Conflict, []int{2, 2}},
		"the record has the person":       {of("3"), 1, true, txn.Landed, []int{1, 1}},
		"without an operation":            {of("4"), 0, false, txn.Landed, []int{0, 0}},
		"as many operations as fit in":    {of("5"), 15, false, txn.Landed, []int{16, 15}},
		"as many as the store takes (16)": {of("6"), 16, false, txn.Landed, []int{16, 16}},
	} {
		o := newOffice(t)
		var again bool
		o.do(func() {
			defer o.ActFor(c.author)()
			if c.made {
				if m := o.Made(); m == nil || m.Person != "ada" {
					t.Errorf("%s: made by %+v", name, m)
				}
			}
			o.Submit(plain(c.keys, func(txn.Outcome) {
				if !again {
					again = true
					o.Submit(plain(c.keys, func(txn.Outcome) {}))
				}
			}))
		})
		var got []int
		for range 2 {
			e := o.take()
			got = append(got, len(e.Write.Ops))
			o.do(func() { o.Wrote(e.Token, c.first, 9, nil) })
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: operations of each write (-want +got)\n%s", name, d)
		}
	}
}

// TestWhatFollowsAnAnswerIsOfTheSameAuthor: also what follows a read, or the keys of a node.
func TestWhatFollowsAnAnswerIsOfTheSameAuthor(t *testing.T) {
	o := newOffice(t)
	ada, bob := of("1"), of("2")
	var seen []*post.Author
	note := func() { seen = append(seen, o.Acting()) }
	o.do(func() {
		defer o.ActFor(ada)()
		o.Submit(plain(1, func(txn.Outcome) { note() }))
		o.Read("/k", func(record.KV, bool, resource.Revision) { note() })
		o.ReadNode("n1", func(post.NodeKeys) { note() })
	})
	o.do(func() {
		defer o.ActFor(bob)()
		o.Wrote(1, txn.Landed, 9, nil)
		o.HasRead(2, record.KV{}, false, 9)
		o.HasReadNode(3, post.NodeKeys{})
		note()
	})
	if want := []*post.Author{ada, ada, ada, bob}; !slices.Equal(seen, want) {
		t.Errorf("the authors are %v, want %v", seen, want)
	}
	o.do(func() {
		o.Wrote(1, txn.Landed, 9, nil)
		o.HasRead(2, record.KV{}, false, 9)
		o.HasReadNode(3, post.NodeKeys{})
	})
	if len(seen) != 4 {
		t.Errorf("a second answer came to somebody: %d", len(seen))
	}
}

// TestALeaseIsRenewedByTheHour: and stays until the next one is there.
func TestALeaseIsRenewedByTheHour(t *testing.T) {
	o := newOffice(t)
	for i, c := range []struct {
		wait time.Duration
		asks bool
	}{{0, false}, {time.Hour, false}, {1, true}, {time.Second, false}, {time.Hour, true}} {
		o.pass(c.wait)
		if o.do(o.RenewLease); o.did(post.GrantLease) != c.asks {
			t.Errorf("step %d: asks %t", i, !c.asks)
		}
	}
	for _, l := range []record.LeaseID{3, 0} {
		if o.do(func() { o.TakeLease(l) }); o.Lease() != 3 {
			t.Errorf("the lease is %d after the answer %d, want 3", o.Lease(), l)
		}
	}
}

// TestNumbersAreDrawnOnce: identifiers differ, places ascend, and one place is behind all.
func TestNumbersAreDrawnOnce(t *testing.T) {
	o := newOffice(t)
	a, behind, b, tx := o.NextArrival(), o.Behind(), o.NextArrival(), o.NextTx("u")
	_, epoch, counter, err := tx.Attempt()
	if want := (record.Sequence{Epoch: 7, Counter: 2}); a != (record.Sequence{Epoch: 7, Counter: 1}) || behind != want || b != want || epoch != 7 || counter != 3 || err != nil {
		t.Errorf("arrivals %v and %v, behind them %v; the transaction %s", a, b, behind, tx)
	}
	if o.UID("alloc") == o.UID("alloc") || o.NextTx("u") == tx {
		t.Error("an identifier was drawn twice")
	}
}

// TestInstantsFollowTheMonotonicClock: a step of the wall clock moves no instant.
func TestInstantsFollowTheMonotonicClock(t *testing.T) {
	elected := time.Now()
	p := post.New(1, 16, elected.Add(-time.Minute), [32]byte{})
	p.Elect(elected)
	p.Begin(elected.Add(1500*time.Millisecond), nil)
	if got := p.Millis() - elected.UnixMilli(); got < 1499 || got > 1501 {
		t.Errorf("after 1.5 s the instant is %d ms later", got)
	}
	for _, at := range []time.Time{{}, time.UnixMilli(946_684_800_123).UTC()} {
		if got := post.InstantOf(post.MillisOf(at)); !got.Equal(at) {
			t.Errorf("%v becomes %v", at, got)
		}
	}
}
