package objects

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

// eventBytes is the size of an event without objects.
const eventBytes = 256

// kept is a history with events of allocations: the first at revision 11.
func kept(l Limits, namespaces ...string) *History {
	c := New()
	c.Record(10, l)
	for i, namespace := range namespaces {
		c.history.add(changed(namespace, ID{resource.Revision(11 + i), 0}))
	}
	return c.history
}

// changed is an event without objects.
func changed(namespace string, at ID) *Event {
	return &Event{Name: Name{Kind: Allocations, Namespace: namespace, Name: at.String()}, ID: at, Type: Modified, rendered: true}
}

// names are the events of an answer.
func names(events []*Event) (list []string) {
	for _, e := range events {
		list = append(list, e.Name.Name)
	}
	return list
}

func TestWhichEventsAHistoryKeeps(t *testing.T) {
	four := []string{"a", "a", "b", "a"}
	for name, c := range map[string]struct {
		limits    Limits
		events    []string // their namespaces
		namespace string
		after     ID
		most      int
		want      []string
		behind    ID
		lost      bool // events after the place are kept no more
	}{
		"as many events as are kept":                 {Limits{4, 1 << 20}, four, "", AllOf(10), 9, []string{"11.0", "12.0", "13.0", "14.0"}, AllOf(20), false},
		"one event more than is kept":                {Limits{3, 1 << 20}, four, "", AllOf(10), 9, nil, ID{}, true},
		"the place of the newest event that is lost": {Limits{3, 1 << 20}, four, "", ID{11, 0}, 9, []string{"12.0", "13.0", "14.0"}, AllOf(20), false},
		"a place just before that":                   {Limits{3, 1 << 20}, four, "", ID{11, -1}, 9, nil, ID{}, true},
		"as many bytes as are kept":                  {Limits{9, 4 * eventBytes}, four, "", AllOf(10), 9, []string{"11.0", "12.0", "13.0", "14.0"}, AllOf(20), false},
		"one byte more than is kept":                 {Limits{9, 4*eventBytes - 1}, four, "", ID{11, 0}, 9, []string{"12.0", "13.0", "14.0"}, AllOf(20), false},
		"an event larger than all that is kept":      {Limits{9, 1}, four, "", AllOf(13), 9, []string{"14.0"}, AllOf(20), false},
		"no room for an event":                       {Limits{}, four, "", AllOf(13), 9, []string{"14.0"}, AllOf(20), false},
		"a place before the beginning":               {Limits{9, 1 << 20}, four, "", ID{10, 5}, 9, nil, ID{}, true},
		"one namespace":                              {Limits{9, 1 << 20}, four, "a", AllOf(11), 9, []string{"12.0", "14.0"}, AllOf(20), false},
		"a namespace without events":                 {Limits{9, 1 << 20}, four, "c", AllOf(11), 9, nil, AllOf(20), false},
		"fewer at a time than there are":             {Limits{9, 1 << 20}, four, "a", AllOf(10), 2, []string{"11.0", "12.0"}, ID{12, 0}, false},
		"exactly as many at a time as there are":     {Limits{9, 1 << 20}, four, "a", AllOf(10), 3, []string{"11.0", "12.0", "14.0"}, AllOf(20), false},
		"the place of an event that is kept":         {Limits{9, 1 << 20}, four, "", ID{12, 0}, 9, []string{"13.0", "14.0"}, AllOf(20), false},
		"a place behind everything":                  {Limits{9, 1 << 20}, four, "", AllOf(14), 9, nil, AllOf(20), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := kept(c.limits, c.events...)
			cursor, placed := h.Since(Allocations, c.namespace, c.after)
			if placed == c.lost {
				t.Fatalf("the history has the events after %s: %t, want %t", c.after, placed, !c.lost)
			}
			if c.lost {
				return
			}
			events, _, behind, still := h.Next(cursor, c.most, &View{revision: 20})
			if !still || behind != c.behind {
				t.Errorf("behind them %s, kept %t; want %s", behind, still, c.behind)
			}
			if d := cmp.Diff(c.want, names(events)); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
		})
	}
}

// TestAReaderAtTheEdgeOfAHistory: a reader is too late once the next event of the
// namespace is lost, and not before.
func TestAReaderAtTheEdgeOfAHistory(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		further   []string // namespaces of the events after the reader's place
		late      bool
	}{
		"the next event is the oldest that is kept":  {"", []string{"a", "a", "a"}, false},
		"the next event is lost":                     {"", []string{"a", "a", "a", "a"}, true},
		"the next event of the namespace is lost":    {"a", []string{"a", "b", "b", "b"}, true},
		"events of another namespace alone are lost": {"a", []string{"b", "b", "a", "b", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := kept(Limits{3, 1 << 20}, "a", "b")
			cursor, placed := h.Since(Allocations, c.namespace, AllOf(12))
			if !placed {
				t.Fatal("no place behind the newest event")
			}
			for i, namespace := range c.further {
				h.add(changed(namespace, ID{resource.Revision(13 + i), 0}))
			}
			if _, _, _, still := h.Next(cursor, 9, &View{revision: 30}); still == c.late {
				t.Errorf("the reader may go on: %t, want %t", still, !c.late)
			}
		})
	}
}

func TestTheNewestChangesOfAHistory(t *testing.T) {
	h := kept(Limits{9, 1 << 20}, "a", "a")
	node := &Event{Name: Name{Kind: Nodes, Name: "n"}, ID: ID{12, 1}, Type: Modified, rendered: true}
	h.add(node)
	if d := cmp.Diff([]string{"12.0", "n"}, names(h.Newest(12))); d != "" && cmp.Diff([]string{"n", "12.0"}, names(h.Newest(12))) != "" {
		t.Errorf("changes of revision 12 (-want +got):\n%s", d)
	}
	if got := names(h.Newest(11)); len(got) != 0 {
		t.Errorf("changes of revision 11, after which there are others: %v, want none", got)
	}
}

// TestAHistoryIsTheEndOfAllEvents compares with a list of all events.
func TestAHistoryIsTheEndOfAllEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		h := kept(Limits{limit, 1 << 20})
		var all []*Event
		namespace := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace")
		cursor, _ := h.Since(Allocations, namespace, AllOf(10))
		var got, want []string
		for at := range rapid.IntRange(0, 30).Draw(t, "events") {
			e := changed(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of"), ID{resource.Revision(11 + at/2), at % 2})
			h.add(e)
			all = append(all, e)
			if namespace == "" || e.Namespace == namespace {
				want = append(want, e.Name.Name)
			}
			if rapid.Bool().Draw(t, "reads") {
				events, next, _, still := h.Next(cursor, rapid.IntRange(1, 3).Draw(t, "most"), &View{revision: 40})
				oldest := all[max(0, len(all)-limit)]
				if missed := len(want) > len(got) && place(all, want[len(got)]) < place(all, oldest.Name.Name); still == missed {
					t.Fatalf("the reader has %v of %v, the oldest that is kept is %s: it may go on: %t", got, want, oldest.Name.Name, still)
				}
				if !still {
					return
				}
				got, cursor = append(got, names(events)...), next
			}
			if d := cmp.Diff(want[:len(got)], got, cmp.Comparer(func(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); d != "" {
				t.Fatalf("the reader has (-want +got):\n%s", d)
			}
		}
	})
}

func place(all []*Event, name string) int {
	for i, e := range all {
		if e.Name.Name == name {
			return i
		}
	}
	return -1
}
