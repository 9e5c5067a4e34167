package batch_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/lead/batch"
)

// TestAReaderWaitsForWhatWasUnderWay compares with a naive memory: the open
// numbers, and the doubt since the last moment at which none was open.
func TestAReaderWaitsForWhatWasUnderWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p batch.Pending
		var open []uint64
		began, doubt := uint64(0), false
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0, 1, 2:
				began++
				if id := p.Begin(); id != began || p.Began() != began {
					t.Fatalf("number %d begins, the latest is %d, want %d", id, p.Began(), began)
				}
				open = append(open, began)
			case 3, 4, 5, 6:
				if len(open) > 0 {
					p.End(take(t, &open))
					doubt = doubt && len(open) > 0
				}
			case 7:
				if len(open) > 0 {
					p.Doubt()
					doubt = true
				}
			}
			last := rapid.Uint64Range(0, began).Draw(t, "last")
			want := batch.Passed
			for _, id := range open {
				if id <= last {
					want = batch.Waits
				}
			}
			if doubt {
				want = batch.InDoubt
			}
			if got := p.UpTo(last); got != want {
				t.Fatalf("up to %d it is %d, want %d; open are %v of %d, in doubt %t", last, got, want, open, began, doubt)
			}
		}
	})
}
