package health_test

import (
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/health"
)

// moment is an event and the time since the one before.
type moment struct {
	after time.Duration
	event devices.Event
}

// gaps are the times that matter to policy(), and their neighbours.
var gaps = []time.Duration{
	0, 1, time.Second, 20*time.Second - 1, 20 * time.Second, time.Minute - 1, time.Minute, 5 * time.Minute, 10 * time.Minute,
	20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 25 * time.Hour,
}

// numbers has each class of XID, with and without a reset, twice.
var numbers = []uint64{13, 31, 14, 154, 38, 92, 63, 999, 39, 94, 74, 167, 48, 79, 95}

func drawEvent(t *rapid.T) devices.Event {
	e := devices.Event{Kind: devices.EventKind(rapid.IntRange(0, int(devices.EventRepaired)).Draw(t, "kind"))}
	switch e.Kind {
	case devices.EventXID:
		e.XID = rapid.SampledFrom(numbers).Draw(t, "xid")
	case devices.EventECCCorrected:
		e.Count = rapid.Uint64Range(0, 400).Draw(t, "count")
	}
	return e
}

func drawHistory(t *rapid.T, name string) []moment {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) moment {
		return moment{rapid.SampledFrom(gaps).Draw(t, "after"), drawEvent(t)}
	}), 0, 40).Draw(t, name)
}

// lead leads a device through a history, with a tick at each moment's time.
func lead(p health.Policy, s health.State, now time.Time, history []moment) (health.State, time.Time) {
	for _, m := range history {
		now = now.Add(m.after)
		s = p.Observe(s, now, m.event)
	}
	return s, now
}

func is(e devices.Event, effect health.Effect) bool {
	return e.Kind == devices.EventXID && health.XID(e.XID).Effect == effect
}

// suspicious events count as strikes.
func suspicious(e devices.Event) bool {
	return e.Kind == devices.EventECCUncorrected || is(e, health.Suspicious)
}

// naive follows a device by remembering everything. It knows when a device must
// not take work, without knowing states.
type naive struct {
	lost, gone, reset, replace bool
	hungAt                     time.Time   // zero while the driver answers
	lastFatal, lastGone        time.Time   // zero: never
	strikes                    []time.Time // all that counted since the last probation
}

// observe returns whether the event must take the device out of service.
func (n *naive) observe(p health.Policy, now time.Time, e devices.Event) bool {
	switch e.Kind {
	case devices.EventLost:
		n.lost, n.lastFatal = true, now
		return true
	case devices.EventRowRemapFailed:
		n.replace, n.lastFatal = true, now
		return true
	case devices.EventDriverGone:
		n.gone, n.lastGone = true, now
		return true
	case devices.EventReturned:
		n.lost, n.reset, n.hungAt = false, false, time.Time{}
	case devices.EventDriverBack:
		n.gone, n.hungAt = false, time.Time{}
	case devices.EventRepaired:
		n.reset, n.replace = false, false
	case devices.EventAnswered:
		n.hungAt = time.Time{}
	case devices.EventHung:
		if n.hungAt.IsZero() {
			n.hungAt = now
		}
	}
	if is(e, health.Fatal) {
		n.reset, n.lastFatal = n.reset || health.XID(e.XID).Reset, now
		return true
	}
	if !suspicious(e) {
		return false
	}
	if k := len(n.strikes); k == 0 || now.Sub(n.strikes[k-1]) >= p.Incident {
		n.strikes = append(n.strikes, now)
	}
	recent := 0
	for _, at := range n.strikes {
		if last := n.strikes[len(n.strikes)-1]; last.Sub(at) < p.StrikeWindow {
			recent++
		}
	}
	return recent >= p.Strikes
}

// forbids reports whether the device must not take work at the time now.
func (n *naive) forbids(p health.Policy, now time.Time) bool {
	within := func(at time.Time, d time.Duration) bool { return !at.IsZero() && now.Sub(at) < d }
	return n.lost || n.gone || n.reset || n.replace ||
		!n.hungAt.IsZero() && now.Sub(n.hungAt) >= p.HungGrace ||
		within(n.lastFatal, p.ProbationFor) || within(n.lastGone, p.DriverProbation)
}

func TestNoHistoryBreaksAPromise(t *testing.T) {
	p := policy()
	rapid.Check(t, func(t *rapid.T) {
		s, now, model := health.Fresh(noon), noon, naive{}
		for i, m := range drawHistory(t, "history") {
			now = now.Add(m.after)
			ticked := p.Tick(s, now)
			if again := p.Tick(ticked, now); again != ticked {
				t.Fatalf("moment %d: a second tick makes %+v of %+v", i, again, ticked)
			}
			if ticked.Health == devices.Probation && s.Health != devices.Probation {
				model.strikes = nil
			}
			next := p.Observe(s, now, m.event)
			if late := p.Observe(ticked, now, m.event); late != next {
				t.Fatalf("moment %d: %s makes %+v without a tick before, %+v with", i, m.event, next, late)
			}
			if err := promised(p, next, now); err != nil {
				t.Fatalf("moment %d: %s: %v", i, m.event, err)
			}
			must := model.observe(p, now, m.event)
			if next.Health.Allocatable() && (must || model.forbids(p, now)) {
				t.Fatalf("moment %d: %s for %q after %s; remembered: %+v", i, next.Health, next.Reason, m.event, model)
			}
			if ticked.Health.Allocatable() && !must && !next.Health.Allocatable() {
				t.Fatalf("moment %d: %s for %q after %s, for nothing; remembered: %+v", i, next.Health, next.Reason, m.event, model)
			}
			if next.Health == devices.Probation && ticked.Health != devices.Probation {
				model.strikes = nil
			}
			s = next
		}
	})
}

// promised checks the rules of every state at the time of its making.
func promised(p health.Policy, s health.State, now time.Time) error {
	if at, comes := p.Next(s); comes && !at.After(now) {
		return errPast{at, now}
	}
	return health.Check(s)
}

type errPast struct{ at, now time.Time }

func (e errPast) Error() string { return "next is at " + e.at.String() + ", it is " + e.now.String() }

func TestADeviceThatIsLeftInPeaceComesBack(t *testing.T) {
	p := policy()
	bound := p.HungGrace + p.MaxHold + p.MaxHold + p.SuspectFor
	rapid.Check(t, func(t *rapid.T) {
		s, now := lead(p, health.Fresh(noon), noon, drawHistory(t, "history"))
		for _, kind := range []devices.EventKind{devices.EventDriverBack, devices.EventReturned, devices.EventAnswered, devices.EventRepaired} {
			s = p.Observe(s, now, event(kind))
		}
		began := now
		for steps := 0; s.Health != devices.OK; steps++ {
			at, comes := p.Next(s)
			if !comes || steps > 3 {
				t.Fatalf("after %d steps %s for %q, %t", steps, s.Health, s.Reason, comes)
			}
			if early := p.Tick(s, at.Add(-1)); early != s {
				t.Fatalf("a tick before its time makes %+v of %+v", early, s)
			}
			now = at
			before := s
			if s = p.Tick(s, now); s == before {
				t.Fatalf("a tick at its time leaves %+v", s)
			}
			if err := promised(p, s, now); err != nil {
				t.Fatal(err)
			}
		}
		if waited := now.Sub(began); waited > bound {
			t.Fatalf("ok after %s, want at most %s", waited, bound)
		}
	})
}

func TestFaultsOfOneMomentCommute(t *testing.T) {
	p := policy()
	faults := []devices.Event{event(devices.EventECCUncorrected), event(devices.EventPageRetirementPending), event(devices.EventRowRemapFailed), event(devices.EventLost)}
	for _, n := range numbers {
		faults = append(faults, xid(n))
	}
	rapid.Check(t, func(t *rapid.T) {
		s, now := lead(p, health.Fresh(noon), noon, drawHistory(t, "history"))
		now = now.Add(rapid.SampledFrom(gaps).Draw(t, "after"))
		a, b := rapid.SampledFrom(faults).Draw(t, "a"), rapid.SampledFrom(faults).Draw(t, "b")
		x, y := p.Observe(p.Observe(s, now, a), now, b), p.Observe(p.Observe(s, now, b), now, a)
		xNext, xComes := p.Next(x)
		yNext, yComes := p.Next(y)
		if x.Health != y.Health || !x.Since.Equal(y.Since) || xComes != yComes || xComes && !xNext.Equal(yNext) {
			t.Fatalf("%s, then %s: %+v\n%s, then %s: %+v", a, b, x, b, a, y)
		}
	})
}

func TestWhatProgramsDoWrongLeavesNoTrace(t *testing.T) {
	p := policy()
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t, "history")
		var noisy []moment
		for _, m := range history {
			noisy = append(noisy, moment{m.after, xid(rapid.SampledFrom([]uint64{13, 14, 31, 43, 45, 68, 154}).Draw(t, "noise"))}, moment{0, m.event})
		}
		without, _ := lead(p, health.Fresh(noon), noon, history)
		with, _ := lead(p, health.Fresh(noon), noon, noisy)
		if with != without {
			t.Fatalf("with programs' faults %+v\nwithout %+v", with, without)
		}
	})
}

func TestEachRelapseDoublesTheProbation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy()
		p.ProbationFor = time.Duration(rapid.Int64Range(1, int64(p.MaxHold)).Draw(t, "probation"))
		s, now, want := health.Fresh(noon), noon, p.ProbationFor
		for range rapid.IntRange(1, 300).Draw(t, "relapses") {
			now = now.Add(p.Forget - 1)
			s = p.Observe(s, now, event(devices.EventLost))
			s = p.Observe(s, now, event(devices.EventReturned))
			at, _ := p.Next(s)
			if s.Health != devices.Probation || at.Sub(now) != want {
				t.Fatalf("%s for %s, want %s", s.Health, at.Sub(now), want)
			}
			now = at
			s = p.Tick(s, now)
			want = min(2*want, p.MaxHold)
		}
		now = now.Add(p.Forget)
		s = p.Observe(p.Observe(s, now, event(devices.EventLost)), now, event(devices.EventReturned))
		if at, _ := p.Next(s); at.Sub(now) != p.ProbationFor {
			t.Fatalf("after a quiet time on probation for %s, want %s", at.Sub(now), p.ProbationFor)
		}
	})
}

// FuzzHistory leads a device through any history with any words of the driver,
// in which time may stand still or run backwards, and checks that every state
// keeps the invariant and that a device can always be brought back.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{0, 79, 0, 1, 5, 0, 0, 1, 6, 0, 0, 2}, "fell off the bus")
	f.Add([]byte{0, 39, 0, 60, 0, 39, 0, 60, 0, 39, 0, 60, 6, 0, 0, 0, 9, 1, 255, 255}, "\xff\x00\u200b")
	f.Fuzz(func(t *testing.T, data []byte, detail string) {
		p, s, now := policy(), health.Fresh(noon), noon
		for ; len(data) >= 4; data = data[4:] {
			now = now.Add(time.Duration(int16(binary.BigEndian.Uint16(data[2:]))) * time.Second)
			e := devices.Event{Kind: devices.EventKind(data[0]), XID: uint64(data[1]), Count: uint64(data[1]) << 3, Detail: detail}
			s = p.Observe(s, now, e)
			if err := health.Check(s); err != nil {
				t.Fatalf("%s: %v", e, err)
			}
		}
		for _, kind := range []devices.EventKind{devices.EventDriverBack, devices.EventReturned, devices.EventAnswered, devices.EventRepaired} {
			s = p.Observe(s, now, event(kind))
		}
		for range 2 {
			if at, comes := p.Next(s); comes {
				s = p.Tick(s, at)
			}
		}
		if s.Health != devices.OK {
			t.Fatalf("repaired and quiet, %s for %q", s.Health, s.Reason)
		}
	})
}
