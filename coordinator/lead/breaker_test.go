package lead

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/resource"
)

func TestBreaker(t *testing.T) {
	const silent, refused = faultSilent, faultRefused
	type step struct {
		after   time.Duration
		do      string // "fail", "commit", "try", "give up", "slow"
		tx      resource.TxID
		f       fault
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
			var b breaker
			now := time.Unix(1000, 0)
			for i, s := range steps {
				now = now.Add(s.after)
				switch s.do {
				case "fail":
					b.failed(now, s.tx, s.f)
				case "commit":
					b.recordSuccess()
				case "try":
					b.beginTry(now, s.tx)
				case "give up":
					b.abandonTry(s.tx)
				case "slow":
					b.slow(now, s.tx)
				}
				if got := b.trippedAt(now); got != s.tripped {
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
	var b breaker
	now := time.Unix(1000, 0)
	b.failed(now, "1", faultSilent)
	b.failed(now, "2", faultSilent)
	b.failed(now, "3", faultRefused)
	const want = "3 reserves in a row failed (2 not answered in time, 1 refused although there was room)"
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBucket(t *testing.T) {
	var b pace.Bucket
	r := pace.Rate{Every: time.Second, Burst: 3}
	now := time.Unix(1000, 0)
	took := func(n int) int {
		sum := 0
		for range n {
			if b.Take(now, r) {
				sum++
			}
		}
		return sum
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {0, 0}, {time.Second, 1}, {500 * time.Millisecond, 0}, {500 * time.Millisecond, 1}, {time.Hour, 3}} {
		now = now.Add(c.after)
		if got := took(10); got != c.want {
			t.Errorf("%v later %d of 10, want %d", c.after, got, c.want)
		}
	}
}

func TestABucketOfTimeIsOwedBeyondItsBurst(t *testing.T) {
	var b pace.Bucket
	now := time.Unix(1000, 0)
	for i, c := range []struct{ after, cost, want time.Duration }{
		{0, 400 * time.Millisecond, 0},
		{0, 100 * time.Millisecond, 0},
		{0, 50 * time.Millisecond, 50 * time.Millisecond},
		{50 * time.Millisecond, 0, 0},
		{time.Hour, 600 * time.Millisecond, 100 * time.Millisecond},
	} {
		now = now.Add(c.after)
		if got := b.Spend(now, c.cost, 500*time.Millisecond); got != c.want {
			t.Errorf("step %d: wait %v, want %v", i, got, c.want)
		}
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 600), strings.Repeat("ü", 300), strings.Repeat("世", 200)} {
		got := Clip(text)
		if len(got) > longestForeign || strings.ToValidUTF8(got, "?") != got || len(text) <= longestForeign && got != text {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got)
		}
	}
}
