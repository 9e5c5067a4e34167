package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/health"
)

// noon is when every test's first device is seen.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// policy has durations that differ from each other.
func policy() health.Policy {
	return health.Policy{
		SuspectFor: 30 * time.Minute, Strikes: 3, StrikeWindow: time.Hour, Incident: time.Minute,
		TaintFor: 10 * time.Minute, ProbationFor: 5 * time.Minute, DriverProbation: time.Minute, MaxHold: 2 * time.Hour,
		Forget: 24 * time.Hour, HungGrace: 20 * time.Second, CorrectedLimit: 100, CorrectedWindow: time.Hour,
	}
}

func xid(number uint64) devices.Event { return devices.Event{Kind: devices.EventXID, XID: number} }

func event(kind devices.EventKind) devices.Event { return devices.Event{Kind: kind} }

func corrected(count uint64) devices.Event {
	return devices.Event{Kind: devices.EventECCCorrected, Count: count}
}

// step is one moment of a device's life: after a while an event arrives, or
// none; then the device must be in a state for a reason, and will change by
// itself within a time, or not.
type step struct {
	after time.Duration
	event *devices.Event
	want  devices.Health
	why   string
	next  time.Duration // 0: nothing to come by itself
}

func on(after time.Duration, e devices.Event, want devices.Health, why string, next time.Duration) step {
	return step{after, &e, want, why, next}
}

func quiet(after time.Duration, want devices.Health, why string, next time.Duration) step {
	return step{after, nil, want, why, next}
}

const (
	ok        = devices.OK
	suspect   = devices.Suspect
	tainted   = devices.Tainted
	probation = devices.Probation

	off  = "XID 79: GPU has fallen off the bus"
	ecc  = "XID 48: uncorrectable double-bit memory error"
	dma  = "XID 39: copy engine exception"
	gone = "the driver went away"
	lost = "the device was lost"
	back = "the device had been lost; it is back"
	mute = "the driver did not answer"
	bad  = "a bad row of memory had no spare; the card has to be replaced"
	past = "on probation after "
)

func TestLivesOfADevice(t *testing.T) {
	const m, s = time.Minute, time.Second
	for name, life := range map[string][]step{
		"a program's fault changes nothing, however often": {
			on(0, xid(13), ok, "", 0), on(s, xid(31), ok, "", 0), on(s, xid(43), ok, "", 0), on(s, xid(45), ok, "", 0), on(s, xid(68), ok, "", 0),
		},
		"a notice changes nothing": {on(0, xid(154), ok, "", 0)},
		"an unknown kind of event changes nothing": {
			on(0, event(99), ok, "", 0), on(0, xid(39), suspect, dma, 30*m), on(m, event(99), suspect, dma, 29*m),
		},
		"one suspicious error makes suspect for a while": {
			on(0, xid(39), suspect, dma, 30*m), quiet(30*m-1, suspect, dma, 1), quiet(1, ok, "", 0),
		},
		"the latest fault is the reason of a suspicion": {
			on(0, xid(39), suspect, dma, 30*m), on(m, xid(86), suspect, "XID 86: optical flow engine exception", 30*m),
		},
		"three suspicious errors taint, and time brings the device back": {
			on(0, xid(39), suspect, dma, 30*m), on(5*m, xid(39), suspect, dma, 30*m), on(5*m, xid(39), tainted, dma, 10*m),
			quiet(10*m, probation, past+dma, 5*m), quiet(5*m, ok, "", 0),
		},
		"errors of one incident count once": {
			on(0, xid(39), suspect, dma, 30*m), on(10*s, xid(39), suspect, dma, 30*m), on(49*s, xid(39), suspect, dma, 30*m),
			on(s, xid(39), suspect, dma, 30*m), on(m, xid(39), tainted, dma, 10*m),
		},
		"errors further apart than the window do not add up": {
			on(0, xid(39), suspect, dma, 30*m), on(40*m, xid(39), suspect, dma, 30*m), on(20*m, xid(39), suspect, dma, 30*m),
			on(39*m, xid(39), tainted, dma, 10*m),
		},
		"strikes are spent on a taint": {
			on(0, xid(39), suspect, dma, 30*m), on(m, xid(39), suspect, dma, 30*m), on(m, xid(39), tainted, dma, 10*m),
			quiet(10*m, probation, past+dma, 5*m), quiet(5*m, ok, "", 0), on(m, xid(39), suspect, dma, 30*m),
		},
		"a suspicious error while tainted begins the time anew": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), on(9*m, xid(39), tainted, "XID 167: fatal PCIe timeout", 10*m),
		},
		"a suspicious error on probation is a relapse": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), quiet(10*m, probation, past+"XID 167: fatal PCIe timeout", 5*m),
			on(m, xid(39), tainted, dma, 20*m), quiet(20*m, probation, past+dma, 10*m),
		},
		"a program's fault on probation is none": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), quiet(10*m, probation, past+"XID 167: fatal PCIe timeout", 5*m),
			on(m, xid(13), probation, past+"XID 167: fatal PCIe timeout", 4*m), quiet(4*m, ok, "", 0),
		},
		"what needs a reset waits for it, and for nothing else": {
			on(0, xid(48), tainted, ecc+"; needs a reset", 0), quiet(1000*time.Hour, tainted, ecc+"; needs a reset", 0),
			on(0, event(devices.EventAnswered), tainted, ecc+"; needs a reset", 0), on(0, event(devices.EventDriverBack), tainted, ecc+"; needs a reset", 0),
			on(0, event(devices.EventRepaired), probation, past+ecc, 5*m), quiet(5*m, ok, "", 0),
		},
		"the first fault that needs a reset stays the reason": {
			on(0, xid(48), tainted, ecc+"; needs a reset", 0), on(s, xid(95), tainted, ecc+"; needs a reset", 0),
		},
		"a card that fell off the bus returns after a power cycle": {
			on(0, xid(79), tainted, off+"; needs a reset", 0), on(s, event(devices.EventLost), tainted, lost, 0),
			on(20*m, event(devices.EventReturned), probation, past+off, 5*m), quiet(5*m, ok, "", 0),
		},
		"a lost card's reset is not its return": {
			on(0, event(devices.EventLost), tainted, lost, 0), on(m, event(devices.EventRepaired), tainted, lost, 0),
			on(m, event(devices.EventReturned), probation, past+lost, 5*m),
		},
		"a card that comes and goes is trusted later each time": {
			on(0, event(devices.EventLost), tainted, lost, 0), on(s, event(devices.EventReturned), probation, past+lost, 5*m),
			on(s, event(devices.EventLost), tainted, lost, 0), on(s, event(devices.EventReturned), tainted, back, 20*m-s),
			quiet(20*m-s, probation, past+back, 10*m),
			on(s, event(devices.EventLost), tainted, lost, 0), on(50*m, event(devices.EventReturned), probation, past+back, 20*m),
			quiet(20*m, ok, "", 0),
			on(23*time.Hour, event(devices.EventLost), tainted, lost, 0), on(s, event(devices.EventReturned), probation, past+lost, 40*m),
			quiet(40*m, ok, "", 0),
			on(24*time.Hour, event(devices.EventLost), tainted, lost, 0), on(s, event(devices.EventReturned), probation, past+lost, 5*m),
		},
		"a device that works on while a reset is due is suspect until the reset": {
			on(0, event(devices.EventPageRetirementPending), suspect, "bad memory waits to be replaced by spare rows or pages; a reset is due", 0),
			quiet(1000*time.Hour, suspect, "bad memory waits to be replaced by spare rows or pages; a reset is due", 0),
			on(0, event(devices.EventRepaired), ok, "", 0),
		},
		"a reset that comes early leaves the rest of the suspicion": {
			on(0, xid(63), suspect, "XID 63: bad memory will be replaced by a spare row or page; a reset is due", 0),
			on(m, event(devices.EventRepaired), suspect, "XID 63: bad memory will be replaced by a spare row or page", 29*m), quiet(29*m, ok, "", 0),
		},
		"what is due outlives a taint that a reset did not end": {
			on(0, xid(63), suspect, "XID 63: bad memory will be replaced by a spare row or page; a reset is due", 0),
			on(m, event(devices.EventDriverGone), tainted, gone, 0), on(m, event(devices.EventDriverBack), probation, past+gone, m),
			quiet(m, suspect, "XID 63: bad memory will be replaced by a spare row or page; a reset is due", 0),
		},
		"a contained memory error costs its program, three cost the device": {
			on(0, xid(94), suspect, "XID 94: contained memory error; a reset is due", 0), on(5*m, xid(94), suspect, "XID 94: contained memory error; a reset is due", 0),
			on(5*m, xid(94), tainted, "XID 94: contained memory error", 10*m), on(m, event(devices.EventRepaired), probation, past+"XID 94: contained memory error", 5*m),
			quiet(5*m, ok, "", 0),
		},
		"an error of memory that is logged, counted and pending is one incident": {
			on(0, xid(94), suspect, "XID 94: contained memory error; a reset is due", 0),
			on(s, devices.Event{Kind: devices.EventECCUncorrected, Count: 1}, suspect, "XID 94: contained memory error; a reset is due", 0),
			on(s, event(devices.EventPageRetirementPending), suspect, "XID 94: contained memory error; a reset is due", 0),
			on(s, devices.Event{Kind: devices.EventECCUncorrected, Count: 2}, suspect, "XID 94: contained memory error; a reset is due", 0),
		},
		"a memory error that is not counted is suspicious": {on(0, event(devices.EventECCUncorrected), suspect, "uncorrected memory error", 30*m)},
		"memory errors that are counted alone are suspicious": {
			on(0, devices.Event{Kind: devices.EventECCUncorrected, Count: 4}, suspect, "uncorrected memory errors, 4 so far", 30*m),
			on(m, devices.Event{Kind: devices.EventECCUncorrected, Count: 5}, suspect, "uncorrected memory errors, 5 so far", 30*m),
			on(m, devices.Event{Kind: devices.EventECCUncorrected, Count: 6}, tainted, "uncorrected memory errors, 6 so far", 10*m),
		},
		"a bad row without a spare waits for the card's repair": {
			on(0, event(devices.EventRowRemapFailed), tainted, bad, 0), on(m, event(devices.EventLost), tainted, lost, 0),
			on(m, event(devices.EventReturned), tainted, bad, 0), quiet(1000*time.Hour, tainted, bad, 0),
			on(m, event(devices.EventRepaired), probation, past+"a bad row of memory had no spare", 5*m), quiet(5*m, ok, "", 0),
		},
		"a neighbour's fall does not taint": {on(0, xid(74), suspect, "XID 74: NVLink error; a reset is due", 0)},
		"a silent driver that lost the card is heard again with the card": {
			on(0, event(devices.EventHung), suspect, mute, 20*s), on(s, event(devices.EventLost), tainted, lost, 0),
			on(m, event(devices.EventReturned), probation, past+lost, 5*m),
		},
		"a fault of a lost device takes its own time": {
			on(0, event(devices.EventLost), tainted, lost, 0), on(5*m, xid(167), tainted, lost, 0),
			on(m, event(devices.EventReturned), tainted, "XID 167: fatal PCIe timeout", 9*m), quiet(9*m, probation, past+"XID 167: fatal PCIe timeout", 5*m),
		},
		"a driver that pauses makes suspect": {
			on(0, event(devices.EventHung), suspect, mute, 20*s), on(10*s, event(devices.EventHung), suspect, mute, 10*s),
			on(9*s, event(devices.EventAnswered), suspect, mute, 30*m), quiet(30*m, ok, "", 0),
		},
		"a fault is the reason again once the driver is back": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), on(m, event(devices.EventDriverGone), tainted, gone, 0),
			on(m, event(devices.EventDriverBack), tainted, "XID 167: fatal PCIe timeout", 8*m),
		},
		"a driver that hangs taints": {
			on(0, event(devices.EventHung), suspect, mute, 20*s), quiet(20*s, tainted, mute, 0), quiet(time.Hour, tainted, mute, 0),
			on(0, event(devices.EventAnswered), probation, past+mute, 5*m), quiet(5*m, ok, "", 0),
		},
		"a driver that hangs on probation taints before that is over": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), quiet(10*m, probation, past+"XID 167: fatal PCIe timeout", 5*m),
			on(5*m-s, event(devices.EventHung), probation, past+"XID 167: fatal PCIe timeout", 20*s), quiet(20*s, tainted, mute, 0),
		},
		"an answer in time lets a probation go on": {
			on(0, xid(79), tainted, off+"; needs a reset", 0), on(0, event(devices.EventReturned), probation, past+off, 5*m),
			on(m, event(devices.EventHung), probation, past+off, 20*s), on(10*s, event(devices.EventAnswered), probation, past+off, 4*m-10*s),
		},
		"a driver that is replaced costs a minute": {
			on(0, event(devices.EventDriverGone), tainted, gone, 0), on(30*m, event(devices.EventDriverBack), probation, past+gone, m), quiet(m, ok, "", 0),
		},
		"a hung driver that is replaced is a new one": {
			on(0, event(devices.EventHung), suspect, mute, 20*s), on(s, event(devices.EventDriverGone), tainted, gone, 0),
			on(s, event(devices.EventDriverBack), probation, past+gone, m),
		},
		"a driver that crashes over and over is trusted later each time": {
			on(0, event(devices.EventDriverGone), tainted, gone, 0), on(s, event(devices.EventDriverBack), probation, past+gone, m), quiet(m, ok, "", 0),
			on(m, event(devices.EventDriverGone), tainted, gone, 0), on(s, event(devices.EventDriverBack), probation, past+gone, 2*m), quiet(2*m, ok, "", 0),
		},
		"a driver that is replaced does not cure a device": {
			on(0, event(devices.EventDriverGone), tainted, gone, 0), on(0, xid(48), tainted, ecc+"; needs a reset", 0),
			on(m, event(devices.EventDriverBack), tainted, ecc+"; needs a reset", 0), on(m, event(devices.EventRepaired), probation, past+ecc, 5*m),
		},
		"a driver that is replaced on probation begins that anew, in full": {
			on(0, xid(48), tainted, ecc+"; needs a reset", 0), on(m, event(devices.EventRepaired), probation, past+ecc, 5*m),
			on(4*m, event(devices.EventDriverGone), tainted, gone, 0), on(s, event(devices.EventDriverBack), probation, past+gone, 10*m),
		},
		"a reset ends a taint that only time would": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), on(s, event(devices.EventRepaired), probation, past+"XID 167: fatal PCIe timeout", 5*m),
		},
		"good news of a good device is none": {
			on(0, event(devices.EventReturned), ok, "", 0), on(0, event(devices.EventAnswered), ok, "", 0),
			on(0, event(devices.EventDriverBack), ok, "", 0), on(0, event(devices.EventRepaired), ok, "", 0),
		},
		"corrected memory errors at a normal rate are no news": {
			on(0, corrected(5000), ok, "", 0), on(30*m, corrected(5099), ok, "", 0), on(30*m, corrected(5150), ok, "", 0), on(59*m, corrected(5198), ok, "", 0),
		},
		"corrected memory errors at a high rate make suspect, never more": {
			on(0, corrected(5000), ok, "", 0), on(59*m, corrected(5100), suspect, "at least 100 corrected memory errors within 1h0m0s", 30*m),
			on(m, corrected(5199), suspect, "at least 100 corrected memory errors within 1h0m0s", 29*m),
			on(m, corrected(5300), suspect, "at least 100 corrected memory errors within 1h0m0s", 30*m),
			on(m, corrected(9300), suspect, "at least 100 corrected memory errors within 1h0m0s", 30*m),
		},
		"corrected memory errors since the last window count in the next": {
			on(0, corrected(5000), ok, "", 0), on(2*time.Hour, corrected(5100), suspect, "at least 100 corrected memory errors within 1h0m0s", 30*m),
		},
		"a counter that began anew is counted from there": {
			on(0, corrected(5000), ok, "", 0), on(m, corrected(99), ok, "", 0), on(m, corrected(100), suspect, "at least 100 corrected memory errors within 1h0m0s", 30*m),
		},
		"a late tick takes one step": {
			on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 10*m), quiet(1000*time.Hour, probation, past+"XID 167: fatal PCIe timeout", 5*m),
			quiet(1000*time.Hour, ok, "", 0),
		},
		"an unknown number is suspicious, and its text is told": {
			on(0, devices.Event{Kind: devices.EventXID, XID: 999, Detail: "what\tis this?\n"}, suspect, "XID 999: not in the vendor's catalog: what is this?", 30*m),
		},
		"what is told of memory is told in its own words": {
			on(0, devices.Event{Kind: devices.EventPageRetirementPending, Detail: "2 rows wait"}, suspect, "2 rows wait; a reset is due", 0),
			on(m, devices.Event{Kind: devices.EventRowRemapFailed, Detail: "a third one cannot"}, tainted, "a third one cannot; the card has to be replaced", 0),
			on(m, event(devices.EventRepaired), probation, past+"a third one cannot", 5*m), quiet(5*m, ok, "", 0),
		},
		"words of white space are none": {on(0, devices.Event{Kind: devices.EventLost, Detail: " \t\n"}, tainted, lost, 0)},
		"what the driver tells of a loss is kept": {
			on(0, devices.Event{Kind: devices.EventLost, Detail: "NVML_ERROR_GPU_IS_LOST"}, tainted, lost+": NVML_ERROR_GPU_IS_LOST", 0),
		},
	} {
		t.Run(name, func(t *testing.T) { live(t, policy(), health.Fresh(noon), life) })
	}
}

// live leads a device through a life.
func live(t *testing.T, p health.Policy, state health.State, life []step) {
	t.Helper()
	now := state.Since
	for i, step := range life {
		now = now.Add(step.after)
		told := "nothing"
		before := state
		if step.event == nil {
			state = p.Tick(state, now)
		} else {
			told = step.event.String()
			state = p.Observe(state, now, *step.event)
		}
		if err := health.Check(state); err != nil {
			t.Fatalf("step %d (%s): %v", i, told, err)
		}
		if state.Health != step.want || state.Reason != step.why {
			t.Fatalf("step %d (%s): %s for %q, want %s for %q", i, told, state.Health, state.Reason, step.want, step.why)
		}
		if entered := state.Health != before.Health; entered && !state.Since.Equal(now) {
			t.Fatalf("step %d (%s): %s since %s, want %s", i, told, state.Health, state.Since, now)
		}
		at, comes := p.Next(state)
		if comes != (step.next != 0) || comes && at.Sub(now) != step.next {
			t.Fatalf("step %d (%s): next is in %s, %t; want in %s", i, told, at.Sub(now), comes, step.next)
		}
	}
}

func TestARestartOfTheAgent(t *testing.T) {
	const m = time.Minute
	for name, c := range map[string]struct {
		health devices.Health
		reason string
		life   []step
	}{
		"finds a good device good": {ok, "whatever", []step{quiet(0, ok, "", 0)}},
		"goes on suspecting":       {suspect, dma, []step{quiet(0, suspect, dma, 30*m), quiet(30*m, ok, "", 0)}},
		"lets a tainted device work off its time, if nobody tells that it is still lost": {
			tainted, off + "; needs a reset",
			[]step{quiet(0, tainted, off+"; needs a reset", 10*m), quiet(10*m, probation, past+off, 5*m), quiet(5*m, ok, "", 0)},
		},
		"waits for a device that is still lost": {
			tainted, off + "; needs a reset",
			[]step{
				on(0, event(devices.EventLost), tainted, lost, 0), quiet(time.Hour, tainted, lost, 0),
				on(0, event(devices.EventReturned), probation, past+off, 5*m),
			},
		},
		"begins a probation anew":         {probation, past + off, []step{quiet(0, probation, past+off, 5*m), quiet(5*m, ok, "", 0)}},
		"counts a relapse of probation":   {probation, past + off, []step{on(0, xid(167), tainted, "XID 167: fatal PCIe timeout", 20*m)}},
		"does not take a device for lost": {tainted, lost + ": GPU is lost", []step{quiet(0, tainted, "lost before the agent was restarted: GPU is lost", 10*m)}},
		"without a reason makes one":      {tainted, "", []step{quiet(0, tainted, "tainted before the agent was restarted", 10*m)}},
		"with a prefix alone keeps it":    {probation, past, []step{quiet(0, probation, "on probation after", 5*m)}},
		"with a state from nowhere":       {17, "?", []step{quiet(0, tainted, "?", 10*m)}},
	} {
		t.Run(name, func(t *testing.T) { live(t, policy(), health.Restored(c.health, c.reason, noon), c.life) })
	}
}

func TestTheZeroStateIsAGoodDevice(t *testing.T) {
	var s health.State
	if err := health.Check(s); err != nil {
		t.Error(err)
	}
	if at, comes := policy().Next(s); comes || s.Health != ok {
		t.Errorf("%s, next at %s", s.Health, at)
	}
	if s = policy().Observe(s, noon, xid(39)); s.Health != suspect || s.Reason != dma || !s.Since.Equal(noon) {
		t.Errorf("%s for %q since %s", s.Health, s.Reason, s.Since)
	}
}

func TestReasonsAreBoundedAndPrintable(t *testing.T) {
	p := policy()
	for name, detail := range map[string]string{
		"a long text":               strings.Repeat("driver ", 100),
		"runes of several bytes":    strings.Repeat("ß漢", 100),
		"bytes that are not UTF-8":  strings.Repeat("\xff\xfe", 100),
		"control characters":        "a\x00b\x1b[31mc\r\nd",
		"a book":                    strings.Repeat("x", 1<<20),
		"white space alone":         " \t\n",
		"the replacement character": "\ufffd",
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range []devices.Event{
				{Kind: devices.EventXID, XID: 999, Detail: detail},
				{Kind: devices.EventLost, Detail: detail},
				{Kind: devices.EventReturned},
				{Kind: devices.EventRowRemapFailed, Detail: detail},
				{Kind: devices.EventDriverGone, Detail: detail},
			} {
				s := p.Observe(health.Fresh(noon), noon, e)
				if err := health.Check(s); err != nil {
					t.Errorf("%s: %v", e.Kind, err)
				}
				if e.Kind == devices.EventRowRemapFailed && !strings.HasSuffix(s.Reason, "; the card has to be replaced") {
					t.Errorf("%q does not say what has to be done", s.Reason)
				}
				if e.Kind == devices.EventLost {
					if s = p.Observe(s, noon, event(devices.EventReturned)); !strings.HasPrefix(s.Reason, past+lost) {
						t.Errorf("%q does not say what happened", s.Reason)
					}
					if err := health.Check(s); err != nil {
						t.Error(err)
					}
				}
			}
			if err := health.Check(health.Restored(tainted, detail, noon)); err != nil {
				t.Errorf("restored: %v", err)
			}
		})
	}
}
