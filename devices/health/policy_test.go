package health_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/health"
)

// TestTheDefaultsAreValid holds the ranges behind the machine: each time is above 0 and at
// most a year, and no hold exceeds MaxHold.
func TestTheDefaultsAreValid(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, p := range map[string]health.Policy{"the default": health.DefaultPolicy(), "the tests'": policy()} {
		for field, v := range reflect.ValueOf(p).Fields() {
			if d, is := v.Interface().(time.Duration); is && (d <= 0 || d > year) {
				t.Errorf("%s: %s is %v, want above 0 and at most %v", name, field.Name, d, year)
			}
		}
		if p.Strikes < 1 || p.Strikes > health.MaxStrikes || p.CorrectedLimit < 1 {
			t.Errorf("%s: %d strikes, want 1 to %d; %d corrected errors, want 1 at least", name, p.Strikes, health.MaxStrikes, p.CorrectedLimit)
		}
		if longest := max(p.TaintFor, p.ProbationFor, p.DriverProbation); p.MaxHold < longest {
			t.Errorf("%s: MaxHold is %v, below a hold of %v", name, p.MaxHold, longest)
		}
	}
}

func TestTheMostStrikesFitTheirRoom(t *testing.T) {
	p := policy()
	p.Strikes = health.MaxStrikes
	p.StrikeWindow = 8760 * time.Hour
	s, now := health.Fresh(noon), noon
	for i := range health.MaxStrikes {
		if want := devices.OK; i == 0 && s.Health != want || i > 0 && s.Health != devices.Suspect && s.Health != want {
			t.Fatalf("after %d strikes %s", i, s.Health)
		}
		s = p.Observe(s, now, xid(39))
		now = now.Add(time.Hour)
	}
	if s.Health != devices.Tainted {
		t.Errorf("after %d strikes %s", health.MaxStrikes, s.Health)
	}
}

func BenchmarkObserve(b *testing.B) {
	p := health.DefaultPolicy()
	for name, e := range map[string]devices.Event{
		"application": xid(13), "suspicious": xid(39), "fatal": xid(79), "returned": event(devices.EventReturned),
	} {
		b.Run(name, func(b *testing.B) {
			s := p.Observe(health.Fresh(noon), noon, event(devices.EventLost))
			b.ReportAllocs()
			for b.Loop() {
				p.Observe(s, noon, e)
			}
		})
	}
}

func BenchmarkTick(b *testing.B) {
	p := health.DefaultPolicy()
	s := p.Observe(health.Fresh(noon), noon, xid(39))
	b.ReportAllocs()
	for b.Loop() {
		p.Tick(s, noon)
	}
}
