package health

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterd/muster/devices"
)

// MaxReason is the most bytes of State.Reason.
const MaxReason = 160

// State is the knowledge about one device. It is a value: functions return the
// next one. The zero value is a device without any bad event.
//
// Invariant: Reason is empty exactly where Health is OK; an OK state has no
// cause; a device is tainted exactly while timed or blocked by a cause;
// replacement, reset, absence and driver are causes of tainted devices alone; a
// device on probation has the cause fault; timed implies tainted, brief implies
// tainted or probation; strikes are the first counted, ascending as reported,
// and zero after that.
type State struct {
	Health devices.Health
	// Since is when the device entered Health.
	Since time.Time
	// Reason explains to people why the device is not ok, in at most MaxReason
	// bytes of printable UTF-8.
	Reason string

	from     time.Time // when the clock of Health was started last
	why      [causes]string
	hungAt   time.Time // when the silence began, where there is one
	timed    bool      // tainted for a time at least, even if other events are awaited too
	brief    bool      // tainted, or on probation, for the driver alone
	relapses uint8
	calm     time.Time // end of the last probation

	counted int
	strikes [MaxStrikes]time.Time

	// Corrected memory errors: when the window began, the count then, and the
	// last one.
	window      time.Time
	base, total uint64
}

// cause is why a device is not ok, in plain words in State.why. Those that are
// awaited come first, in the order of their importance to people.
type cause uint8

const (
	absence     cause = iota // the device is lost
	replacement              // it has to be replaced
	reset                    // it needs a reset
	driver                   // the driver is gone
	silence                  // the driver does not answer
	due                      // it works on, and a reset is due
	fault                    // time alone cures it
	causes
)

// over ends the reason of a cause that is over while the device works off its
// time in taint.
var over = [causes]string{absence: "; it is back", driver: "; the driver is back", silence: "; the driver answers again"}

// remedies end the reason of a cause.
var remedies = [causes]string{replacement: "; the card has to be replaced", reset: "; needs a reset", due: "; a reset is due"}

const probationPrefix = "on probation after "

// Fresh is a device that is seen for the first time.
func Fresh(now time.Time) State { return State{Since: now, from: now} }

// Restored is a device as the journal remembers it after a restart of the
// agent, for the reason given then. Its clocks start anew. Awaited events are
// not remembered: the watch of the devices reports the faults that it still
// sees, and a device without such a report works off its time.
func Restored(h devices.Health, reason string, now time.Time) State {
	s := Fresh(now)
	if h == devices.OK {
		return s
	}
	if h > devices.Probation {
		h = devices.Tainted
	}
	s.Health, s.timed = h, h == devices.Tainted
	s.Reason = printable(reason)
	if devices.IsLost(devices.Tainted, s.Reason) {
		s.Reason = printable("lost before the agent was restarted" + strings.TrimPrefix(s.Reason, devices.LostReason))
	}
	if s.Reason == "" {
		s.Reason = h.String() + " before the agent was restarted"
	}
	s.why[fault] = strings.TrimPrefix(s.Reason, probationPrefix)
	for _, remedy := range remedies {
		s.why[fault] = strings.TrimSuffix(s.why[fault], remedy)
	}
	if s.why[fault] == "" {
		s.why[fault] = s.Reason
	}
	return s
}

// enter begins another health.
func (s *State) enter(h devices.Health, now time.Time) {
	s.Health, s.Since, s.from = h, now, now
}

// blocked reports whether a tainted device has an event to wait for besides
// time.
func (s *State) blocked() bool {
	for c := range due {
		if s.why[c] != "" {
			return true
		}
	}
	return false
}

// cause is the cause to show to people: the first of all causes, but that a
// reset is due matters little to a device that takes no work.
func (s *State) cause() cause {
	for c := range causes {
		if s.why[c] != "" && (c != due || s.Health == devices.Suspect) {
			return c
		}
	}
	return causes
}

// note remembers a cause. The first of its kind stays, for its consequences are
// reported later; only a passing fault gives way to a newer one.
func (s *State) note(c cause, why string) {
	if s.why[c] == "" || c == fault && !s.timed && s.Health != devices.Probation {
		s.why[c] = why
	}
}

// drop forgets causes that are over. The foremost of all is still shown while
// the device works off its time, unless that is the time of a fault of its own.
func (s *State) drop(ended ...cause) {
	works := s.Health == devices.Tainted && s.timed && s.why[fault] != "" // off the time of that fault
	if c := s.cause(); s.Health != devices.Probation && slices.Contains(ended, c) && !works {
		if c == absence && s.why[reset] != "" && slices.Contains(ended, reset) {
			c = reset // the fault before the loss says more
		}
		s.why[fault] = s.why[c]
		if s.Health == devices.Tainted && s.timed {
			s.why[fault] = printable(past(s.why[c]), over[c])
		}
	}
	for _, c := range ended {
		s.why[c] = ""
	}
}

// past is a reason that does not begin as that of a device which is gone.
func past(why string) string {
	if rest, is := strings.CutPrefix(why, devices.LostReason); is {
		return "the device had been lost" + rest
	}
	return why
}

// explain sets Reason.
func (s *State) explain() {
	switch s.Health {
	case devices.OK:
		s.Reason = ""
	case devices.Probation:
		s.Reason = printable(probationPrefix + s.why[fault])
	default:
		c := s.cause()
		s.Reason = printable(s.why[c], remedies[c])
	}
}

// printable bounds a foreign text and makes it fit for a line: control
// characters become blanks. The part that must stay is kept at its end.
func printable(text string, keep ...string) string {
	end := strings.Join(keep, "")
	room := MaxReason - len(end)
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text[:min(len(text), 4*MaxReason)]))
	if len(text) > room {
		const more = "…"
		room -= len(more)
		for !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room] + more
	}
	return text + end
}
