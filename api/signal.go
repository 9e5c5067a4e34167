package api

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// signals may announce an end; the numbers are Linux'. KILL and STOP
// leave a command no choice.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "USR1": 10, "USR2": 12, "ALRM": 14, "TERM": 15, "CONT": 18, "URG": 23, "XCPU": 24, "WINCH": 28,
}

// DefaultSignalBefore is the time between a signal and the announced end.
const DefaultSignalBefore = time.Minute

// EndSignal is the number of the signal before the end of a member, and the time
// from the signal to the end; 0 for none. Validate has accepted the specification.
func (s *AllocationSpec) EndSignal() (number int, before time.Duration) {
	before = DefaultSignalBefore
	if d, err := time.ParseDuration(s.SignalBefore); err == nil {
		before = d
	}
	return signals[s.Signal], before
}

// SignalName is the name in a specification of a signal written as a number, as
// USR1 or as SIGUSR1; false for other signals.
func SignalName(text string, number int) (name string, known bool) {
	name = strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if _, known := signals[name]; known {
		return name, true
	}
	for name, n := range signals {
		if n == number {
			return name, true
		}
	}
	return "", false
}

// checkSignal validates the signal before the end. deadline is that of the job in seconds,
// nil for none.
func checkSignal(path string, s *AllocationSpec, deadline *int64) *Status {
	var faults faults
	number, before := s.EndSignal()
	switch {
	case s.Signal == "" && s.SignalBefore == "":
		return nil
	case s.Signal == "":
		faults.add(invalid(path+".signalBefore", "%q without a signal: set %s.signal", clip(s.SignalBefore), path))
	case number == 0:
		faults.add(invalid(path+".signal", "%q is not a signal that can announce an end: want one of %s", clip(s.Signal), strings.Join(slices.Sorted(maps.Keys(signals)), ", ")))
	case !s.HasWork():
		faults.add(invalid(path+".signal", "%q without a command: set %s.command", s.Signal, path))
	}
	if bad := checkDuration(path+".signalBefore", s.SignalBefore); bad != nil {
		faults.add(bad)
		return faults.status()
	}
	if before < time.Second {
		faults.add(invalid(path+".signalBefore", "%q is less than 1s", clip(s.SignalBefore)))
	}
	if ttl, err := time.ParseDuration(s.TTL); err == nil && ttl > 0 && before >= ttl {
		faults.add(invalid(path+".signalBefore", "%s is not less than the ttl of %s: the signal would come before the start", before, ttl))
	}
	if deadline != nil && *deadline > 0 && before/time.Second >= time.Duration(*deadline) {
		faults.add(invalid(path+".signalBefore", "%s is not less than the %d s of spec.activeDeadlineSeconds: the signal would come before the start", before, *deadline))
	}
	return faults.status()
}
