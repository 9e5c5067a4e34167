package decisions

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Why is a kind of evidence.
type Why string

// The kinds of evidence that may pass over a unit that is held, and Backfilled,
// which is kept for a calendar of starts and admitted nowhere yet.
const (
	InBackoff     Why = "backoff"        // after an attempt that came to nothing
	AwaitsVictims Why = "awaits-victims" // its nominated devices are being cleared
	AwaitsGang    Why = "awaits-gang"    // grows a gang that does not run
	BeingWritten  Why = "being-written"  // a Txn about it is under way
	Backfilled    Why = "backfilled"     // its nominated start does not move
	AwaitsQueue   Why = "awaits-queue"   // its queue is on hold, or strict and others are ahead

	Infeasible Why = "infeasible" // of format 1: no place, at a generation
	OverQuota  Why = "over-quota" // of format 1: not admitted, at a generation

	// inClass is no evidence: the unit shares that of its class.
	inClass Why = "asleep"
)

// whys lists them; the position is their number in a mark, 0 is "not tried".
var whys = [...]Why{"", Infeasible, OverQuota, InBackoff, AwaitsVictims, AwaitsGang, BeingWritten, Backfilled, inClass, AwaitsQueue}

func (w Why) number() uint8 { return uint8(max(0, slices.Index(whys[:], w))) }

// ofGeneration reports whether the evidence, which is of format 1, holds at one
// generation of the view only: once something was freed it must be found again.
func (w Why) ofGeneration() bool { return w == Infeasible || w == OverQuota }

// Evidence is why a unit is passed over that is held.
type Evidence struct {
	Why Why `json:"why"`
	// Subject is the transaction or the unit that is awaited.
	Subject string `json:"subject,omitempty"`
	Detail  string `json:"detail,omitempty"` // with numbers, for people
	Until   int64  `json:"until,omitempty"`  // of a backoff, Unix milliseconds
	// Victims are awaited.
	Victims []string `json:"victims,omitempty"`

	// Generation is of format 1: that of the view at which the evidence was found,
	// where it is of one.
	Generation uint64 `json:"generation,omitempty"`
}

// equals reports whether both say the same.
func (e *Evidence) equals(o *Evidence) bool {
	return e.Why == o.Why && e.Subject == o.Subject && e.Detail == o.Detail && e.Until == o.Until && slices.Equal(e.Victims, o.Victims)
}

// String says it in one line.
func (e *Evidence) String() string {
	var b strings.Builder
	b.WriteString(string(e.Why))
	if e.Generation > 0 {
		fmt.Fprintf(&b, " at generation %d", e.Generation)
	}
	if e.Until > 0 {
		fmt.Fprintf(&b, " until %s", time.UnixMilli(e.Until).UTC().Format("15:04:05.000"))
	}
	for _, part := range []string{e.Subject, e.Detail} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if len(e.Victims) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(e.Victims, ", "))
	}
	return b.String()
}

// Counts are units by evidence.
type Counts struct {
	Untried       int `json:"untried,omitempty"`
	Infeasible    int `json:"infeasible,omitempty"` // of format 1
	OverQuota     int `json:"overQuota,omitempty"`  // of format 1
	InBackoff     int `json:"backoff,omitempty"`
	AwaitsVictims int `json:"awaitsVictims,omitempty"`
	AwaitsGang    int `json:"awaitsGang,omitempty"`
	BeingWritten  int `json:"beingWritten,omitempty"`
	Backfilled    int `json:"backfilled,omitempty"`
	Asleep        int `json:"asleep,omitempty"`      // in classes; of format 2
	AwaitsQueue   int `json:"awaitsQueue,omitempty"` // of format 4
}

// countsOf takes numbers in the order of whys.
func countsOf(n [len(whys)]int) Counts {
	return Counts{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]}
}

func (c Counts) numbers() [len(whys)]int {
	return [len(whys)]int{c.Untried, c.Infeasible, c.OverQuota, c.InBackoff, c.AwaitsVictims, c.AwaitsGang, c.BeingWritten, c.Backfilled, c.Asleep, c.AwaitsQueue}
}

// ofGeneration counts those whose evidence is of a generation.
func (c Counts) ofGeneration() int { return c.Infeasible + c.OverQuota }

// String lists what is not zero: "2 infeasible, 1 backoff".
func (c Counts) String() string {
	var parts []string
	for i, n := range c.numbers() {
		if n > 0 {
			name := string(whys[i])
			if i == 0 {
				name = "untried"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
		}
	}
	if parts == nil {
		return "nobody"
	}
	return strings.Join(parts, ", ")
}
