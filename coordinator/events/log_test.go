package events

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
)

// check verifies the invariant of Log.
func (l *Log) check(now time.Time) error {
	all, bytes, seen := 0, 0, map[*kept]bool{}
	for n, events := range l.of {
		if len(events) == 0 || len(events) > l.limits.OfObject {
			return fmt.Errorf("%v has %d events, the limit is %d", n, len(events), l.limits.OfObject)
		}
		for _, k := range events {
			all, bytes = all+1, bytes+k.Bytes()
			if named(k.Object) != n || k.Count < 1 || k.Last.Before(k.First) {
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
		case k.newer != nil && (k.newer.taken.Before(k.taken) || k.newer.older != k), k.newer == nil && k != l.newest:
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

// waiting is an allocation of a namespace that waits for a reason.
func waiting(namespace, name, uid, reason string) Told {
	return Told{Object{api.KindAllocation, namespace, name, uid}, []Happening{warning(reason, "", "waits for %s", reason)}}
}

// TestALogKeepsItsBounds: whatever happens, and the newest event is there. The changes
// that the log reports are those of its content.
func TestALogKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			OfObject: rapid.IntRange(1, 4).Draw(t, "of an object"), Kept: time.Duration(rapid.IntRange(1, 20).Draw(t, "kept")) * time.Second,
			Bytes: rapid.IntRange(1200, 12_000).Draw(t, "bytes"),
		}
		now := begin
		l := New(limits, now)
		table := map[string]*Event{}
		note := func(c Changes) {
			for _, e := range c.Put {
				table[e.Name()] = e
			}
			for _, e := range c.Dropped {
				delete(table, e.Name())
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			told := waiting("ml", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), "uid", rapid.SampledFrom([]string{"p", "q", "r", "s", "t", "u"}).Draw(t, "reason"))
			begins := rapid.Bool().Draw(t, "begins")
			if begins {
				ago := time.Duration(rapid.IntRange(0, 30).Draw(t, "ago")) * time.Second
				told.Happenings[0].At = now.Add(-ago).Format(time.RFC3339)
				note(l.Begin([]Told{told}, now))
			} else {
				note(l.Take(told, now))
			}
			if err := l.check(now); err != nil {
				t.Fatal(err)
			}
			if got := l.newest; !begins && (got == nil || got.Object != told.Object || got.Reason != told.Happenings[0].Reason || !got.Last.Equal(now)) {
				t.Fatalf("the newest event is %+v, want one of %v", got, told)
			}
			kept := map[string]*Event{}
			for e := range l.All() {
				kept[e.Name()] = e
			}
			if diff := cmp.Diff(kept, table, cmpopts.IgnoreUnexported(Event{})); diff != "" {
				t.Fatalf("the table of the changes differs (-log +table):\n%s", diff)
			}
		}
		note(Changes{Dropped: l.Expire(now.Add(limits.Kept + time.Second))})
		if l.Len() != 0 || l.bytes != 0 || len(l.of) != 0 || len(table) != 0 {
			t.Fatalf("%d events outlive their time", l.Len())
		}
	})
}

// all are the events without the parts that their names are made of.
func all(l *Log) (events []Event) {
	for e := range l.All() {
		events = append(events, *e)
	}
	return events
}

func TestTheSameEventIsCounted(t *testing.T) {
	l := New(Default, begin)
	for i, reason := range []string{"X", "Y", "X"} {
		l.Take(waiting("ml", "a", "uid-1", reason), begin.Add(time.Duration(i)*time.Minute))
	}
	l.Take(waiting("ml", "a", "uid-2", "X"), begin.Add(3*time.Minute)) // another object of the name
	l.Take(waiting("other", "a", "uid-3", "X"), begin.Add(4*time.Minute))
	event := func(namespace, uid, reason string, count, first, last int) Event {
		return Event{
			Object: Object{api.KindAllocation, namespace, "a", uid}, Type: api.EventWarning, Reason: reason, Message: "waits for " + reason,
			Count: count, First: begin.Add(time.Duration(first) * time.Minute), Last: begin.Add(time.Duration(last) * time.Minute),
		}
	}
	want := []Event{event("ml", "uid-1", "Y", 1, 1, 1), event("ml", "uid-1", "X", 2, 0, 2), event("ml", "uid-2", "X", 1, 3, 3), event("other", "uid-3", "X", 1, 4, 4)}
	if diff := cmp.Diff(want, all(l), cmpopts.IgnoreUnexported(Event{})); diff != "" {
		t.Error(diff)
	}
}

// A happening that is Latest is one event, whatever its messages, and keeps its name.
func TestTheLatestMessageStands(t *testing.T) {
	l := New(Default, begin)
	names := map[string]bool{}
	for i := range 3 {
		h := warning("Refused", "", "attempt %d", i).latest()
		for _, e := range l.Take(Told{Object{Kind: api.KindJob, Namespace: "ml", Name: "a"}, []Happening{h}}, begin.Add(time.Duration(i)*time.Second)).Put {
			names[e.Name()] = true
		}
	}
	got := all(l)
	if len(got) != 1 || got[0].Count != 3 || got[0].Message != "attempt 2" || !got[0].First.Equal(begin) || !got[0].Last.Equal(begin.Add(2*time.Second)) || len(names) != 1 {
		t.Errorf("%+v, names %v", got, names)
	}
}

// TestALogBeginsWithTheObjectsInstants: the events of objects that are there have the
// times that the objects tell, in the order of these. Older events, events without an
// instant and events that the log has already are not taken.
func TestALogBeginsWithTheObjectsInstants(t *testing.T) {
	ago := func(name string, d time.Duration) Told {
		told := waiting("ml", name, "uid", "X")
		told.Happenings[0].At = begin.Add(-d).Format(time.RFC3339)
		return told
	}
	l := New(Default, begin)
	c := l.Begin([]Told{ago("new", time.Minute), ago("older", 50*time.Minute), ago("too old", 61*time.Minute), waiting("ml", "none", "uid", "X")}, begin)
	names := func(events []*Event) (names []string) {
		for _, e := range events {
			names = append(names, fmt.Sprint(e.Object.Name, " ", begin.Sub(e.Last)))
		}
		return names
	}
	if got, want := names(c.Put), []string{"older 50m0s", "new 1m0s"}; !slices.Equal(got, want) {
		t.Errorf("the log begins with %q, want %q", got, want)
	}
	l.Resume(begin.Add(time.Second))
	if c := l.Begin([]Told{ago("new", time.Minute)}, begin.Add(time.Second)); len(c.Put)+len(c.Dropped) > 0 || !l.Since().Equal(begin.Add(time.Second)) {
		t.Errorf("an event that is there is taken again: %+v, since %s", c, l.Since())
	}
	if gone := l.Expire(begin.Add(11 * time.Minute)); len(gone) != 1 || gone[0].Object.Name != "older" {
		t.Errorf("after an hour %v are dropped, want older", names(gone))
	}
}

// An event's name is a name of an object, also where its object's name is as long as
// names may be.
func TestNamesOfEventsAreNames(t *testing.T) {
	for _, object := range []string{"a", "a.b", strings.Repeat("a", 253)} {
		l := New(Default, begin)
		e := l.Take(waiting("ml", object, "uid", "X"), begin).Put[0]
		if !api.IsSubdomain(e.Name()) || !strings.HasPrefix(e.Name(), NamePrefix(object)) {
			t.Errorf("%s: %q", object, e.Name())
		}
	}
}

// TestAFloodStaysWithinItsMemory: 10,000 objects with 12 different events each stay
// within the limit, and the estimate is not below the memory that is really taken.
func TestAFloodStaysWithinItsMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, l := heap(), New(Default, begin)
	for round := range 12 {
		for i := range 10_000 {
			l.Take(waiting("ml", fmt.Sprint("allocation-", i), fmt.Sprint("uid-of-allocation-", i), fmt.Sprint("Reason", round)), begin.Add(time.Duration(round)*time.Second))
		}
	}
	if err := l.check(begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	taken := heap() - before
	t.Logf("%d events, %d MiB by the estimate, %d MiB of the heap", l.Len(), l.Bytes()>>20, taken>>20)
	if l.Len() < 50_000 || taken > uint64(l.Bytes()) {
		t.Errorf("%d events take %d bytes of the heap and are counted as %d", l.Len(), taken, l.Bytes())
	}
	runtime.KeepAlive(l)
}

// An object with many changes does not push the events of others out.
func TestANoisyObjectKeepsItsOwnBound(t *testing.T) {
	l := New(Default, begin)
	l.Take(waiting("ml", "quiet", "uid", "X"), begin)
	for i := range 10_000 {
		l.Take(waiting("ml", "noisy", "uid", fmt.Sprint("Reason", i)), begin.Add(time.Duration(i)*time.Millisecond))
	}
	if l.Len() != Default.OfObject+1 {
		t.Errorf("%d events are kept, want %d and the other object's", l.Len(), Default.OfObject)
	}
}

func BenchmarkTake(b *testing.B) {
	l := New(Default, begin)
	for i := range b.N {
		told := Told{Object{api.KindAllocation, "ml", fmt.Sprint("a", i%10_000), "uid"}, []Happening{{Type: api.EventNormal, Reason: "Ready", Message: "m"}}}
		l.Take(told, begin.Add(time.Duration(i)*time.Millisecond))
	}
}
