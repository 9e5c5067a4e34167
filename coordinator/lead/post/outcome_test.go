package post_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// pause is longer than the wait before a refused write is sent again.
const pause = 3 * time.Second

// TestADoubtIsSettledByAReading: after an unknown outcome a conflict may be with the
// write itself.
func TestADoubtIsSettledByAReading(t *testing.T) {
	for name, c := range map[string]struct {
		first txn.Outcome
		lands bool
		late  bool        // after the reading
		want  txn.Outcome // of Done
	}{
		"a conflict":                        {first: txn.Conflict, want: txn.Conflict},
		"unknown, and it has landed":        {first: txn.Unknown, lands: true, want: txn.Landed},
		"unknown, and it lands late":        {first: txn.Unknown, late: true, want: txn.Landed},
		"unknown, and another's has landed": {first: txn.Unknown, want: txn.Conflict},
	} {
		o := newOffice(t)
		var got []txn.Outcome
		o.do(func() { o.Settle(decision("mine", &got), "/k", is("mine")) })
		if !c.lands && !c.late {
			o.put("/k", "another's")
		}
		if c.first == txn.Unknown {
			o.loses(c.lands)
		}
		if c.late {
			o.answer(o.take()) // the reading: the write is sent again
			o.put("/k", "mine")
		}
		if o.answers(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTheChangeOfARecord: the Txn compares with the record before, and after a doubt the
// change is known by the value.
func TestTheChangeOfARecord(t *testing.T) {
	key, seat := record.SeatsKey("t1"), func(node string) record.Seats { return record.Seats{Nodes: map[string]string{"tree": node}} }
	text := func(node string) string { return string(record.MustEncode(seat(node))) }
	for name, c := range map[string]struct {
		stored string // while the first Txn has no answer; "": the Txn has landed
		want   txn.Outcome
	}{
		"the Txn has landed":                {"", txn.Landed},
		"the change by another Txn":         {text("b"), txn.Landed},
		"another change":                    {text("c"), txn.Conflict},
		"a value that no version can read":  {"{", txn.Conflict},
		"a record of another kind of value": {`{"v":1,"unknown":{"tree":"b"}}`, txn.Conflict},
	} {
		o := newOffice(t)
		o.put(key, text("a"))
		var got []txn.Outcome
		o.do(func() {
			o.Settle(post.Change(key, o.keys[key].ModRev, seat("b"),
				func(outcome txn.Outcome, _ resource.Revision, _ error) { got = append(got, outcome) },
				func(written record.Seats) bool { return written.Nodes["tree"] == "b" }))
		})
		if c.stored != "" {
			o.put(key, c.stored)
		}
		o.loses(c.stored == "")
		if o.answers(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if post.Removed(nil, true) || !post.Removed(nil, false) || post.Wrote(key, func(record.Seats) bool { return true })(nil, false) {
		t.Error("a key that is there counts as removed, or a missing key as written")
	}
}

// TestARefusalDecidesNothing: after a doubt the Txn without an answer may still
// land, and a fence is needed all the same.
func TestARefusalDecidesNothing(t *testing.T) {
	for name, doubted := range map[string]bool{"a write that was in doubt": true, "a fence": false} {
		o := newOffice(t)
		var got []txn.Outcome
		if doubted {
			o.do(func() { o.Settle(decision("mine", &got), "/k", is("mine")) })
			o.loses(false)
			o.answer(o.take()) // the reading: the write is sent again
		} else {
			o.do(func() { o.SettleFence(decision("mine", &got), "/k") })
		}
		o.do(func() { o.Wrote(o.take().Token, txn.Conflict, 0, record.ErrNoSpace) })
		if o.answers(); len(got) > 0 {
			t.Errorf("%s: %v though nothing is decided", name, got)
		}
		if doubted {
			o.put("/k", "mine")
		}
		o.pass(pause)
		if o.answers(); len(got) != 1 || got[0] != txn.Landed {
			t.Errorf("%s: %v in the end", name, got)
		}
	}
}

// TestADeposedLeaderDoesNotSendWithoutEnd: after the end of its office each write is
// answered at once, while reads still succeed.
func TestADeposedLeaderDoesNotSendWithoutEnd(t *testing.T) {
	o := newOffice(t)
	var got []txn.Outcome
	o.do(func() { o.Settle(decision("mine", &got), "/k", is("mine")) })
	o.do(func() { o.Wrote(o.take().Token, txn.Unknown, 0, post.ErrDeposed) })
	o.answer(o.take()) // the reading
	if len(o.asked) > 0 {
		t.Errorf("the leader asks again at once: %+v", o.asked)
	}
	if o.pass(pause); len(o.asked) != 1 || len(got) > 0 {
		t.Errorf("after a pause the leader asks %d times, want once; outcomes %v", len(o.asked), got)
	}
}

// TestEachDecisionHasItsTrueOutcomeOnce: a store loses writes, has them land late or refuses
// them, and another program writes the key before the decision lands (afterwards the key is the
// decision's). Done comes once, a decision lands at most once, and Done has Landed
// exactly where the store had the decision's value.
func TestEachDecisionHasItsTrueOutcomeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOffice(t)
		var late []post.Write
		outcomes := map[string][]txn.Outcome{}
		for i := range rapid.IntRange(1, 6).Draw(t, "decisions") {
			key, value := rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "key"), fmt.Sprint("value ", i)
			d := post.Decision{
				Compares: []record.Compare{record.ModRevIs(key, o.keys[key].ModRev)}, Ops: []record.Op{record.Put(key, []byte(value))},
				Done: func(outcome txn.Outcome, _ resource.Revision, _ error) {
					outcomes[value] = append(outcomes[value], outcome)
				},
			}
			creates := o.keys[key].ModRev == 0
			o.do(func() {
				if creates {
					o.SettleCreation(post.Creating{What: value, UID: "u", Key: key, Mine: func(v []byte) bool { return string(v) == value }}, d)
				} else {
					o.Settle(d, key, is(value))
				}
			})
			for range rapid.IntRange(0, 8).Draw(t, "steps") {
				o.step(t, &late, key, value, creates)
			}
			o.finish(t)
			if kv := o.keys[key]; creates && string(kv.Value) == value && rapid.Bool().Draw(t, "deleted again") {
				o.revision++
				delete(o.keys, key)
			}
			for _, w := range late { // at last
				o.commit(w)
			}
			late = nil
			if got := outcomes[value]; len(got) != 1 {
				t.Fatalf("%s: outcomes %v, want one", value, got)
			}
		}
		for value, got := range outcomes {
			times := 0
			for _, v := range o.stored {
				if v == value {
					times++
				}
			}
			if times > 1 || (got[0] == txn.Landed) != (times == 1) {
				t.Fatalf("%s is %v, and was stored %d times: %q", value, got, times, o.stored)
			}
		}
	})
}

// step is a fault, an answer or a write of another program, whose creation may be deleted again.
func (o *office) step(t *rapid.T, late *[]post.Write, key, value string, creates bool) {
	what := rapid.SampledFrom([]string{"answer", "lose", "land without an answer", "late", "lands late", "refuse", "another's", "pass"}).Draw(t, "what")
	writes := len(o.asked) > 0 && o.asked[0].Kind == post.WriteKeys
	switch {
	case what == "answer" && len(o.asked) > 0:
		o.answer(o.take())
	case what == "lose" && writes:
		o.loses(false)
	case what == "land without an answer" && writes:
		o.loses(true)
	case what == "late" && writes:
		*late = append(*late, o.loses(false))
	case what == "lands late" && len(*late) > 0:
		o.commit((*late)[0])
		*late = (*late)[1:]
	case what == "refuse" && writes:
		o.do(func() { o.Wrote(o.take().Token, txn.Conflict, 0, record.ErrNoSpace) })
	case what == "another's" && !slices.Contains(o.stored, value):
		if _, found := o.keys[key]; found && creates && rapid.Bool().Draw(t, "deletes") {
			o.revision++
			delete(o.keys, key)
		} else {
			o.put(key, "another's")
		}
	case what == "pass":
		o.pass(pause)
	}
}

// finish ends all faults.
func (o *office) finish(t *rapid.T) {
	for range 20 {
		o.answers()
		o.pass(pause)
	}
	if len(o.asked) > 0 || o.Alarms() > 0 {
		t.Fatalf("%d questions and %d alarms are left", len(o.asked), o.Alarms())
	}
}
