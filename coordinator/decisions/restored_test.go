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
	s := newScene()
	s.log = nil
	t := decisions.NewTracker(epoch, s.room, s, func(r decisions.Record) bool { s.log = append(s.log, r); return false })
	s.tracker = t
	for i, act := range []func(){
		func() { t.Ended("a", key(0, 1).Path, "StoreRestored") },
		func() { s.offer(key(0, 1), 1); s.place(key(0, 1), "b") },
		func() { t.Committed("b", 9) },
		func() {},
	} {
		if i == say {
			t.Restored(decisions.Restored{By: "node n1", Detail: "why"})
		}
		act()
	}
	return s.log
}

func TestARestoredStoreIsSeenInTheAccount(t *testing.T) {
	s := newScene()
	s.offer(key(0, 1), 1)
	s.place(key(0, 1), "a")
	s.tracker.Committed("a", 10)
	s.tracker.Ended("a", key(0, 1).Path, "done")
	s.offer(key(0, 1), 1)
	s.place(key(0, 1), "b")
	s.tracker.Aborted("b")
	before := s.log
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
		log := drawLog(t, true, false)
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
