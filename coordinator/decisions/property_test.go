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
		log := drawLog(t, true, false)
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
		log := drawLog(t, true, true)
		r := check(log)
		if !r.OK() {
			t.Fatalf("violations where records were lost: %v\n%s", r.Violations, text(log))
		}
	})
}

func TestRecordsSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range drawLog(t, true, true) {
			line := decisions.Encode(r)
			back, err := decisions.Decode(decisions.Version, bytes.TrimSuffix(line, []byte("\n")))
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
	"a class is passed over and nothing says why": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		slept := false
		i, ok := choose(t, log, func(i int, r decisions.Record) bool {
			slept = slept || r.State != nil && slices.ContainsFunc(r.State.Classes, func(c decisions.StateClass) bool { return c.Sleep != nil })
			return !slept && r.Place != nil && r.Place.Ahead.Asleep > 0
		})
		if !ok {
			return nil, false
		}
		rest := slices.Clone(log[i:])
		log = slices.DeleteFunc(log[:i], func(r decisions.Record) bool { return r.Sleep != nil })
		return number(append(log, rest...)), true
	}, []decisions.Rule{decisions.RuleUntried}},
	"a class is woken and not tried": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil && r.Place.Ahead.Asleep > 0 })
		if ok {
			log = insert(log, i, decisions.Record{Event: &decisions.Event{Kind: decisions.All}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleStale}},
	"a node grows, and a class that may fit there is not tried": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := placedBehind(t, log, decisions.NoPlace, decisions.NoVictims)
		if ok {
			log = insert(log, i, decisions.Record{Node: &decisions.Node{ID: "huge", Labels: map[string]string{"half": "1"}}})
			log = insert(log, i+1, decisions.Record{Event: &decisions.Event{Kind: decisions.Grew, Nodes: []decisions.Free{
				{Node: "huge", CPU: 1 << 40, Memory: 1 << 50, GPU: 1 << 40, GPUs: 64},
			}}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleStale}},
	"a charge ends, and a class over that limit is not tried": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := placedBehind(t, log, decisions.OverLimit)
		if ok {
			log = insert(log, i, decisions.Record{Event: &decisions.Event{Kind: decisions.Freed, Namespace: "ns0"}})
			log = insert(log, i, decisions.Record{Event: &decisions.Event{Kind: decisions.Freed, Namespace: "ns1"}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleStale}},
	"the end of a charge is left out": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := placedBehind(t, log, decisions.OverLimit)
		if ok {
			log = insert(log, i, decisions.Record{End: &decisions.End{Tx: "of before", Unit: "ns0/alloc/x/0"}})
			log = insert(log, i, decisions.Record{End: &decisions.End{Tx: "of long before", Unit: "ns1/alloc/x/0"}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleStale}},
	"a state says that a class sleeps which was woken": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(i int, r decisions.Record) bool {
			return r.State != nil && !r.State.Begins && slices.ContainsFunc(r.State.Classes, func(c decisions.StateClass) bool { return c.Sleep != nil })
		})
		if ok {
			log = insert(log, i, decisions.Record{Event: &decisions.Event{Kind: decisions.All}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleState}},
	"a unit joins a class of another priority": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Class != nil }, func(r *decisions.Record) { r.Class.Priority += 5 })
	}, []decisions.Rule{decisions.RuleState}},
	"a class that nothing describes": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Offer != nil }, func(r *decisions.Record) { r.Offer.Class = 9999 })
	}, []decisions.Rule{decisions.RuleState}},
	"a unit is placed that could not be tried": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil })
		if ok {
			log = insert(log, i, decisions.Record{Hold: &decisions.Hold{Unit: log[i].Place.Unit, Evidence: decisions.Evidence{Why: decisions.BeingWritten}}})
		}
		return log, ok
	}, []decisions.Rule{decisions.RuleOrder}},
	"an event on a node of which nothing is known": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Event != nil && len(r.Event.Nodes) > 0 }, func(r *decisions.Record) { r.Event.Nodes[0].Node = "nowhere" })
	}, []decisions.Rule{decisions.RuleState}},
	"a record is missing": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log[:len(log)-1], func(i int, r decisions.Record) bool { return i > 0 })
		if !ok {
			return nil, false
		}
		return slices.Delete(log, i, i+1), true
	}, []decisions.Rule{decisions.RuleSequence}},
	"another position": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil }, func(r *decisions.Record) { r.Place.Position++ })
	}, []decisions.Rule{decisions.RuleCounts}},
	"who is ahead is there for another reason": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Place != nil }, func(r *decisions.Record) { r.Place.Ahead.AwaitsGang++ })
	}, []decisions.Rule{decisions.RuleCounts}},
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
		return insert(log, i+2, decisions.Record{Place: &decisions.Place{Unit: unit, Tx: "second", Kind: decisions.Plain, Position: 1}}), true
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
	"a lower unit is placed first": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil })
		if !ok {
			return nil, false
		}
		p := *log[i].Place
		p.Position++
		p.Ahead.Asleep++
		log[i].Place = &p
		log = insert(log, i, decisions.Record{Wait: &decisions.Wait{Unit: "ns/alloc/vip/0", Order: decisions.Order{Priority: 99, Epoch: 1}}})
		log = insert(log, i+1, decisions.Record{Class: &decisions.Class{ID: 9999, Members: 1, Namespace: "ns", Priority: 99, Right: "nobody"}})
		return insert(log, i+2, decisions.Record{Offer: &decisions.Offer{Unit: "ns/alloc/vip/0", Class: 9999}}), true
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
		return insert(log, i+1, decisions.Record{Hold: &decisions.Hold{Unit: "ns/alloc/vip/0", Evidence: decisions.Evidence{Why: decisions.Backfilled}}}), true
	}, []decisions.Rule{decisions.RuleInadmissible}},
	"a device of a unit ahead that waits for it": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		i, ok := choose(t, log, func(_ int, r decisions.Record) bool { return r.Place != nil })
		if !ok {
			return nil, false
		}
		p := log[i].Place
		log = insert(log, i, decisions.Record{Wait: &decisions.Wait{Unit: "ns/alloc/vip/0", Order: decisions.Order{Priority: 99, Epoch: 1}}})
		return insert(log, i+1, decisions.Record{Place: &decisions.Place{
			Unit: "ns/alloc/vip/0", Tx: "vip", Kind: decisions.Preemption, Position: 1, Devices: p.Devices,
			Victims: []decisions.Victim{{Unit: "other", Priority: 0}},
		}}), true
	}, []decisions.Rule{decisions.RuleNominated}},
	"a state that leaves somebody out": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.State != nil && !r.State.Begins && len(r.State.Waiting) > 0 },
			func(r *decisions.Record) { r.State.Waiting = r.State.Waiting[1:] })
	}, []decisions.Rule{decisions.RuleState}},
	"evidence for a unit that does not wait": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Hold != nil }, func(r *decisions.Record) { r.Hold.Unit = "ns/alloc/nobody/0" })
	}, []decisions.Rule{decisions.RuleOrder}},
	"a kind of evidence that does not exist": {func(t *rapid.T, log []decisions.Record) ([]decisions.Record, bool) {
		return change(t, log, func(r decisions.Record) bool { return r.Hold != nil }, func(r *decisions.Record) { r.Hold.Evidence.Why = "no reason" })
	}, []decisions.Rule{decisions.RuleFormat}},
}

// drawForged draws logs until the forgery finds something to change. One log in
// fifty has a preemption whose victim's priority can be forged.
func drawForged(t *rapid.T, forge func(*rapid.T, []decisions.Record) ([]decisions.Record, bool)) ([]decisions.Record, bool) {
	const mostDraws = 500
	for range mostDraws {
		if log, ok := forge(t, drawLog(t, true, false)); ok {
			return log, true
		}
	}
	return nil, false
}

func TestForgedLogsAreRejected(t *testing.T) {
	for name, test := range forgeries {
		t.Run(name, func(t *testing.T) {
			tried := 0
			rapid.Check(t, func(t *rapid.T) {
				log, ok := drawForged(t, test.forge)
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

// placedBehind chooses a placement with a class of one of these codes ahead of it,
// since no record has woken it.
func placedBehind(t *rapid.T, log []decisions.Record, codes ...decisions.Code) (int, bool) {
	return choose(t, log, func(i int, r decisions.Record) bool {
		if r.Place == nil || r.Place.Ahead.Asleep == 0 {
			return false
		}
		c := decisions.NewChecker()
		for _, r := range log[:i] {
			c.Record(r)
		}
		return slices.ContainsFunc(c.AsleepAhead(r.Place.Unit), func(code decisions.Code) bool { return slices.Contains(codes, code) })
	})
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
