package health_test

import (
	"testing"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/health"
)

func TestTheDefaultsAreValid(t *testing.T) {
	for name, p := range map[string]health.Policy{"the default": health.DefaultPolicy(), "the tests'": policy()} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateNamesTheFieldAndItsValue(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		breach func(*health.Policy)
		want   string
	}{
		"no suspicion":             {func(p *health.Policy) { p.SuspectFor = 0 }, "health: SuspectFor: 0s is not above 0 and at most 8760h0m0s"},
		"a suspicion for ever":     {func(p *health.Policy) { p.SuspectFor = year + 1 }, "health: SuspectFor: 8760h0m0.000000001s is not above 0 and at most 8760h0m0s"},
		"no window":                {func(p *health.Policy) { p.StrikeWindow = -1 }, "health: StrikeWindow: -1ns is not above 0 and at most 8760h0m0s"},
		"no incident":              {func(p *health.Policy) { p.Incident = 0 }, "health: Incident: 0s is not above 0 and at most 8760h0m0s"},
		"no taint":                 {func(p *health.Policy) { p.TaintFor = 0 }, "health: TaintFor: 0s is not above 0 and at most 8760h0m0s"},
		"no probation":             {func(p *health.Policy) { p.ProbationFor = 0 }, "health: ProbationFor: 0s is not above 0 and at most 8760h0m0s"},
		"no probation for drivers": {func(p *health.Policy) { p.DriverProbation = 0 }, "health: DriverProbation: 0s is not above 0 and at most 8760h0m0s"},
		"no bound":                 {func(p *health.Policy) { p.MaxHold = 0 }, "health: MaxHold: 0s is not above 0 and at most 8760h0m0s"},
		"no memory":                {func(p *health.Policy) { p.Forget = 0 }, "health: Forget: 0s is not above 0 and at most 8760h0m0s"},
		"no patience":              {func(p *health.Policy) { p.HungGrace = 0 }, "health: HungGrace: 0s is not above 0 and at most 8760h0m0s"},
		"no corrected window":      {func(p *health.Policy) { p.CorrectedWindow = 0 }, "health: CorrectedWindow: 0s is not above 0 and at most 8760h0m0s"},
		"no strike":                {func(p *health.Policy) { p.Strikes = 0 }, "health: Strikes: 0 is outside 1..8"},
		"strikes without end":      {func(p *health.Policy) { p.Strikes = 9 }, "health: Strikes: 9 is outside 1..8"},
		"no corrected error":       {func(p *health.Policy) { p.CorrectedLimit = 0 }, "health: CorrectedLimit: 0 is not above 0"},
		"a bound below a hold":     {func(p *health.Policy) { p.MaxHold = time.Minute }, "health: MaxHold: 1m0s is below TaintFor 10m0s, ProbationFor 5m0s or DriverProbation 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy()
			c.breach(&p)
			if err := p.Validate(); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
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
