package philly_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/test/philly"
)

// hosts of 8 GPUs, on average 73 % of which the trace occupies.
const hosts = 64

// trace reads the trace. A test skips where the trace is absent, a benchmark fails.
func trace(tb testing.TB) []philly.Job {
	tb.Helper()
	jobs, err := philly.Read(filepath.Join("..", "..", "..", "shared", "data", "philly", "philly_jobs.csv"))
	if err != nil {
		if _, isBenchmark := tb.(*testing.B); isBenchmark {
			tb.Fatalf("put philly_jobs.csv (submit_s, duration_s, num_gpus, tenant; of github.com/msr-fiddle/philly-traces) into ../shared/data/philly: %v", err)
		}
		tb.Skipf("no reference material: ../shared/data/philly is absent (%v)", err)
	}
	return jobs
}

// TestEveryJobOfTheTraceEnds: the trace's first jobs in a tenth of the hosts, so
// that some wait. Each ends, however long others wait, and nobody waits beside room.
func TestEveryJobOfTheTraceEnds(t *testing.T) {
	jobs := trace(t)[:1500]
	for i := range jobs {
		jobs[i].GPUs = min(jobs[i].GPUs, 32) // of 48
	}
	result, err := philly.Replay(jobs, hosts/10, judge(100))
	if err != nil {
		t.Fatal(err)
	}
	if t.Log(result); result.Begun != len(jobs) || result.Ended != len(jobs) || result.LongestQueue < 100 {
		t.Errorf("of %d jobs %d have begun and %d have ended, and at most %d have waited", len(jobs), result.Begun, result.Ended, result.LongestQueue)
	}
}

// judge checks the leader once in so many arrivals and ends.
func judge(every int) func(int, *alone.Cluster) error {
	return func(n int, c *alone.Cluster) error {
		if log := c.Errors(); len(log) > 0 {
			return errors.New(log[0])
		}
		if n%every != 0 {
			return nil
		}
		if path := c.Leader().Overlooked(); path != "" {
			return fmt.Errorf("%s waits though there is room", path)
		}
		return c.Leader().Check()
	}
}

// TestDelays: of two jobs that wait for all hosts, both fit when these are free.
func TestDelays(t *testing.T) {
	jobs := []philly.Job{
		{Arrival: 0, Duration: time.Hour, GPUs: 16, Tenant: "a"},
		{Arrival: time.Minute, Duration: time.Minute, GPUs: 12, Tenant: "b"},
		{Arrival: 2 * time.Minute, Duration: time.Second, GPUs: 2, Tenant: "b"},
	}
	result, err := philly.Replay(jobs, 2, judge(1))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(result.Delays, result.Makespan, result.LongestQueue), "[0s 58m0s 59m0s] 1h1m0s 2"; got != want {
		t.Errorf("delays, makespan and longest queue are %s, want %s", got, want)
	}
}

// TestDrawnJobsHaveTheShapeOfTheTrace: sizes and durations of many drawn jobs are those
// of the paper's trace, and a seed draws the same jobs again.
func TestDrawnJobsHaveTheShapeOfTheTrace(t *testing.T) {
	jobs := philly.Draw(1, 20_000, 1)
	if d := cmp.Diff(jobs, philly.Draw(1, 20_000, 1)); d != "" {
		t.Errorf("the same seed draws others:\n%s", d)
	}
	single, seconds := 0, []float64{}
	for i, j := range jobs {
		if j.GPUs == 1 {
			single++
		}
		if i > 0 && j.Arrival < jobs[i-1].Arrival {
			t.Fatalf("job %d arrives before job %d", i, i-1)
		}
		seconds = append(seconds, j.Duration.Seconds())
	}
	slices.Sort(seconds)
	median, perJob := seconds[len(seconds)/2], jobs[len(jobs)-1].Arrival.Seconds()/float64(len(jobs))
	if share := float64(single) / float64(len(jobs)); share < 0.92 || share > 0.94 || median < 1000 || median > 1300 || perJob < 80 || perJob > 130 {
		t.Errorf("%.3f of the jobs want one GPU, the median runs for %.0f s and one comes every %.0f s; want 0.93, 1,144 s and 100 s", share, median, perJob)
	}
}

// BenchmarkTrace plays the trace: its first tenth, and all of it.
func BenchmarkTrace(b *testing.B) {
	all := trace(b)
	for name, jobs := range map[string][]philly.Job{"tenth": all[:len(all)/10], "whole": all} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				result, err := philly.Replay(jobs, hosts, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.Log(result)
				b.ReportMetric(result.CPU.Seconds(), "cpu-s/op")
				b.ReportMetric(float64(result.Trials)/float64(result.Ended), "trials/end")
				b.ReportMetric(float64(result.Judgements)/float64(result.Ended), "judgements/end")
				if result.Ended != len(jobs) {
					b.Errorf("of %d jobs %d have ended", len(jobs), result.Ended)
				}
			}
		})
	}
}
