// Package pressure decides from readings of a host's memory whether the host is
// short of it, with hysteresis: a shortage begins at once and ends when the
// readings have been good for a while. It reads nothing (agent/usage does) and
// refuses nothing (agent/ledger does).
//
// Sources: Documentation/accounting/psi.rst and the field MemAvailable in
// Documentation/filesystems/proc.rst of the Linux kernel.
package pressure

import (
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
)

// Percent is a share in hundredths of a percent: 1234 is 12.34 %.
type Percent int

// String returns e.g. "12.34 %".
func (p Percent) String() string { return fmt.Sprintf("%d.%02d %%", p/100, p%100) }

// Reading is one look at a host's memory.
type Reading struct {
	// HasStall says that the kernel measures stalls (PSI). Without it Available
	// decides.
	HasStall bool
	// Stall is the share of the last ten seconds in which all tasks that were not
	// idle waited for memory: avg10 of the line "full".
	Stall Percent
	// Available is what new work could take without swapping, of Total.
	Available, Total resource.Bytes
}

// Policy says when a host is short of memory. The zero value finds no shortage.
type Policy struct {
	// Stall begins a shortage where the kernel measures stalls; the shortage ends
	// below half of it.
	Stall Percent
	// Available, as a share of the total, begins a shortage at or below it where
	// the kernel measures no stalls; the shortage ends above twice as much.
	Available Percent
	// Clear is the time for which readings must be good until the shortage ends.
	Clear time.Duration
}

// State is what readings have led to. The zero value is a host without a
// shortage.
//
// Invariant: while Short is false, Good is zero.
type State struct {
	Short bool
	// Good is the beginning of the good readings during a shortage, zero while the
	// last one was not good.
	Good time.Time
	Last Reading
}

// Observe returns the state after one more reading. now never goes back.
func (p Policy) Observe(s State, now time.Time, r Reading) State {
	s.Last = r
	switch {
	case p.begins(r):
		s.Short, s.Good = true, time.Time{}
	case !s.Short:
	case !p.good(r):
		s.Good = time.Time{}
	case s.Good.IsZero():
		s.Good = now
	}
	if s.Short && !s.Good.IsZero() && now.Sub(s.Good) >= p.Clear {
		s.Short, s.Good = false, time.Time{}
	}
	return s
}

// begins reports whether a reading begins a shortage, or keeps one up.
func (p Policy) begins(r Reading) bool {
	if r.HasStall {
		return p.Stall > 0 && r.Stall >= p.Stall
	}
	return p.Available > 0 && r.Total > 0 && r.available() <= p.Available
}

// good reports whether a reading is far enough from a shortage to end one.
func (p Policy) good(r Reading) bool {
	if r.HasStall {
		return 2*r.Stall < p.Stall
	}
	return r.available() > 2*p.Available
}

// available is the share of the memory that is available, rounded down.
func (r Reading) available() Percent {
	if r.Total <= 0 {
		return 0
	}
	share := r.Available / max(1, r.Total/10000) // at most MaxMemory: no overflow
	return Percent(min(share, 10000))
}

// Reason is the reason of the node's condition MemoryPressure.
func (s State) Reason() string {
	switch {
	case !s.Short:
		return "MemorySuffices"
	case s.Last.HasStall:
		return "TasksStall"
	}
	return "LittleAvailable"
}

// Explain says in a sentence with numbers why the host is short of memory, and
// when the shortage ends.
func (p Policy) Explain(s State) string {
	if s.Last.HasStall {
		return fmt.Sprintf("all tasks waited for memory during %s of the last 10 s (full avg10 of /proc/pressure/memory); from %s on the node takes no new work, until it has stayed below %s for %s; %s",
			s.Last.Stall, p.Stall, p.Stall/2, p.Clear, s.Last.amounts())
	}
	return fmt.Sprintf("%s, %s (the kernel measures no stalls); at %s and less the node takes no new work, until it has stayed above %s for %s",
		s.Last.amounts(), s.Last.available(), p.Available, 2*p.Available, p.Clear)
}

func (r Reading) amounts() string {
	return fmt.Sprintf("%d of %d MiB are available", r.Available>>20, r.Total>>20)
}
