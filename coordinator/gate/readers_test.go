package gate_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

var errCut = errors.New("the write was cut")

func TestStalledReadersAreCut(t *testing.T) {
	const mib = 1 << 20
	type stalled struct {
		of    service.Principal
		n     int
		bytes int64
	}
	for name, c := range map[string]struct {
		stalled []stalled
		age     time.Duration
		next    service.Principal
		bytes   int64
		cut     int
		want    string // bound of the first reader that was cut
	}{
		"sixteen of a user":                    {[]stalled{{of("a", "x"), 16, 1}}, time.Second, of("a", "x"), 1, 0, ""},
		"seventeen of a user":                  {[]stalled{{of("a", "x"), 17, 1}}, time.Second, of("a", "x"), 1, 1, "user"},
		"seventeen that have just begun":       {[]stalled{{of("a", "x"), 17, 1}}, time.Second - 1, of("a", "x"), 1, 0, ""},
		"2 MiB of a user":                      {[]stalled{{of("a", "x"), 4, mib / 2}}, time.Second, of("a", "x"), 1, 1, "user"},
		"2 MiB that have just begun":           {[]stalled{{of("a", "x"), 4, mib / 2}}, 0, of("a", "x"), 1, 0, ""},
		"readers of another tenant":            {[]stalled{{of("b", "x"), 100, 1}}, time.Second, of("a", "x"), 1, 0, ""},
		"sixty-five of a tenant's users":       {[]stalled{{of("a", "1"), 16, 1}, {of("a", "2"), 16, 1}, {of("a", "3"), 16, 1}, {of("a", "4"), 16, 1}, {of("a", "5"), 1, 1}}, time.Second, of("a", "6"), 1, 1, "tenant"},
		"8 MiB of a tenant's users":            {[]stalled{{of("a", "1"), 1, 2 * mib}, {of("a", "2"), 1, 2 * mib}, {of("a", "3"), 1, 2 * mib}, {of("a", "4"), 1, 2 * mib}}, time.Second, of("a", "5"), 1, 1, "tenant"},
		"an administrator has no bounds":       {[]stalled{{root, 100, mib}}, time.Second, root, mib, 0, ""},
		"as many as it takes are cut at once":  {[]stalled{{of("a", "x"), 4, mib / 2}}, time.Second, of("a", "x"), mib, 2, "user"},
		"a user of no tenant has the user's":   {[]stalled{{of("", "x"), 17, 1}}, time.Second, of("", "x"), 1, 1, "user"},
		"a user of the same name in no tenant": {[]stalled{{of("a", "x"), 16, 1}}, time.Second, of("", "x"), 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := gate.NewReaders(nil, slog.New(slog.DiscardHandler))
				cut := 0
				var all []*gate.Sending
				for _, s := range c.stalled {
					for range s.n {
						all = append(all, r.Send(s.of, "rest", "jobs", s.bytes, func() { cut++ }))
					}
				}
				time.Sleep(c.age) // of the bubble
				next := r.Send(c.next, "rest", "jobs", c.bytes, func() { t.Error("the newest reader is cut") })
				if cut != c.cut {
					t.Errorf("%d readers are cut, want %d", cut, c.cut)
				}
				for i, s := range all {
					status := s.End(errCut)
					switch {
					case (status != nil) != (i < c.cut):
						t.Errorf("reader %d ends with %v", i, status)
					case status != nil && (status.Code != 429 || status.Reason != api.SlowReader || !strings.Contains(status.Message, "(bound: "+c.want+")")):
						t.Errorf("reader %d ends with %+v", i, status)
					}
				}
				if status := next.End(nil); status != nil {
					t.Errorf("the newest reader ends with %v", status)
				}
			})
		})
	}
}

// A reader that took longer than it may ends with SlowReader, in the metric and in the
// log; a client that has gone before does not.
func TestAReaderThatTakesTooLongIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		r := gate.NewReaders(registry, slog.New(slog.NewTextHandler(&log, nil)))
		gone := r.Send(of("a", "x"), "grpc", "nodes", 5, func() {})
		if status := gone.End(errCut); status != nil {
			t.Errorf("a client that has gone: %v", status)
		}
		slow := r.Send(of("a", "x"), "grpc", "nodes", 5, func() {})
		time.Sleep(gate.ReaderTime) // of the bubble
		status := slow.End(errCut)
		if status == nil || status.Reason != api.SlowReader || !strings.Contains(status.Message, "user x of tenant a, had not taken 5 bytes in 10s (bound: time)") {
			t.Errorf("a slow reader: %v", status)
		}
		want := `msg=watch_cut reason=SlowReader bound=time door=grpc kind=nodes reader="user x of tenant a" bytes=5 took=10s`
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has %q, want %q", log.String(), want)
		}
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "muster_coordinator_slow_readers_total" || len(families[0].GetMetric()) != 6 {
			t.Fatalf("%v, %v", families, err)
		}
		for _, m := range families[0].GetMetric() {
			bound, door := m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue()
			if want := map[bool]float64{true: 1}[bound == "time" && door == "grpc"]; m.GetCounter().GetValue() != want {
				t.Errorf("%s %s is %v, want %v", door, bound, m.GetCounter().GetValue(), want)
			}
		}
		var none *gate.Readers
		if status := none.Send(of("a", "x"), "rest", "jobs", 1, nil).End(errCut); status != nil {
			t.Error(status)
		}
	})
}
