package sampler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/sampler"
	"github.com/musterd/muster/resource"
)

// table is a table of samples that can be away.
type table struct {
	mu   sync.Mutex
	away error
	rows map[string]history.Heartbeat
}

func (d *table) write(ctx context.Context, samples []history.Heartbeat) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away != nil {
		return d.away
	}
	if len(samples) > 2000 {
		return fmt.Errorf("%d samples at once", len(samples))
	}
	for _, h := range samples {
		d.rows[fmt.Sprint(h.Node, " ", h.At.UnixMilli())] = h
	}
	return ctx.Err()
}

func (d *table) setAway(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = err
}

func (d *table) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rows)
}

// running is a sampler in a bubble; stop ends it.
func running(t *testing.T) (s *sampler.Sampler, d *table, lost func() float64, stop func()) {
	t.Helper()
	d = &table{rows: map[string]history.Heartbeat{}}
	r := prometheus.NewRegistry()
	s = sampler.New(d.write, slog.New(slog.DiscardHandler), r)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	lost = func() float64 {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "muster_history_heartbeats_dropped_total" {
				return f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		t.Fatal("no counter")
		return 0
	}
	return s, d, lost, func() { cancel(); wg.Wait() }
}

func beat(node string) history.Heartbeat {
	return history.Heartbeat{Node: resource.NodeID(node), At: time.Now()}
}

// TestOneSampleAMinute: of heartbeats each 10 s, each node has one sample a minute.
func TestOneSampleAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, lost, stop := running(t)
		const nodes = 3000
		for range 60 { // 10 minutes
			for n := range nodes {
				s.Hear(beat(fmt.Sprint("n", n)))
			}
			time.Sleep(10 * time.Second)
		}
		stop()
		if got := d.count(); got != 10*nodes || lost() != 0 {
			t.Errorf("%d samples, %v lost; want %d and 0", got, lost(), 10*nodes)
		}
	})
}

// TestSamplesWaitForTheDatabase: what is within the bound comes later, what is beyond is
// counted, and the newest are kept.
func TestSamplesWaitForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, lost, stop := running(t)
		defer stop()
		d.setAway(errors.New("away"))
		const nodes = 10_000
		for range 8 { // minutes, of which 6 fit
			for n := range nodes {
				s.Hear(beat(fmt.Sprint("n", n)))
			}
			time.Sleep(time.Minute)
		}
		if got := lost(); got != 2*nodes {
			t.Errorf("%v lost, want %d", got, 2*nodes)
		}
		d.setAway(nil)
		time.Sleep(2 * time.Minute)
		if got := d.count(); got != 6*nodes {
			t.Errorf("%d samples, want %d", got, 6*nodes)
		}
		for _, h := range d.rows {
			if age := time.Since(h.At); age > 9*time.Minute {
				t.Fatalf("a sample of %s ago was kept", age)
			}
		}
	})
}

// TestTheEndWritesWhatWaits: a stop loses nothing while the database answers, and counts
// the loss where it does not.
func TestTheEndWritesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, lost, stop := running(t)
		s.Hear(beat("n1"))
		stop()
		if d.count() != 1 || lost() != 0 {
			t.Errorf("%d samples, %v lost", d.count(), lost())
		}
		s, d, lost, stop = running(t)
		d.setAway(errors.New("away"))
		s.Hear(beat("n1"))
		stop()
		if d.count() != 0 || lost() != 1 {
			t.Errorf("%d samples, %v lost", d.count(), lost())
		}
	})
}
