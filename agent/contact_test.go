package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAContactIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := contact{
			boot:    rapid.StringN(1, 40, 60).Draw(t, "boot"),
			at:      time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "at")),
			after:   time.Duration(rapid.Int64Range(0, int64(MaxAssumeDead)).Draw(t, "after")),
			stopped: rapid.Bool().Draw(t, "stopped"),
		}
		data, err := want.encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseContact(data); err != nil || got != want || len(data) != contactSize {
			t.Fatalf("%v, %v in %d bytes, want %v", got, err, len(data), want)
		}
		at, bit := rapid.IntRange(0, contactSize-1).Draw(t, "byte"), rapid.IntRange(0, 7).Draw(t, "bit")
		torn := bytes.Clone(data)
		torn[at] ^= 1 << bit
		if got, err := parseContact(torn); err == nil && got != want {
			t.Fatalf("byte %d is torn, and %v is read", at, got)
		}
	})
}

func FuzzParseContact(f *testing.F) {
	for _, c := range []contact{
		{boot: "b", at: time.Unix(0, 0)}, {boot: "a b/%", at: time.Unix(5, 1), after: time.Minute, stopped: true},
	} {
		data, err := c.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:100])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseContact(data)
		if err != nil {
			return
		}
		again, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseContact(again); err != nil || back != c {
			t.Fatalf("%v becomes %v, %v", c, back, err)
		}
	})
}

// clock is a boot-time clock that a test moves.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

type contactTest struct {
	*testing.T
	dir   string
	clock clock
	*contactState
}

func newContactTest(t *testing.T) *contactTest {
	return &contactTest{T: t, dir: t.TempDir(), clock: clock{time.Unix(3600, 0)}}
}

// start is another process; the one before may have been killed at any moment.
func (s *contactTest) start(boot string, wanted time.Duration) {
	s.Helper()
	if s.contactState != nil {
		if err := s.close(); err != nil {
			s.Fatal(err)
		}
	}
	var err error
	if s.contactState, err = openContactState(s.dir, boot, wanted, func() time.Time { return s.clock.now }, slog.New(slog.DiscardHandler)); err != nil {
		s.Fatal(err)
	}
}

// register is a registration that is answered.
func (s *contactTest) register() { s.registered(s.announce(), s.clock.now) }

// after passes time and expects the phase that follows.
func (s *contactTest) after(d time.Duration, want contactPhase) {
	s.Helper()
	s.clock.pass(d)
	if c, got := s.state(); got != want {
		s.Errorf("%v after the last contact, with a limit of %v: %d, want %d", s.clock.now.Sub(c.at), c.after, got, want)
	}
}

func TestSilenceIsCountedFromTheLastContact(t *testing.T) {
	const limit, long = 5 * time.Minute, time.Hour
	for name, act := range map[string]func(*contactTest){
		"all of it, in steps": func(s *contactTest) {
			s.start("b", limit)
			s.register()
			s.after(limit/2-1, inContact)
			s.after(1, contactLate)
			s.after(limit/2, stopNoticed)
			s.after(stopGrace-1, stopNoticed)
			s.after(1, contactLost)
		},
		"the shortest limit has all of its grace": func(s *contactTest) {
			s.start("b", MinAssumeDead)
			s.register()
			s.after(MinAssumeDead+MinAssumeDead/2, contactLost)
		},
		"a contact begins it anew, from when its heartbeat left": func(s *contactTest) {
			s.start("b", limit)
			s.register()
			s.clock.pass(limit - 1)
			s.kept(s.clock.now.Add(-time.Minute))
			s.kept(s.clock.now.Add(-2 * time.Minute)) // of an answer that is late
			s.after(limit-time.Minute-1, contactLate)
			s.after(1, stopNoticed)
		},
		"never where it is off": func(s *contactTest) {
			s.start("b", 0)
			s.register()
			s.after(1000*time.Hour, inContact)
			if _, err := os.Stat(filepath.Join(s.dir, "contact")); err == nil {
				s.Error("there is a file")
			}
		},
		"a restart goes on": func(s *contactTest) {
			s.start("b", limit)
			s.register()
			s.clock.pass(limit - 1)
			s.start("b", limit)
			s.announce() // and nobody answers
			s.after(1, stopNoticed)
			s.start("b", limit)
			s.after(stopGrace, contactLost)
		},
		"a start of the machine ends it": func(s *contactTest) {
			s.start("b", limit)
			s.register()
			s.clock.pass(long)
			s.start("b2", limit)
			s.after(0, inContact)
			s.announce()
			s.after(limit, stopNoticed)
		},
		"a shorter limit holds from before it is sent": func(s *contactTest) {
			s.start("b", long)
			s.register()
			s.clock.pass(limit)
			s.start("b", limit)
			s.after(0, inContact)
			s.announce()
			s.after(0, stopNoticed)
			s.start("b", long) // put back, while the answer is out
			s.announce()
			s.after(0, stopNoticed)
		},
		"a longer limit, or none, holds once it is registered": func(s *contactTest) {
			for _, next := range []time.Duration{long, 0} {
				s.start("b", limit)
				s.register()
				s.start("b", next)
				if announced := s.announce(); announced != next {
					s.Errorf("announces %v, want %v", announced, next)
				}
				s.after(limit, stopNoticed)
				s.register()
				s.after(limit, inContact)
			}
		},
		"a file that is torn counts as long ago": func(s *contactTest) {
			if err := os.WriteFile(filepath.Join(s.dir, "contact"), []byte("muster-contact 1 b"), 0o600); err != nil {
				s.Fatal(err)
			}
			for _, wanted := range []time.Duration{limit, 0} {
				s.start("b", wanted)
				s.after(0, contactLost)
			}
			s.register()
			s.after(0, inContact)
		},
		"no file, and the journal is new: long ago": func(s *contactTest) {
			s.start("b", limit)
			s.wiped()
			s.after(0, contactLost)
			s.register()
			s.after(0, inContact)
		},
		"no file, and the journal is not new: it begins when it is announced": func(s *contactTest) {
			s.start("b", limit)
			s.after(long, inContact)
			s.announce()
			s.after(limit, stopNoticed)
		},
		"what cannot be written is not announced": func(s *contactTest) {
			s.start("b", limit)
			s.path = filepath.Join(s.dir, "nowhere", "contact")
			if announced := s.announce(); announced != 0 {
				s.Errorf("announces %v", announced)
			}
			s.after(long, inContact)
		},
		"that something is stopped is remembered until all is back": func(s *contactTest) {
			s.start("b", limit)
			s.register()
			s.stop()
			s.kept(s.clock.now)
			s.start("b", limit)
			if c, _ := s.state(); !c.stopped {
				s.Error("it is forgotten")
			}
			s.resumed()
			s.start("b", limit)
			if c, _ := s.state(); c.stopped {
				s.Error("it is not over")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newContactTest(t)
			act(s)
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAllIsStoppedWithinOneAndAHalfTimesTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := contact{at: time.Unix(0, 0), after: time.Duration(rapid.Int64Range(int64(MinAssumeDead), int64(MaxAssumeDead)).Draw(t, "limit"))}
		if phase := c.phase(c.at.Add(c.after - 1)); phase >= stopNoticed {
			t.Errorf("%v: noticed early", c.after)
		}
		if phase := c.phase(c.at.Add(c.after + c.after/2 - lookEvery)); c.after > MinAssumeDead+2*lookEvery && phase != contactLost {
			t.Errorf("%v: not stopped a look before 1.5 times of it", c.after)
		}
	})
}
