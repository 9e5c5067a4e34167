package pace_test

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/pace"
)

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
