package window_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/window"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// steps are instants that never go back.
func steps(t *rapid.T, greatest time.Duration) []time.Time {
	at, all := start, []time.Time{}
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		at = at.Add(time.Duration(rapid.Int64Range(0, greatest.Milliseconds()).Draw(t, "pause")) * time.Millisecond)
		all = append(all, at)
	}
	return all
}

// slot is the beginning of the slot of an instant.
func slot(at time.Time, width time.Duration) time.Time {
	return time.UnixMilli(at.UnixMilli() / width.Milliseconds() * width.Milliseconds())
}

// A count is the number of events whose slot is not older than the window.
func TestCountIsTheEventsOfTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, width := rapid.IntRange(1, 8).Draw(t, "slots"), time.Second
		c := window.NewCount(slots, width)
		var events []time.Time
		for _, at := range steps(t, 4*time.Second) {
			if rapid.Bool().Draw(t, "add") {
				c.Add(at, 1)
				events = append(events, at)
			}
			want := int64(0)
			for _, e := range events {
				if !slot(e, width).Before(slot(at, width).Add(-time.Duration(slots-1) * width)) {
					want++
				}
			}
			if got := c.Sum(at); got != want {
				t.Fatalf("at %s: %d events, want %d of %v", at, got, want, events)
			}
		}
	})
}

func TestACountForgetsNothingWhenTheClockGoesBack(t *testing.T) {
	c := window.NewCount(3, time.Second)
	c.Add(start, 2)
	c.Add(start.Add(-time.Minute), 3)
	if got := c.Sum(start.Add(-time.Minute)); got != 5 {
		t.Errorf("%d events, want 5", got)
	}
	if got := c.Sum(start.Add(3 * time.Second)); got != 0 {
		t.Errorf("%d events 3 s later, want none", got)
	}
}

// level is a trivially correct level: all values with their instants.
type level struct {
	began  time.Time
	at     []time.Time
	values []int64
}

// over walks along all values.
func (l *level) over(since, now time.Time) (peak, average int64) {
	var area float64
	value, from := int64(0), l.began
	account := func(until time.Time) {
		begin := from
		if begin.Before(since) {
			begin = since
		}
		if !until.Before(since) {
			peak = max(peak, value)
		}
		if until.After(begin) {
			area += float64(value) * until.Sub(begin).Seconds()
		}
		from = until
	}
	for i, at := range l.at {
		account(at)
		value = l.values[i]
	}
	account(now)
	peak = max(peak, value)
	if covered := now.Sub(since).Seconds(); covered > 0 {
		return peak, int64(math.Round(area / covered))
	}
	return peak, value
}

func TestALevelHasThePeakAndTheAverageOfItsPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, width := rapid.IntRange(1, 6).Draw(t, "slots"), time.Minute
		l, naive := window.NewLevel(start, slots, width), level{began: start}
		for _, at := range steps(t, 3*time.Minute) {
			if rapid.Bool().Draw(t, "set") { // else it is only asked for
				v := rapid.Int64Range(0, 1000).Draw(t, "value")
				l.Set(at, v)
				naive.at, naive.values = append(naive.at, at), append(naive.values, v)
			}
			period := time.Duration(rapid.IntRange(0, 10).Draw(t, "minutes")) * time.Minute
			past := l.Over(at, period)
			peak, average := naive.over(past.Since, at)
			if past.Peak != peak || past.Average < average-1 || past.Average > average+1 {
				t.Fatalf("at %s over %s since %s: peak %d average %d, want %d and %d of %v at %v", at, period, past.Since, past.Peak, past.Average, peak, average, naive.values, naive.at)
			}
			if past.Since.Before(start) || at.Sub(past.Since) > period+width && period < time.Duration(slots)*width || at.Sub(past.Since) > time.Duration(slots)*width {
				t.Fatalf("at %s over %s: since %s", at, period, past.Since)
			}
		}
	})
}

func TestALevelIsIdleWhenItsPastIs(t *testing.T) {
	l := window.NewLevel(start, 3, time.Minute)
	if !l.IsIdle(start) {
		t.Error("a new level is not idle")
	}
	l.Set(start.Add(time.Second), 7)
	l.Set(start.Add(2*time.Second), 0)
	if l.IsIdle(start.Add(2*time.Minute)) || !l.IsIdle(start.Add(4*time.Minute)) {
		t.Error("want the level idle 3 slots after it was 0, and not before")
	}
}

// A quantile is not below the true one, and at most 19 % and 1 ms above it.
func TestQuantilesOfAHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h window.Histogram
		var all []time.Duration
		sum := time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "count") {
			d := time.Duration(rapid.Int64Range(0, int64(20*24*time.Hour)).Draw(t, "duration")) >> rapid.IntRange(0, 40).Draw(t, "shift")
			h.Add(d)
			all = append(all, d)
			sum += d.Truncate(time.Microsecond)
		}
		slices.Sort(all)
		for _, q := range []uint64{1, 500, 990, 1000} {
			want := all[(uint64(len(all))*q+999)/1000-1]
			got := h.Quantile(q)
			if got < want || float64(got) > 1.19*float64(want)+float64(time.Millisecond) {
				t.Fatalf("quantile %d is %s, the true one %s", q, got, want)
			}
		}
		if mean := sum / time.Duration(len(all)); h.Mean() < mean-time.Microsecond || h.Mean() > mean {
			t.Fatalf("mean %s, want %s", h.Mean(), mean)
		}
	})
}

func TestAHistogramWithoutDurationsHasNone(t *testing.T) {
	var h window.Histogram
	if h.Count() != 0 || h.Mean() != 0 || h.Quantile(990) != 0 {
		t.Errorf("%d durations, mean %s, p99 %s", h.Count(), h.Mean(), h.Quantile(990))
	}
}

func TestPastEventsCountUntilTheirWindowEnds(t *testing.T) {
	began := time.Unix(10_000, 0)
	after := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	c := window.NewCount(61, time.Minute)
	c.Restore(after(100), []time.Time{after(99), after(30), after(90), after(100), {}})
	for minutes, want := range map[int]int64{100: 3, 149: 3, 152: 2, 162: 0} {
		if got := c.Sum(after(minutes)); got != want {
			t.Errorf("after %d minutes %d events, want %d", minutes, got, want)
		}
	}
}
