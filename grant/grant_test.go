package grant_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/musterd/muster/grant"
)

func Example() {
	fmt.Println(grant.Reserved.MayBecome(grant.Held), grant.Waiting.MayBecome(grant.Held))
	fmt.Println(grant.RecordCommitted.MayBecome(grant.RecordAborted), grant.RecordEvicting.Charged())
	// Output:
	// true false
	// false true
}

// The table is PROTOCOL.md's I11 and section 1: what exists is never undone, and
// a terminal state is left by no step.
func TestStepsOfARecord(t *testing.T) {
	edges := grant.RecordEdges()
	for from := grant.RecordAbsent; from <= grant.RecordAborted; from++ {
		leaves := false
		for to := grant.RecordAbsent; to <= grant.RecordAborted; to++ {
			may := from.MayBecome(to)
			if may != slices.Contains(edges, grant.RecordEdge{From: from, To: to}) {
				t.Errorf("%s to %s: %t, the table says otherwise", from, to, may)
			}
			if may && (to == grant.RecordAbsent || to == grant.RecordAborted && from != grant.RecordAbsent || to == grant.RecordCommitted && from != grant.RecordAbsent && from != to) {
				t.Errorf("%s becomes %s", from, to)
			}
			if may && from.Charged() && to < from {
				t.Errorf("%s goes back to %s", from, to)
			}
			leaves = leaves || may
		}
		if leaves == from.Terminal() {
			t.Errorf("%s: terminal %t, left by a step %t", from, from.Terminal(), leaves)
		}
		if from.Charged() && from.Terminal() {
			t.Errorf("%s is charged and terminal", from)
		}
	}
}

func TestStepsOfAGrant(t *testing.T) {
	edges := grant.Edges()
	for i, e := range edges {
		if i > 0 && (e.From < edges[i-1].From) {
			t.Errorf("edge %d, %v: the table is in the order of the states that are left", i, e)
		}
		if slices.ContainsFunc(edges[:i], func(o grant.Edge) bool {
			return o.From == e.From && (o.To == e.To || o.Event == e.Event && e.From != grant.None)
		}) {
			t.Errorf("%v is there twice", e)
		}
		if e.From == grant.No || e.To == grant.No {
			t.Errorf("%v: No is an answer, no state", e)
		}
	}
	for from := grant.None; from <= grant.No; from++ {
		for to := grant.None; to <= grant.No; to++ {
			if may, listed := from.MayBecome(to), slices.ContainsFunc(edges, func(e grant.Edge) bool { return e.From == from && e.To == to }); may != listed {
				t.Errorf("%s to %s: %t, in the table %t", from, to, may, listed)
			}
			if from.Holds() && from.MayBecome(to) && !to.Holds() && to != grant.Tombstone && to != grant.None {
				t.Errorf("%s holds its devices and becomes %s", from, to)
			}
		}
	}
}

func TestStatesOfARecordAreWrittenByName(t *testing.T) {
	for s := grant.RecordCommitted; s <= grant.RecordAborted; s++ {
		b, err := json.Marshal(s)
		var back grant.RecordState
		if err != nil || string(b) != `"`+s.String()+`"` || json.Unmarshal(b, &back) != nil || back != s {
			t.Errorf("%s is written as %s (%v) and read as %s", s, b, err, back)
		}
	}
	for _, text := range []string{"", "absent", "committed", "DONE", "RecordState(1)"} {
		if s := grant.RecordReleased; s.UnmarshalText([]byte(text)) == nil || s != grant.RecordReleased {
			t.Errorf("%q is read as %s", text, s)
		}
	}
}

func TestStatesOutsideTheListHaveAName(t *testing.T) {
	if got := fmt.Sprint(grant.State(99), grant.RecordState(99)); got != "State(99) RecordState(99)" {
		t.Error(got)
	}
}
