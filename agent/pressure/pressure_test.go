package pressure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/resource"
)

var policy = pressure.Policy{Stall: 1000, Available: 500, Clear: time.Minute}

// stall is a reading of a kernel that measures stalls, available one of a kernel
// that does not: percent of 100 GiB.
func stall(p pressure.Percent) pressure.Reading {
	return pressure.Reading{HasStall: true, Stall: p, Available: 1 << 30, Total: 16 << 30}
}

func available(percent int64) pressure.Reading {
	return pressure.Reading{Available: resource.Bytes(percent) << 30, Total: 100 << 30}
}

func TestAShortageBeginsAtOnceAndEndsAfterAWhile(t *testing.T) {
	type step struct {
		after   time.Duration // since the step before
		reading pressure.Reading
	}
	tests := map[string]struct {
		steps []step
		want  string // S for each step after which the host is short of memory
	}{
		"stalls below the limit are none":                     {[]step{{0, stall(0)}, {0, stall(999)}}, ".."},
		"stalls at the limit begin it, however much is there": {[]step{{0, stall(1000)}}, "S"},
		"it lasts between half the limit and the limit":       {[]step{{0, stall(1000)}, {time.Hour, stall(500)}, {time.Hour, stall(999)}}, "SSS"},
		"it ends after a minute below half":                   {[]step{{0, stall(1000)}, {0, stall(499)}, {59 * time.Second, stall(0)}, {time.Second, stall(0)}}, "SSS."},
		"one bad reading starts the minute anew":              {[]step{{0, stall(1000)}, {0, stall(0)}, {50 * time.Second, stall(600)}, {time.Second, stall(0)}, {59 * time.Second, stall(0)}, {time.Second, stall(0)}}, "SSSSS."},
		"little available memory begins it without stalls":    {[]step{{0, available(6)}, {0, available(5)}}, ".S"},
		"it ends above twice the limit":                       {[]step{{0, available(0)}, {0, available(10)}, {time.Hour, available(11)}, {time.Minute, available(11)}}, "SSS."},
		"a kernel that begins to measure decides by stalls":   {[]step{{0, available(0)}, {0, stall(0)}, {time.Minute, stall(0)}}, "SS."},
		"a host without memory is none":                       {[]step{{0, pressure.Reading{}}}, "."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			var s pressure.State
			got := ""
			for _, step := range test.steps {
				now = now.Add(step.after)
				s = policy.Observe(s, now, step.reading)
				got += map[bool]string{true: "S", false: "."}[s.Short]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAZeroPolicyFindsNoShortage(t *testing.T) {
	for _, r := range []pressure.Reading{stall(10000), available(0)} {
		if s := (pressure.Policy{}).Observe(pressure.State{}, time.Unix(1, 0), r); s.Short {
			t.Errorf("%+v is a shortage", r)
		}
	}
}

func TestAShortageIsExplainedWithItsNumbers(t *testing.T) {
	for want, r := range map[string]pressure.Reading{
		"TasksStall: all tasks waited for memory during 12.50 % of the last 10 s (full avg10 of /proc/pressure/memory); from 10.00 % on the node takes no new work, " +
			"until it has stayed below 5.00 % for 1m0s; 1024 of 16384 MiB are available": stall(1250),
		"LittleAvailable: 3072 of 102400 MiB are available, 3.00 % (the kernel measures no stalls); at 5.00 % and less the node takes no new work, " +
			"until it has stayed above 10.00 % for 1m0s": available(3),
	} {
		s := policy.Observe(pressure.State{}, time.Unix(1, 0), r)
		if got := s.Reason() + ": " + policy.Explain(s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestAShortageEndsOnlyAfterGoodReadingsForTheWholeTime holds the hysteresis for
// any readings at any times.
func TestAShortageEndsOnlyAfterGoodReadingsForTheWholeTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, bad := time.Unix(0, 0), time.Time{} // bad: the last reading that was not good
		var s pressure.State
		for range rapid.IntRange(1, 50).Draw(t, "readings") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			r := stall(pressure.Percent(rapid.IntRange(0, 2000).Draw(t, "stall")))
			was := s.Short
			s = policy.Observe(s, now, r)
			if r.Stall >= 500 {
				bad = now
			}
			switch {
			case r.Stall >= policy.Stall && !s.Short:
				t.Fatal("no shortage at the limit")
			case was && !s.Short && now.Sub(bad) < policy.Clear:
				t.Fatalf("it ends %s after a reading that was not good", now.Sub(bad))
			case !was && s.Short && r.Stall < policy.Stall:
				t.Fatal("it begins below the limit")
			case !s.Short && !s.Good.IsZero():
				t.Fatal("the invariant of State is broken")
			}
		}
	})
}

func ExamplePolicy_Observe() {
	p := pressure.Policy{Stall: 1000, Available: 500, Clear: time.Minute}
	var s pressure.State
	now := time.Unix(0, 0)
	for _, percent := range []pressure.Percent{200, 1200, 300, 300} {
		s = p.Observe(s, now, pressure.Reading{HasStall: true, Stall: percent, Total: 1})
		fmt.Println(percent, strings.ToLower(s.Reason()))
		now = now.Add(time.Minute)
	}
	// Output:
	// 2.00 % memorysuffices
	// 12.00 % tasksstall
	// 3.00 % tasksstall
	// 3.00 % memorysuffices
}

func BenchmarkObserve(b *testing.B) {
	var s pressure.State
	now := time.Unix(0, 0)
	for b.Loop() {
		s = policy.Observe(s, now, stall(400))
	}
}
