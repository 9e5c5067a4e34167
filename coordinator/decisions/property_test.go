package decisions_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/decisions"
)

func TestLegalLogsPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t, false)
		r := check(log)
		if !r.OK() {
			t.Fatalf("violations in a legal log: %v\n%s", r.Violations, text(log))
		}
		if r.Verified != r.Placements || r.Lost != 0 || len(r.Notes) != 0 {
			t.Fatalf("%d of %d placements verified, %d lost, notes %v", r.Verified, r.Placements, r.Lost, r.Notes)
		}
	})
}

func TestLossesAreNoViolations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t, true)
		r := check(log)
		if !r.OK() {
			t.Fatalf("violations where records were lost: %v\n%s", r.Violations, text(log))
		}
	})
}

func TestRecordsSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range drawLog(t, true) {
			line := decisions.Encode(r)
			back, err := decisions.Decode(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			if again := decisions.Encode(back); !bytes.Equal(line, again) {
				t.Fatalf("encoded again (-first +second):\n%s", cmp.Diff(string(line), string(again)))
			}
		}
	})
}

// forgery changes a legal log; it reports whether there was anything to change.
type forgery func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool)

// forgeries are each a way to break one rule.
var forgeries = map[string]struct {
	forge forgery
	want  []decisions.Rule // any of these
}{
	"a unit is passed over and nothing says why": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		states := 0
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool {
			if r.State != nil {
				states++
			}
			return states == 1 && r.Place != nil && r.Place.Ahead != decisions.Counts{}
		})
		if !ok {
			return nil, false
		}
		rest := slices.Clone(log[i:])
		log = slices.DeleteFunc(log[:i], func(r decisions.Record) bool { return r.Skip != nil })
		return number(append(log, rest...)), true
	}, []decisions.Rule{decisions.RuleUntried}},
	"a record is missing": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log[:len(log)-1], func(i int, r decisions.Record) bool { return i > 0 })
		if !ok {
			return nil, false
		}
		return slices.Delete(log, i, i+1), true
	}, []decisions.Rule{decisions.RuleSequence}},
	"a placement was not tried again": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil && r.Place.Fresh > 0 }, func(r *decisions.Record) { r.Place.Fresh-- })
	}, []decisions.Rule{decisions.RuleStale}},
	"more were tried again than there are": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil }, func(r *decisions.Record) { r.Place.Fresh++ })
	}, []decisions.Rule{decisions.RuleCounts}},
	"another position": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil }, func(r *decisions.Record) { r.Place.Position++ })
	}, []decisions.Rule{decisions.RuleCounts}},
	"who is ahead is there for another reason": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil }, func(r *decisions.Record) { r.Place.Ahead.AwaitsGang++ })
	}, []decisions.Rule{decisions.RuleCounts}},
	"a placement of a time before something was freed": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		last := uint64(0)
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool {
			before := last
			switch {
			case r.Abort != nil:
				last = r.Abort.Generation + 1
			case r.End != nil:
				last = r.End.Generation + 1
			}
			return r.Place != nil && before > 1
		})
		if ok {
			p := *log[i].Place
			p.Generation = 1
			log[i].Place = &p
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleGeneration}},
	"a unit is committed twice under one transaction": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return repeat(t, log, func(r decisions.Record) bool { return r.Commit != nil })
	}, []decisions.Rule{decisions.RuleTwice}},
	"a transaction is placed twice": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return repeat(t, log, func(r decisions.Record) bool { return r.Place != nil })
	}, []decisions.Rule{decisions.RuleTwice}},
	"a unit ends twice": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return repeat(t, log, func(r decisions.Record) bool { return r.End != nil })
	}, []decisions.Rule{decisions.RuleTwice}},
	"a commit of what was never placed": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Commit != nil }, func(r *decisions.Record) { r.Commit.Tx = "another" })
	}, []decisions.Rule{decisions.RuleUnplaced}},
	"a commit after the abort": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Abort != nil })
		if ok {
			log = insert(log, i+1, decisions.Record{Commit: &decisions.Commit{Tx: log[i].Abort.Tx, Unit: "u", Revision: 9}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleTwice}},
	"a unit that does not wait is placed": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil }, func(r *decisions.Record) { r.Place.Unit = "ns/alloc/nobody/0" })
	}, []decisions.Rule{decisions.RuleOrder}},
	"a unit is placed while it runs": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Commit != nil })
		if !ok {
			return nil, false
		}
		unit := log[i].Commit.Unit
		log = insert(log, i+1, decisions.Record{Wait: &decisions.Wait{Unit: unit, Order: decisions.Order{Priority: 99, Epoch: 1}}})
		return insert(log, i+2, decisions.Record{Place: &decisions.Place{Unit: unit, Tx: "second", Kind: decisions.Plain, Position: 1, Generation: 1 << 40}}), true
	}, []decisions.Rule{decisions.RuleRunning}},
	"a victim has the preemptor's priority": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil && r.Place.Kind == decisions.Preemption },
			func(r *decisions.Record) { r.Place.Victims[0].Priority = 2 })
	}, []decisions.Rule{decisions.RulePriority}},
	"a unit that is ahead arrived unseen": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil })
		if ok {
			log = insert(log, i, decisions.Record{Wait: &decisions.Wait{Unit: "ns/alloc/vip/0", Order: decisions.Order{Priority: 99, Epoch: 1}}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleUntried}},
	"a backfill without a calendar": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil })
		if !ok {
			return nil, false
		}
		p := *log[i].Place
		p.Position++
		p.Ahead.Backfilled++
		log[i].Place = &p
		log = insert(log, i, decisions.Record{Wait: &decisions.Wait{Unit: "ns/alloc/vip/0", Order: decisions.Order{Priority: 99, Epoch: 1}}})
		return insert(log, i+1, decisions.Record{Skip: &decisions.Skip{First: "ns/alloc/vip/0", Evidence: decisions.Evidence{Why: decisions.Backfilled}}}), true
	}, []decisions.Rule{decisions.RuleInadmissible}},
	"a device of a unit ahead that waits for it": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil })
		if !ok {
			return nil, false
		}
		p := log[i].Place
		log = insert(log, i, decisions.Record{Wait: &decisions.Wait{Unit: "ns/alloc/vip/0", Order: decisions.Order{Priority: 99, Epoch: 1}}})
		return insert(log, i+1, decisions.Record{Place: &decisions.Place{
			Unit: "ns/alloc/vip/0", Tx: "vip", Kind: decisions.Preemption, Position: 1, Generation: p.Generation, Devices: p.Devices,
			Victims: []decisions.Victim{{Unit: "other", Priority: 0}},
		}}), true
	}, []decisions.Rule{decisions.RuleNominated}},
	"a state that leaves somebody out": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.State != nil && !r.State.Begins && len(r.State.Waiting) > 0 },
			func(r *decisions.Record) { r.State.Waiting = r.State.Waiting[1:] })
	}, []decisions.Rule{decisions.RuleState}},
	"evidence for more units than there are": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Skip != nil && r.Skip.Count > 0 }, func(r *decisions.Record) { r.Skip.Count += 1000 })
	}, []decisions.Rule{decisions.RuleState}},
	"a kind of evidence that does not exist": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Skip != nil }, func(r *decisions.Record) { r.Skip.Evidence.Why = "no reason" })
	}, []decisions.Rule{decisions.RuleFormat}},
}

func TestForgedLogsAreRejected(t *testing.T) {
	for name, test := range forgeries {
		t.Run(name, func(t *testing.T) {
			tried := 0
			rapid.Check(t, func(t *rapid.T) {
				log, ok := test.forge(t, drawLog(t, false))
				if !ok {
					return
				}
				tried++
				r := check(log)
				if !slices.ContainsFunc(r.Violations, func(v decisions.Violation) bool { return slices.Contains(test.want, v.Rule) }) {
					t.Fatalf("violations %v, want one of %v\n%s", r.Violations, test.want, text(log))
				}
			})
			if tried == 0 {
				t.Error("no log was forged: the drawn logs have nothing to change")
			}
		})
	}
}

func choose(t *rapid.T, log []decisions.Record, is func(i int, r decisions.Record) bool) (int, bool) {
	var at []int
	for i, r := range log {
		if is(i, r) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(at).Draw(t, "forged"), true
}

func change(t *rapid.T, log []decisions.Record, is func(decisions.Record) bool, to func(*decisions.Record)) ([]decisions.Record, bool) {
	i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return is(r) })
	if ok {
		line, err := json.Marshal(log[i]) // a deep copy
		if err != nil {
			t.Fatal(err)
		}
		var r decisions.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		to(&r)
		log[i] = r
	}
	return log, ok
}

func repeat(t *rapid.T, log []decisions.Record, is func(decisions.Record) bool) ([]decisions.Record, bool) {
	i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return is(r) })
	if ok {
		log = insert(log, i+1, log[i])
	}
	return log, ok
}

func insert(log []decisions.Record, i int, r decisions.Record) []decisions.Record {
	return number(slices.Insert(log, i, r))
}

// number gives the records numbers without holes again.
func number(log []decisions.Record) []decisions.Record {
	for i := range log {
		log[i].Seq = uint64(i + 1)
	}
	return log
}

func text(log []decisions.Record) string {
	var b bytes.Buffer
	for _, r := range log {
		b.Write(decisions.Encode(r))
	}
	return b.String()
}
