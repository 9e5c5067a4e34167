package lead

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// labels has a person label an allocation, and reports whether the entry of the change is
// a key of the store, a line in the log, or neither.
func (x *scene) labels(person string, i int) string {
	x.t.Helper()
	x.clear()
	text := fmt.Sprint(i)
	by := &record.Audit{
		Actor:    record.Actor{ID: fmt.Sprintf("%013d-%s%d", x.clock.UnixMilli(), person, i), Person: person, RequestID: "r-" + text},
		AtMillis: x.clock.UnixMilli(), Verb: "patch", Kind: "allocations", Namespace: "default", Name: "a",
	}
	x.ask(AskedBy{by, PatchAllocation{"default", "a", api.WorkPatch{Labels: api.MapPatch{Set: map[string]*string{"i": &text}}}}})
	x.answers()
	if refused := x.refusedWith(); refused != "" {
		x.t.Fatalf("change %d is refused: %s", i, refused)
	}
	keys, lines := 0, 0
	for _, e := range x.left {
		switch e.Kind {
		case WriteKeys:
			for _, op := range e.Write.Ops {
				if strings.HasPrefix(op.Key, record.AuditPrefix) {
					keys++
				}
			}
		case LogEvent:
			if line := fmt.Sprint(e.Event.Fields...); e.Event.Name == "audit_left_out" && strings.Contains(line, person) && strings.Contains(line, "r-"+text) {
				lines++
			}
		}
	}
	return map[[2]int]string{{1, 0}: "a key", {0, 1}: "a line"}[[2]int{keys, lines}]
}

// A term writes a bounded number of keys for the audit in an hour, so that a person who
// changes an object without end does not fill the store. Each change beyond that comes
// about, and its entry is a line in the log. The next hour has room again.
func TestAnHourHasABoundedNumberOfAuditKeys(t *testing.T) {
	x := newScene(t)
	x.submit("a", 1, `"suspend":true,`)
	x.answers()
	i := 0
	change := func(want string) {
		t.Helper()
		i++
		if got := x.labels("ada", i); got != want {
			t.Fatalf("change %d, after %s, has %q as its entry, want %s", i, x.clock.Sub(x.auditing.hour), got, want)
		}
	}
	for range mostAudited {
		change("a key")
	}
	for range 3 {
		change("a line")
	}
	x.clock = x.clock.Add(time.Hour - time.Millisecond)
	change("a line")
	x.clock = x.clock.Add(time.Millisecond)
	for range 3 {
		change("a key")
	}
	kept, _, err := x.kv.Range(t.Context(), record.AuditPrefix, store.RangeOptions{})
	if err != nil || len(kept) != mostAudited+3 {
		t.Errorf("the store has %d keys of entries, want %d: %v", len(kept), mostAudited+3, err)
	}
}
