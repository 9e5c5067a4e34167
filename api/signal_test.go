package api

import (
	"strings"
	"testing"
	"time"
)

func TestTheSignalBeforeAnEnd(t *testing.T) {
	work := []string{"train"}
	minute := int64(60)
	for name, c := range map[string]struct {
		spec     AllocationSpec
		deadline *int64
		want     string
	}{
		"none":                          {AllocationSpec{}, nil, ""},
		"with its default":              {AllocationSpec{Command: work, Signal: "USR1"}, nil, ""},
		"with both":                     {AllocationSpec{Command: work, Signal: "TERM", SignalBefore: "59s", TTL: "1m"}, &minute, ""},
		"a time alone":                  {AllocationSpec{Command: work, SignalBefore: "5s"}, nil, `s.signalBefore: "5s" without a signal`},
		"no command":                    {AllocationSpec{Signal: "USR1"}, nil, `s.signal: "USR1" without a command`},
		"one that leaves no choice":     {AllocationSpec{Command: work, Signal: "KILL"}, nil, `s.signal: "KILL" is not a signal that can announce an end: want one of ALRM,`},
		"another spelling":              {AllocationSpec{Command: work, Signal: "SIGUSR1"}, nil, `s.signal: "SIGUSR1" is not`},
		"no duration":                   {AllocationSpec{Command: work, Signal: "USR1", SignalBefore: "60"}, nil, `s.signalBefore: "60" is not a duration`},
		"less than a second":            {AllocationSpec{Command: work, Signal: "USR1", SignalBefore: "10ms"}, nil, `s.signalBefore: "10ms" is less than 1s`},
		"not before the end of ttl":     {AllocationSpec{Command: work, Signal: "USR1", TTL: "60s"}, nil, "s.signalBefore: 1m0s is not less than the ttl of 1m0s"},
		"not before the deadline":       {AllocationSpec{Command: work, Signal: "USR1", SignalBefore: "1h"}, &minute, "s.signalBefore: 1h0m0s is not less than the 60 s of spec.activeDeadlineSeconds"},
		"less than a deadline of a day": {AllocationSpec{Command: work, Signal: "USR1", SignalBefore: "1h"}, ref(int64(86400)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if s := checkSignal("s", &c.spec, c.deadline); s != nil {
				got = s.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the answer is %q, want %q", got, c.want)
			}
		})
	}
	s := AllocationSpec{Signal: "USR2", SignalBefore: "90s"}
	if number, before := s.EndSignal(); number != 12 || before != 90*time.Second {
		t.Errorf("signal %d, %s before", number, before)
	}
}

func ref[T any](v T) *T { return &v }

func TestNamesOfSignals(t *testing.T) {
	for text, want := range map[string]string{"USR1": "USR1", "sigterm": "TERM", "SIGHUP": "HUP", "KILL": "", "": "", "SIG": ""} {
		if got, known := SignalName(text, 0); got != want || known != (want != "") {
			t.Errorf("%q is %q, %t, want %q", text, got, known, want)
		}
	}
	if got, known := SignalName("12", 12); got != "USR2" || !known {
		t.Errorf("12 is %q", got)
	}
}
