package health

import (
	"fmt"
	"time"

	"github.com/musterd/muster/devices"
)

// Observe returns the state after an event at the time now. It lets time pass
// first, so that Observe(s, now, e) = Observe(Tick(s, now), now, e), and no
// Tick is due after it. Two faults of the device at one time lead to the same
// health and times in either order; Reason may name the other.
//
// An event of a kind that is not known changes nothing.
func (p Policy) Observe(s State, now time.Time, e devices.Event) State {
	s = p.Tick(s, now)
	before := s
	switch e.Kind {
	case devices.EventXID:
		p.xid(&s, now, e)
	case devices.EventECCUncorrected:
		p.strike(&s, now, uncorrected(e.Count))
	case devices.EventECCCorrected:
		p.corrected(&s, now, e.Count)
	case devices.EventPageRetirementPending:
		s.note(due, inWords(e.Detail, "bad memory waits to be replaced by spare rows or pages"))
		p.suspect(&s, now, s.why[due])
	case devices.EventRowRemapFailed:
		p.taint(&s, now, replacement, inWords(e.Detail, "a bad row of memory had no spare"))
	case devices.EventLost:
		p.taint(&s, now, absence, told(devices.LostReason, e.Detail))
	case devices.EventReturned:
		s.drop(absence, reset, silence)
	case devices.EventHung:
		p.hung(&s, now, told("the driver did not answer", e.Detail))
	case devices.EventAnswered:
		s.drop(silence)
	case devices.EventDriverGone:
		p.taint(&s, now, driver, told("the driver went away", e.Detail))
	case devices.EventDriverBack:
		s.drop(driver, silence)
	case devices.EventRepaired:
		s.drop(replacement, reset, due)
		s.timed = false
	}
	if before.why[silence] != "" && s.why[silence] == "" && s.Health == devices.Suspect {
		s.from = now
	}
	if s.Health != before.Health || s.why != before.why {
		s.explain()
	}
	return p.Tick(s, now)
}

// Tick returns the state at the time now if nothing has happened until then. A
// late one takes the next step alone, and that begins now: a device is never
// trusted for a time in which no agent watched it.
func (p Policy) Tick(s State, now time.Time) State {
	if s.Health == devices.Tainted && !s.timed && !s.blocked() {
		s.probation(now)
		return s
	}
	at, ok := p.Next(s)
	switch {
	case !ok || at.After(now):
		return s
	case s.why[silence] != "":
		p.taint(&s, now, silence, s.why[silence])
	case s.Health == devices.Tainted:
		s.timed = false
		s.probation(now)
	case s.Health == devices.Probation:
		s.release(now)
	default:
		s.recover(now)
	}
	s.explain()
	return s
}

// Next is the time of the next work of Tick, in the future of the last Observe or
// Tick; ok is false where only an event or a person can change the state.
func (p Policy) Next(s State) (at time.Time, ok bool) {
	switch {
	case s.Health == devices.Tainted:
		return s.from.Add(p.taintFor(&s)), s.timed && !s.blocked()
	case s.why[silence] != "":
		return s.hungAt.Add(p.HungGrace), true
	case s.Health == devices.Probation:
		return s.from.Add(p.probationFor(&s)), true
	case s.Health == devices.Suspect:
		return s.from.Add(p.SuspectFor), s.why[due] == ""
	}
	return time.Time{}, false
}

// xid applies the catalogue's verdict on the number.
func (p Policy) xid(s *State, now time.Time, e devices.Event) {
	v := XID(e.XID)
	if v.Effect == Application || v.Effect == Notice {
		return
	}
	why := fmt.Sprintf("XID %d: %s", e.XID, v.Name)
	if v.Unknown() {
		why = told(why, e.Detail)
	}
	if v.Effect == Fatal {
		c := fault
		if v.Reset {
			c = reset
		}
		p.taint(s, now, c, why)
		return
	}
	if v.Reset {
		s.note(due, why)
	}
	if v.Effect == Watch {
		p.suspect(s, now, why)
		return
	}
	p.strike(s, now, why)
}

// suspect makes a device that takes work suspect, from now on.
func (p Policy) suspect(s *State, now time.Time, why string) {
	switch s.Health {
	case devices.OK:
		s.enter(devices.Suspect, now)
	case devices.Suspect:
		s.from = now
	default:
		return
	}
	s.note(fault, why)
}

// strike counts a suspicious incident.
func (p Policy) strike(s *State, now time.Time, why string) {
	if s.counted == 0 || now.Sub(s.strikes[s.counted-1]) >= p.Incident {
		s.count(now, p.StrikeWindow)
	}
	switch {
	case s.Health == devices.Probation, s.counted >= p.Strikes:
		p.taint(s, now, fault, why)
	case s.Health != devices.Tainted:
		p.suspect(s, now, why)
	case s.timed:
		s.from = now
	}
}

// count adds an incident and forgets those that are older than the window.
func (s *State) count(now time.Time, window time.Duration) {
	recent := [MaxStrikes]time.Time{}
	n := 0
	for _, at := range s.strikes[:s.counted] {
		if now.Sub(at) < window {
			recent[n] = at
			n++
		}
	}
	if n == MaxStrikes {
		copy(recent[:], recent[1:])
		n--
	}
	recent[n] = now
	s.strikes, s.counted = recent, n+1
}

// taint takes the device out of service for a cause.
func (p Policy) taint(s *State, now time.Time, c cause, why string) {
	if s.Health != devices.Tainted {
		relapse := s.Health == devices.Probation
		s.brief = c == driver && !relapse
		s.timed = c != driver && relapse
		if relapse || !s.calm.IsZero() && now.Sub(s.calm) < p.Forget {
			s.relapses = min(s.relapses, 254) + 1
		} else {
			s.relapses = 0
		}
		s.enter(devices.Tainted, now)
		s.why[fault] = "" // of before
	}
	s.note(c, why)
	if c != driver {
		s.brief = false
	}
	if c == fault {
		s.timed, s.from = true, now
	}
}

// hung notes that the driver is silent; Tick taints when that lasts.
func (p Policy) hung(s *State, now time.Time, why string) {
	if s.why[silence] != "" {
		return
	}
	s.hungAt = now
	s.note(silence, why)
	if s.Health == devices.OK {
		s.enter(devices.Suspect, now)
	}
}

// corrected compares the growth of the count with the limit. The first count is
// a mark alone, and a counter that has fallen began anew.
func (p Policy) corrected(s *State, now time.Time, count uint64) {
	switch {
	case s.window.IsZero():
		s.window, s.base = now, count
	case count < s.total:
		s.base = 0
	case now.Sub(s.window) >= p.CorrectedWindow:
		s.window, s.base = now, s.total
	}
	s.total = count
	if count-s.base >= p.CorrectedLimit {
		p.suspect(s, now, fmt.Sprintf("at least %d corrected memory errors within %v", p.CorrectedLimit, p.CorrectedWindow))
		s.window, s.base = now, count
	}
}

// uncorrected describes the number of errors, where it is known.
func uncorrected(count uint64) string {
	if count == 0 {
		return "uncorrected memory error"
	}
	return fmt.Sprintf("uncorrected memory errors, %d so far", count)
}

// probation begins the watch of a tainted device that nothing blocks.
func (s *State) probation(now time.Time) {
	s.why = [causes]string{due: s.why[due], fault: s.why[fault]}
	s.counted, s.strikes = 0, [MaxStrikes]time.Time{}
	s.enter(devices.Probation, now)
	s.explain()
}

// release ends a probation.
func (s *State) release(now time.Time) {
	s.brief, s.calm = false, now
	s.why[fault] = ""
	if s.why[due] != "" {
		s.enter(devices.Suspect, now)
		return
	}
	s.enter(devices.OK, now)
}

// recover ends a suspicion.
func (s *State) recover(now time.Time) {
	s.why = [causes]string{}
	s.enter(devices.OK, now)
}

// inWords is the event's own text, or else the words for its kind.
func inWords(detail, kind string) string {
	if detail = printable(detail); detail != "" {
		return detail
	}
	return kind
}

// told joins the observation and the driver's text about it.
func told(what, detail string) string {
	if detail = printable(detail); detail == "" {
		return what
	}
	return printable(what + ": " + detail)
}
