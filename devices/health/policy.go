package health

import (
	"time"
)

// MaxStrikes is the greatest Policy.Strikes.
const MaxStrikes = 8

// Policy is how patient to be with devices. The zero value is invalid: each
// time is above 0 and at most a year. DefaultPolicy is meant for most hosts.
type Policy struct {
	// SuspectFor: a suspect device is ok again after this long without a fault.
	SuspectFor time.Duration
	// Strikes is how many suspicious incidents within StrikeWindow taint a
	// device, 1 to MaxStrikes.
	Strikes      int
	StrikeWindow time.Duration
	// Incident: suspicious events that follow the last counted one more closely
	// than this belong to the same incident. One fault is often logged several
	// times: by each engine, by each channel, and in an error counter.
	Incident time.Duration

	// TaintFor is how long a device that nothing but time can cure stays
	// tainted after its last fault.
	TaintFor time.Duration
	// ProbationFor is how long a device is watched before it takes work again.
	ProbationFor time.Duration
	// DriverProbation is the same where nothing but the driver was gone.
	DriverProbation time.Duration
	// MaxHold bounds the three above as relapses double them.
	MaxHold time.Duration
	// Forget: a device that is tainted again within this time of its last
	// probation's end, or during it, relapses.
	Forget time.Duration

	// HungGrace is how long the driver may leave a question unanswered before
	// the device is tainted; until then it is suspect.
	HungGrace time.Duration

	// CorrectedLimit is how many corrected memory errors within CorrectedWindow
	// make a device suspect.
	CorrectedLimit  uint64
	CorrectedWindow time.Duration
}

// DefaultPolicy is patient with single faults and slow to trust again.
func DefaultPolicy() Policy {
	return Policy{
		SuspectFor:      30 * time.Minute,
		Strikes:         3,
		StrikeWindow:    time.Hour,
		Incident:        time.Minute,
		TaintFor:        10 * time.Minute,
		ProbationFor:    10 * time.Minute,
		DriverProbation: time.Minute,
		MaxHold:         6 * time.Hour,
		Forget:          24 * time.Hour,
		HungGrace:       30 * time.Second,
		CorrectedLimit:  1000,
		CorrectedWindow: time.Hour,
	}
}

// hold is base · 2^relapses, at most MaxHold.
func (p Policy) hold(base time.Duration, relapses uint8) time.Duration {
	for ; relapses > 0 && base < p.MaxHold; relapses-- {
		base *= 2 // below two years
	}
	return min(base, p.MaxHold)
}

// taintFor and probationFor are how long the state's device stays so.
func (p Policy) taintFor(s *State) time.Duration { return p.hold(p.TaintFor, s.relapses) }

func (p Policy) probationFor(s *State) time.Duration {
	if s.brief {
		return p.hold(p.DriverProbation, s.relapses)
	}
	return p.hold(p.ProbationFor, s.relapses)
}
