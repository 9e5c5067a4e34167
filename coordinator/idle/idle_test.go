package idle_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/idle"
)

func TestTheTimeForWhichDevicesAreIdle(t *testing.T) {
	type reading struct {
		seconds int64 // measured, of each device
		busy    []int64
	}
	rule := idle.Rule{Below: 5, For: time.Hour}
	for name, c := range map[string]struct {
		readings []reading
		want     time.Duration
		use      idle.Use
	}{
		"no device is measured": {[]reading{{0, nil}, {3600, nil}}, 0, idle.Unknown},
		"never used":            {[]reading{{600, []int64{0, 0}}, {1200, []int64{0, 0}}}, 20 * time.Minute, idle.Idle},
		"used a little, less than one step would need": {[]reading{{600, []int64{1, 1}}}, 10 * time.Minute, idle.Unknown},
		"used at some time before the clock began":     {[]reading{{600, []int64{60, 0}}, {1200, []int64{60, 0}}}, 10 * time.Minute, idle.Idle},
		"a step that is too short to judge":            {[]reading{{600, []int64{60, 0}}, {659, []int64{60, 0}}}, 0, idle.Unknown},
		"below in each step":                           {[]reading{{60, []int64{60, 0}}, {120, []int64{62, 0}}, {180, []int64{64, 2}}}, 2 * time.Minute, idle.Idle},
		"exactly the percentage is no idleness":        {[]reading{{60, []int64{0, 0}}, {120, []int64{6, 0}}}, 0, idle.Used},
		"one of two devices works":                     {[]reading{{60, []int64{0, 0}}, {120, []int64{60, 0}}}, 0, idle.Used},
		"a burst within a long step":                   {[]reading{{60, []int64{60, 60}}, {3660, []int64{90, 60}}}, time.Hour, idle.Idle},
		"idle again after work":                        {[]reading{{60, []int64{60, 0}}, {120, []int64{120, 0}}, {180, []int64{120, 0}}}, time.Minute, idle.Idle},
		"a member that starts anew":                    {[]reading{{600, []int64{0, 0}}, {10, []int64{9, 9}}}, 0, idle.Unknown},
		"a device more":                                {[]reading{{600, []int64{0}}, {660, []int64{30, 0}}}, 0, idle.Unknown},
		"more than any host can have":                  {[]reading{{0, []int64{0, 0}}, {math.MaxInt64 / 1000, []int64{math.MaxInt64 / 1000, 0}}}, 0, idle.Used},
	} {
		t.Run(name, func(t *testing.T) {
			var clock idle.Clock
			var use idle.Use
			for _, r := range c.readings {
				var counters []idle.Counter
				for i, busy := range r.busy {
					counters = append(counters, idle.Counter{UUID: fmt.Sprint("GPU-", i), Measured: 1000 * r.seconds, Busy: 1000 * busy})
				}
				use = clock.Take(counters, rule)
			}
			if clock.Idle() != c.want || use != c.use {
				t.Errorf("idle for %s, the last step %d, want %s and %d", clock.Idle(), use, c.want, c.use)
			}
		})
	}
}

// Whatever the devices do, whichever reports are lost and whenever the clock begins: in the time
// that a clock calls idle, the devices were used less than the rule says, and the clock has no
// time that was not measured.
func TestTheIdleTimeHasNoUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := idle.Rule{Below: rapid.Int64Range(1, 100).Draw(t, "below"), For: time.Hour}
		counters := make([]idle.Counter, rapid.IntRange(1, 3).Draw(t, "devices"))
		for i := range counters {
			counters[i] = idle.Counter{Member: i, UUID: "GPU-a"}
		}
		n := int64(len(counters))
		begins := rapid.IntRange(0, 30).Draw(t, "the clock begins")
		var clock idle.Clock
		measured, end, begun := int64(0), int64(0), false
		busyUntil := map[int64]int64{0: 0} // of all devices, by the measured time of each
		for at := range rapid.IntRange(1, 60).Draw(t, "spans") {
			span := rapid.Int64Range(1, 180).Draw(t, "span") * 1000
			measured += span
			busy := busyUntil[measured-span]
			for i := range counters {
				part := span * rapid.SampledFrom([]int64{0, 0, 0, 0, 1, rule.Below, 100}).Draw(t, "percent") / 100
				counters[i].Measured += span
				counters[i].Busy += part
				busy += part
			}
			busyUntil[measured] = busy
			if at < begins || rapid.Bool().Draw(t, "the report is lost") {
				continue
			}
			if use := clock.Take(slices.Clone(counters), rule); use != idle.Unknown || !begun {
				end, begun = measured, true // of the step
			}
			got := clock.Idle().Milliseconds()
			since, found := busyUntil[end-got]
			if !found {
				t.Fatalf("at %d ms the clock has %d ms, which begin between two spans, up to %d", measured, got, end)
			}
			if used := busyUntil[end] - since; got > 0 && used*100 >= rule.Below*max(got, idle.Step.Milliseconds())*n {
				t.Fatalf("in the %d ms up to %d the %d devices were busy for %d ms in all: that is not below %d%%", got, end, n, used, rule.Below)
			}
		}
	})
}

func BenchmarkTake(b *testing.B) {
	counters := make([]idle.Counter, 512)
	for i := range counters {
		counters[i] = idle.Counter{Member: i / 8, UUID: fmt.Sprint("GPU-", i%8)}
	}
	var clock idle.Clock
	b.ReportAllocs()
	for b.Loop() {
		for i := range counters {
			counters[i].Measured += 60_000
		}
		clock.Take(counters, idle.Rule{Below: 5, For: time.Hour})
	}
}

// A job has computed on one of two GPUs, and then waits for its data.
func Example() {
	var clock idle.Clock
	rule := idle.Rule{Below: 5, For: 10 * time.Minute}
	for minute := range int64(30) {
		busy := min(minute, 15) * 60_000
		clock.Take([]idle.Counter{{UUID: "GPU-a", Measured: minute * 60_000, Busy: busy}, {UUID: "GPU-b", Measured: minute * 60_000}}, rule)
	}
	fmt.Println("idle for", clock.Idle(), clock.Idle() >= rule.For)
	// Output: idle for 14m0s true
}
