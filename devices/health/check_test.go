package health

import (
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterd/muster/devices"
)

// Check reports the first line of State's invariant that does not hold.
func Check(s State) error {
	if (s.Reason == "") != (s.Health == devices.OK) {
		return fmt.Errorf("%s for %q", s.Health, s.Reason)
	}
	if len(s.Reason) > MaxReason || !utf8.ValidString(s.Reason) {
		return fmt.Errorf("reason %q has %d bytes, or is not UTF-8", s.Reason, len(s.Reason))
	}
	for _, r := range s.Reason {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("reason %q is not printable", s.Reason)
		}
	}
	if s.Health == devices.OK && s.why != [causes]string{} {
		return fmt.Errorf("ok, with the causes %q", s.why)
	}
	if (s.Health == devices.Tainted) != (s.timed || s.blocked() && s.Health == devices.Tainted) {
		return fmt.Errorf("%s: timed is %t, causes %q", s.Health, s.timed, s.why)
	}
	if s.Health != devices.Tainted {
		for c := replacement; c < silence; c++ {
			if s.why[c] != "" {
				return fmt.Errorf("%s, with the cause %q", s.Health, s.why[c])
			}
		}
	}
	if s.Health != devices.OK && s.cause() == causes {
		return fmt.Errorf("%s without a cause", s.Health)
	}
	if s.Health == devices.Probation && s.why[fault] == "" {
		return errors.New("on probation without a fault")
	}
	if s.brief && s.Health != devices.Tainted && s.Health != devices.Probation {
		return fmt.Errorf("%s for the driver alone", s.Health)
	}
	for i, at := range s.strikes {
		if at.IsZero() == (i < s.counted) {
			return fmt.Errorf("%d strikes counted, strike %d is at %s", s.counted, i, at.Format(time.RFC3339))
		}
	}
	return nil
}
