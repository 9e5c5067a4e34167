package breaker

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/resource"
)

func TestBreaker(t *testing.T) {
	const silent, refused = Silent, Refused
	type step struct {
		after   time.Duration
		do      string // "fail", "commit", "try", "give up", "slow"
		tx      resource.TxID
		f       Fault
		tripped bool // afterwards
	}
	cases := map[string][]step{
		"two failures are tolerated, a commit forgets them": {
			{0, "fail", "1", silent, false},
			{0, "fail", "2", silent, false},
			{0, "commit", "3", "", false},
			{0, "fail", "4", silent, false},
			{0, "fail", "5", silent, false},
			{0, "fail", "6", silent, true},
		},
		"it is open for a second, then one attempt probes": {
			{0, "fail", "1", refused, false},
			{0, "fail", "2", refused, false},
			{0, "fail", "3", refused, true},
			{999 * time.Millisecond, "", "", "", true},
			{time.Millisecond, "", "", "", false},
			{0, "try", "4", "", true}, // for all others
			{0, "commit", "4", "", false},
		},
		"each probe that fails doubles the time": {
			{0, "fail", "1", silent, false},
			{0, "fail", "2", silent, false},
			{0, "fail", "3", silent, true},
			{time.Second, "try", "4", "", true},
			{0, "fail", "4", silent, true},
			{1999 * time.Millisecond, "", "", "", true},
			{time.Millisecond, "try", "5", "", true},
			{0, "fail", "5", silent, true},
			{3999 * time.Millisecond, "", "", "", true},
			{time.Millisecond, "", "", "", false},
		},
		"failures of attempts that began before are no news": {
			{0, "fail", "1", silent, false},
			{0, "fail", "2", silent, false},
			{0, "fail", "3", silent, true},
			{0, "fail", "4", silent, true},
			{0, "fail", "5", silent, true},
			{time.Second, "", "", "", false},
		},
		"a probe without a verdict lets the next one try": {
			{0, "fail", "1", silent, false},
			{0, "fail", "2", silent, false},
			{0, "fail", "3", silent, true},
			{time.Second, "try", "4", "", true},
			{0, "give up", "4", "", false},
			{0, "try", "5", "", true},
			{0, "fail", "5", silent, true},
		},
		"one that is slow is the last choice for a while, and no suspect": {
			{0, "slow", "1", "", true},
			{slowBreak, "", "", "", false},
			{0, "slow", "2", "", true},
			{2*slowBreak - 1, "", "", "", true},
			{1, "try", "3", "", true},
			{0, "slow", "3", "", true},
			{4*slowBreak - 1, "", "", "", true},
			{1, "", "", "", false},
			{0, "commit", "4", "", false},
			{0, "slow", "5", "", true},
			{slowBreak, "", "", "", false},
		},
		"the longest time is a minute": {
			{0, "fail", "1", silent, false},
			{0, "fail", "2", silent, false},
			{0, "fail", "3", silent, true},
			{time.Hour, "try", "4", "", true}, {0, "fail", "4", silent, true},
			{time.Hour, "try", "5", "", true}, {0, "fail", "5", silent, true},
			{time.Hour, "try", "6", "", true}, {0, "fail", "6", silent, true},
			{time.Hour, "try", "7", "", true}, {0, "fail", "7", silent, true},
			{time.Hour, "try", "8", "", true}, {0, "fail", "8", silent, true},
			{time.Hour, "try", "9", "", true}, {0, "fail", "9", silent, true},
			{59 * time.Second, "", "", "", true},
			{time.Second, "", "", "", false},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			var b Breaker
			now := time.Unix(1000, 0)
			for i, s := range steps {
				now = now.Add(s.after)
				switch s.do {
				case "fail":
					b.Failed(now, s.tx, s.f)
				case "commit":
					b.RecordSuccess()
				case "try":
					b.BeginTry(now, s.tx)
				case "give up":
					b.AbandonTry(s.tx)
				case "slow":
					b.Slow(now, s.tx)
				}
				if got := b.TrippedAt(now); got != s.tripped {
					t.Fatalf("step %d, %s %s: tripped %t, want %t", i, s.do, s.tx, got, s.tripped)
				}
				if b.until.IsZero() && (b.trips > 0 || b.probe != "") {
					t.Fatalf("step %d: %+v breaks the invariant", i, b)
				}
			}
		})
	}
}

func TestABreakerSaysWhatFailed(t *testing.T) {
	var b Breaker
	now := time.Unix(1000, 0)
	b.Failed(now, "1", Silent)
	b.Failed(now, "2", Silent)
	b.Failed(now, "3", Refused)
	const want = "3 reserves in a row failed (2 not answered in time, 1 refused although there was room)"
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
