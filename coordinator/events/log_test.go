package events

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
)

// check verifies the invariant of Log.
func (l *Log) check(now time.Time) error {
	all, bytes, seen := 0, 0, map[*kept]bool{}
	for n, events := range l.of {
		if len(events) == 0 || len(events) > l.limits.OfObject {
			return fmt.Errorf("%v has %d events, the limit is %d", n, len(events), l.limits.OfObject)
		}
		for _, k := range events {
			all, bytes = all+1, bytes+k.bytes()
			if k.Object != n || k.Count < 1 || k.Last.Before(k.First) {
				return fmt.Errorf("%v holds %+v", n, k.Event)
			}
			seen[k] = true
		}
	}
	if bytes != l.bytes || bytes > l.limits.Bytes {
		return fmt.Errorf("%d bytes are counted as %d, the limit is %d", bytes, l.bytes, l.limits.Bytes)
	}
	chained := 0
	for k := l.oldest; k != nil; k = k.newer {
		chained++
		switch {
		case !seen[k]:
			return fmt.Errorf("%+v is in the order and of no object", k.Event)
		case k.newer != nil && k.newer.taken.Before(k.taken), k.newer == nil && k != l.newest:
			return fmt.Errorf("the order is broken at %+v", k.Event)
		case now.Sub(k.taken) > l.limits.Kept:
			return fmt.Errorf("%+v was taken %s ago", k.Event, now.Sub(k.taken))
		}
	}
	if chained != all {
		return fmt.Errorf("%d events are in the order, %d are kept", chained, all)
	}
	return nil
}

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// waiting is an allocation that waits for a reason.
func waiting(reason string) *api.Allocation {
	return &api.Allocation{Status: api.AllocationStatus{
		Phase: api.Pending, Conditions: []api.Condition{{Type: "Scheduled", Status: "False", Reason: reason}},
	}}
}

// TestALogKeepsItsBounds: whatever happens, and the newest event is there.
func TestALogKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			OfObject: rapid.IntRange(1, 4).Draw(t, "of an object"), Kept: time.Duration(rapid.IntRange(1, 20).Draw(t, "kept")) * time.Second,
			Bytes: rapid.IntRange(400, 4000).Draw(t, "bytes"),
		}
		now := begin
		l := New(limits, now)
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			n := objects.Name{Kind: objects.Allocations, Namespace: "ml", Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
			reason := rapid.SampledFrom([]string{"p", "q", "r", "s", "t", "u"}).Draw(t, "reason")
			l.Take(n, "uid", nil, waiting(reason), now)
			if err := l.check(now); err != nil {
				t.Fatal(err)
			}
			if got := l.newest; got == nil || got.Object != n || got.Message != reason+": " || !got.Last.Equal(now) {
				t.Fatalf("the newest event is %+v, want one of %v for %s", got, n, reason)
			}
		}
		if got := l.List(Selection{}, now.Add(limits.Kept+time.Second)); len(got) != 0 || l.bytes != 0 || len(l.of) != 0 {
			t.Fatalf("%d events outlive their time", len(got))
		}
	})
}

func TestTheSameEventIsCounted(t *testing.T) {
	l := New(Default, begin)
	a := objects.Name{Kind: objects.Allocations, Namespace: "ml", Name: "a"}
	for i, reason := range []string{"x", "y", "x"} {
		l.Take(a, "uid-1", nil, waiting(reason), begin.Add(time.Duration(i)*time.Minute))
	}
	l.Take(a, "uid-2", nil, waiting("x"), begin.Add(3*time.Minute)) // another object of the name
	l.Take(objects.Name{Kind: objects.Allocations, Namespace: "other", Name: "a"}, "uid-3", nil, waiting("x"), begin)
	want := []Event{
		{Object: a, UID: "uid-1", Type: Normal, Reason: "Queued", Message: "y: ", Count: 1, First: begin.Add(time.Minute), Last: begin.Add(time.Minute)},
		{Object: a, UID: "uid-1", Type: Normal, Reason: "Queued", Message: "x: ", Count: 2, First: begin, Last: begin.Add(2 * time.Minute)},
		{Object: a, UID: "uid-2", Type: Normal, Reason: "Queued", Message: "x: ", Count: 1, First: begin.Add(3 * time.Minute), Last: begin.Add(3 * time.Minute)},
	}
	if diff := cmp.Diff(want, l.List(Selection{Namespace: "ml"}, begin.Add(4*time.Minute))); diff != "" {
		t.Error(diff)
	}
	if got := l.List(Selection{UID: "uid-2"}, begin); !slices.Equal(got, want[2:]) {
		t.Errorf("%+v", got)
	}
	if got := l.List(Selection{Match: func(e *Event) bool { return e.Count > 1 }}, begin); !slices.Equal(got, want[1:2]) {
		t.Errorf("%+v", got)
	}
}

// TestALogBeginsWithTheObjectsInstants: the events of objects that are there have
// the times that the objects tell, which may be long before the Log began.
func TestALogBeginsWithTheObjectsInstants(t *testing.T) {
	l := New(Default, begin)
	a := waiting("x")
	a.Status.Conditions[0].LastTransitionTime = "2026-01-01T00:00:00Z"
	l.Begin(objects.Name{Kind: objects.Allocations, Namespace: "ml", Name: "a"}, "uid", a, begin)
	got := l.List(Selection{}, begin)
	if len(got) != 1 || !got[0].First.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) || !l.Since().Equal(begin) {
		t.Errorf("%+v since %s", got, l.Since())
	}
}

func BenchmarkTake(b *testing.B) {
	l, was, is := New(Default, begin), waiting("x"), waiting("y")
	for i := range b.N {
		n := objects.Name{Kind: objects.Allocations, Namespace: "ml", Name: fmt.Sprint("a", i%10_000)}
		l.Take(n, "uid", was, is, begin.Add(time.Duration(i)*time.Millisecond))
	}
}
