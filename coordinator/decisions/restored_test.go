package decisions_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/resource"
)

// again is a term of a restored store: what had ended ends once more, and units
// that ran are placed anew. say is where it tells that the store was restored.
func again(epoch resource.Epoch, say int) []decisions.Record {
	var log []decisions.Record
	t := decisions.NewTracker(epoch, 1, nil, func(r decisions.Record) bool { log = append(log, r); return false })
	for i, act := range []func(){
		func() { t.Ended("a", key(0, 1).Path, "StoreRestored") },
		func() { t.Freed(2); t.Placed(decisions.Placement{Key: key(0, 1), Tx: "b", Kind: decisions.Plain}) },
		func() { t.Committed("b", 9) },
		func() {},
	} {
		if i == say {
			t.Restored(decisions.Restored{By: "node n1", Detail: "why"})
		}
		act()
	}
	return log
}

func TestARestoredStoreIsSeenInTheAccount(t *testing.T) {
	_, before := rules(func(t *decisions.Tracker) {
		t.Placed(decisions.Placement{Key: key(0, 1), Tx: "a", Kind: decisions.Plain})
		t.Committed("a", 10)
		t.Ended("a", key(0, 1).Path, "done")
		t.Freed(2)
		t.Placed(decisions.Placement{Key: key(0, 1), Tx: "b", Kind: decisions.Plain})
		t.Aborted("b")
	})
	twice := []decisions.Rule{decisions.RuleTwice, decisions.RuleTwice, decisions.RuleTwice}
	for name, test := range map[string]struct {
		log  []decisions.Record
		want []decisions.Rule
		seen int
	}{
		"nobody says so":                         {log: again(5, -1), want: twice},
		"it is said when the term begins":        {log: again(5, 0), seen: 1},
		"it is said later":                       {log: again(5, 2), seen: 1},
		"it is said at the end":                  {log: again(5, 3), seen: 1},
		"it is not said of what comes after it":  {log: slices.Concat(again(5, 0), again(6, -1)), want: twice, seen: 1},
		"it is said in each of two terms":        {log: slices.Concat(again(5, 0), again(6, 0)), seen: 2},
		"a term after it begins, and then it is": {log: slices.Concat(again(5, -1), again(6, 3)), want: twice, seen: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := check(slices.Concat(before, test.log))
			var broken []decisions.Rule
			for _, v := range r.Violations {
				broken = append(broken, v.Rule)
			}
			if diff := cmp.Diff(test.want, broken); diff != "" || r.Restored != test.seen {
				t.Errorf("restored %d, want %d; rules broken (-want +got):\n%s\n%v", r.Restored, test.seen, diff, r.Violations)
			}
		})
	}
}

// TestWhatATermDoesTwiceIsNotExcused: that the store went back explains what
// earlier terms decided, and nothing of the term itself.
func TestWhatATermDoesTwiceIsNotExcused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t, false)
		i, found := choose(t, log, func(_ int, r decisions.Record) bool { return r.Commit != nil || r.End != nil })
		if !found {
			return
		}
		log = slices.Insert(log, i, log[i])
		at := rapid.IntRange(1, len(log)).Draw(t, "restored")
		log = number(slices.Insert(log, at, decisions.Record{Seq: 1, Restored: &decisions.Restored{Epoch: 7, By: "node n1"}}))
		r := check(log)
		if !slices.ContainsFunc(r.Violations, func(v decisions.Violation) bool { return v.Rule == decisions.RuleTwice }) {
			t.Fatalf("nothing is held against it: %v\n%s", r.Violations, text(log))
		}
	})
}
