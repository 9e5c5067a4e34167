package desk_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
)

var start = time.UnixMilli(946_684_800_000)

// counter is a desk with its post, and the answers that left.
type counter struct {
	*desk.Desk
	post    *post.Post
	now     time.Time
	answers []string     // token: result or refusal, in order
	asked   []post.Token // questions whether all is settled
}

func newCounter() *counter {
	p := post.New(7, 16, start, [32]byte{})
	return &counter{Desk: desk.New(p), post: p, now: start}
}

// input runs f as the handling of an input, with the recheck behind f.
func (c *counter) input(t interface{ Fatal(...any) }, f func()) {
	c.post.Begin(c.now, nil)
	f()
	c.Recheck()
	for _, e := range c.post.Take() {
		switch e.Kind {
		case post.AnswerClient:
			text := fmt.Sprintf("%d: %v", e.Token, e.Result)
			if e.Status != nil {
				text = fmt.Sprintf("%d: refused, final %t", e.Token, e.Final)
			}
			c.answers = append(c.answers, text)
		case post.AskSettled:
			c.asked = append(c.asked, e.Token)
		}
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if err := c.post.Check(); err != nil {
		t.Fatal(err)
	}
}

// ask opens the call of a program.
func (c *counter) ask(t post.Token) *desk.Call {
	return c.Open(t, post.NewAuthor(nil, ceiling.Caller{}))
}

func TestACallHasOneAnswer(t *testing.T) {
	refusal := api.Errorf(409, "no")
	for what, c := range map[string]struct {
		do   func(*counter)
		want []string
	}{
		"the second answer is dropped":          {func(d *counter) { k := d.ask(1); k.Answer("a", nil); k.Answer("b", nil) }, []string{"1: a"}},
		"a refusal of a request not begun":      {func(d *counter) { d.ask(1).Answer(nil, refusal) }, []string{"1: refused, final false"}},
		"a refusal after the beginning":         {func(d *counter) { k := d.ask(1); k.Begin(); k.Answer(nil, refusal) }, []string{"1: refused, final true"}},
		"a beginning after the answer":          {func(d *counter) { k := d.ask(1); k.Answer("a", nil); k.Begin(); k.Answer("b", nil) }, []string{"1: a"}},
		"a client that is gone":                 {func(d *counter) { k := d.ask(1); d.Gone(1); k.Answer("a", nil) }, nil},
		"a client that is gone before, unknown": {func(d *counter) { d.Gone(1); d.ask(1).Answer("a", nil) }, []string{"1: a"}},
		"a ready wait":                          {func(d *counter) { k := d.ask(1); k.Wait("u", func() bool { k.Answer("a", nil); return true }) }, []string{"1: a"}},
		"a wait without a change":               {func(d *counter) { k := d.ask(1); k.WaitForChange("u", func() bool { k.Answer("a", nil); return true }) }, nil},
		"a wait with a change": {func(d *counter) {
			k := d.ask(1)
			k.WaitForChange("u", func() bool { k.Answer("a", nil); return true })
			d.Changed("u")
		}, []string{"1: a"}},
		"a change of another subject": {func(d *counter) {
			k := d.ask(1)
			k.WaitForChange("u", func() bool { k.Answer("a", nil); return true })
			d.Changed("v")
		}, nil},
		"a change before the wait": {func(d *counter) {
			k := d.ask(1)
			d.Changed("u")
			k.WaitForChange("u", func() bool { k.Answer("a", nil); return true })
		}, nil},
		"a wait that was replaced": {func(d *counter) {
			k := d.ask(1)
			k.WaitForChange("u", func() bool { k.Answer("u", nil); return true })
			k.WaitForChange("v", func() bool { k.Answer("v", nil); return true })
			d.Changed("u")
		}, nil},
		"a call that is over": {func(d *counter) {
			k := d.ask(1)
			if d.Gone(1); k.IsOver() {
				d.ask(2).Answer("b", nil)
			}
		}, []string{"2: b"}},
		"a call that is open": {func(d *counter) {
			k := d.ask(1)
			if k.Begin(); !k.IsOver() {
				k.Answer("a", nil)
			}
		}, []string{"1: a"}},
		"calls of a subject go on in their order": {func(d *counter) {
			for i := range post.Token(3) {
				k := d.ask(i)
				k.WaitForChange("u", func() bool { k.Answer("a", nil); return true })
			}
			d.Changed("u")
		}, []string{"0: a", "1: a", "2: a"}},
		"the answer to a call changes a subject": {func(d *counter) {
			k, other := d.ask(1), d.ask(2)
			other.WaitForChange("v", func() bool { other.Answer("b", nil); return true })
			k.WaitForChange("u", func() bool { k.Answer("a", nil); d.Changed("v"); return true })
			d.Changed("u")
		}, []string{"1: a", "2: b"}},
		"a call ends another that waits, too": {func(d *counter) {
			k, other := d.ask(1), d.ask(2)
			k.WaitForChange("u", func() bool { d.Gone(2); k.Answer("a", nil); return true })
			other.WaitForChange("u", func() bool { t.Error("a call that is over is asked"); return true })
			d.Changed("u")
		}, []string{"1: a"}},
	} {
		t.Run(what, func(t *testing.T) {
			d := newCounter()
			d.input(t, func() { c.do(d) })
			if diff := cmp.Diff(c.want, d.answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTimeOfTheAnswerAtTheLatest(t *testing.T) {
	d := newCounter()
	d.input(t, func() {
		for i := range post.Token(3) {
			c := d.ask(i)
			c.AnswerBy(time.Minute, func() { c.Answer("late", nil) })
			c.WaitForChange("u", func() bool { return false })
		}
		d.Gone(1)
	})
	if got := d.post.Alarms(); got != 2 {
		t.Errorf("%d alarms for two open calls", got)
	}
	for _, wait := range []time.Duration{time.Minute - 1, 1, time.Hour} {
		d.now = d.now.Add(wait)
		d.input(t, d.post.Ring)
		want := []string(nil)
		if wait != time.Minute-1 {
			want = []string{"0: late", "2: late"}
		}
		if diff := cmp.Diff(want, d.answers); diff != "" {
			t.Errorf("answers at %v (-want +got):\n%s", d.now.Sub(start), diff)
		}
	}
}

func TestACallGoesOnWhenTheWritesAreHeard(t *testing.T) {
	d := newCounter()
	var heard []post.Token
	d.input(t, func() {
		for i := range post.Token(2) {
			d.ask(i).Settle(func() { heard = append(heard, i) })
		}
		d.Gone(1)
	})
	if len(d.asked) != 2 || heard != nil {
		t.Fatalf("%d questions, and %d calls have gone on, want 2 and none", len(d.asked), heard)
	}
	for range 2 { // the second answer to a question has no effect
		for _, token := range append(d.asked, 99) {
			d.input(t, func() { d.Settled(token) })
		}
	}
	if diff := cmp.Diff([]post.Token{0}, heard); diff != "" {
		t.Errorf("calls that have gone on (-want +got):\n%s", diff)
	}
}

// TestTheAuthorOfAWrite: a part of a call belongs to the author of the call, whoever asked
// for the input; behind the part the author before acts again.
func TestTheAuthorOfAWrite(t *testing.T) {
	d := newCounter()
	acting := func() string {
		if d.post.Acting() == nil {
			return ""
		}
		return d.post.Acting().Person()
	}
	var got []string
	note := func() { got = append(got, acting()) }
	var ann, bob *desk.Call
	d.input(t, func() {
		ann = d.Open(1, post.NewAuthor(&record.Audit{Actor: record.Actor{Person: "ann"}}, ceiling.Caller{}))
		bob = d.Open(2, post.NewAuthor(&record.Audit{Actor: record.Actor{Person: "bob"}}, ceiling.Caller{}))
		restore := ann.Act()
		note()
		restoreAnn := bob.Act()
		note()
		restoreAnn()
		note()
		restore()
		ann.WaitForChange("u", func() bool { note(); return true })
		d.Changed("u")
		bob.Settle(note)
	})
	d.input(t, func() { d.Settled(d.asked[0]) })
	if diff := cmp.Diff([]string{"ann", "bob", "ann", "ann", "bob"}, got); diff != "" || bob.Person() != "bob" {
		t.Errorf("authors (-want +got):\n%s", diff)
	}
}

// TestCallsAgainstANaiveDesk: a naive desk asks all waiting calls after each input, and so
// answers each call at the first input with a change that the call waits for.
func TestCallsAgainstANaiveDesk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type wish struct {
			subject desk.Subject
			version int // the answer comes at this version of the subject, or later
		}
		d := newCounter()
		versions := map[desk.Subject]int{}
		open := map[post.Token]wish{}
		var want []string
		for i := range post.Token(rapid.IntRange(1, 40).Draw(t, "inputs")) {
			s := desk.Subject(rapid.SampledFrom([]string{"u", "v", "w"}).Draw(t, "subject"))
			d.answers, want = nil, nil
			d.input(t, func() {
				switch rapid.IntRange(0, 3).Draw(t, "input") {
				case 0:
					w := wish{s, versions[s] + rapid.IntRange(0, 2).Draw(t, "versions ahead")}
					open[i] = w
					c := d.ask(i)
					c.Wait(w.subject, func() bool {
						if versions[w.subject] < w.version {
							return false
						}
						c.Answer(w.version, nil)
						return true
					})
				case 1:
					for _, token := range slices.Sorted(maps.Keys(open)) {
						d.Gone(token)
						delete(open, token)
						break
					}
				default:
					for range rapid.IntRange(1, 2).Draw(t, "changes") {
						versions[s]++
						d.Changed(s)
					}
				}
			})
			for token, w := range open {
				if versions[w.subject] >= w.version {
					want = append(want, fmt.Sprintf("%d: %d", token, w.version))
					delete(open, token)
				}
			}
			slices.Sort(want)
			slices.Sort(d.answers)
			if diff := cmp.Diff(want, d.answers); diff != "" {
				t.Fatalf("answers to input %d (-want +got):\n%s", i, diff)
			}
		}
	})
}
