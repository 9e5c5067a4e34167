// Package breaker keeps, for one node, how its agent answers Reserve commands: whether
// the node is the last choice of placement, and until when. It knows neither the attempts
// nor the clock: the leader passes each event with its time.
package breaker

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// Fault is how a node has failed an attempt. Its text is a label of metrics.
type Fault string

// The faults of a node.
const (
	Silent       Fault = "silent"     // no vote within the budget
	Refused      Fault = "refused"    // a No, although the view had room
	WrongVote    Fault = "wrong_vote" // a vote for something that was not asked
	Unregistered Fault = "registered" // a vote of another registration than the store's
)

// Limits of a breaker.
const (
	tolerated  = 3 // failures in a row that open it
	firstBreak = time.Second
	lastBreak  = time.Minute
	// slowBreak is how long a node is the last choice that has not voted within
	// a quarter of the budget, the first time.
	slowBreak = 5 * time.Second
)

// Breaker follows one node's answers to reserves. It is closed (the zero
// value); open until a time; or half-open after that: one attempt may try the
// node, and no second one meanwhile. A commit with a vote that came in time
// closes it, another failure opens it for twice as long. A node that is merely
// slow opens it as well, and is no suspect for that.
//
// Invariant: trips > 0 only while until is set; probe is set only after until.
type Breaker struct {
	failures int // in a row
	faults   map[Fault]int
	trips    int // in a row
	slows    int // in a row
	until    time.Time
	probe    resource.TxID
}

// IsSuspect reports whether failures have opened the breaker, and not slowness alone.
func (b *Breaker) IsSuspect() bool { return b.trips > 0 }

// Failures is the number of failures in a row.
func (b *Breaker) Failures() int { return b.failures }

// Until is when the breaker is half-open; zero while it is closed.
func (b *Breaker) Until() time.Time { return b.until }

// TrippedAt reports whether the node is the last choice.
func (b *Breaker) TrippedAt(now time.Time) bool {
	return !b.until.IsZero() && (now.Before(b.until) || b.probe != "")
}

// Failed counts a failure, and reports whether it has opened the breaker. While
// it is open, failures of attempts that began before are no news.
func (b *Breaker) Failed(now time.Time, tx resource.TxID, f Fault) bool {
	b.failures++
	if b.faults == nil {
		b.faults = map[Fault]int{}
	}
	b.faults[f]++
	probed := b.probe != "" && b.probe == tx
	if b.failures < tolerated && !probed || !probed && b.TrippedAt(now) && b.trips > 0 {
		return false
	}
	b.probe = ""
	if until := now.Add(min(firstBreak<<min(b.trips, 10), lastBreak)); until.After(b.until) {
		b.until = until
	}
	b.trips++
	return true
}

// Slow makes the node the last choice for a while, because of an attempt that
// waits for its vote.
func (b *Breaker) Slow(now time.Time, tx resource.TxID) {
	if !b.TrippedAt(now) || b.probe == tx {
		b.until, b.probe = now.Add(min(slowBreak<<min(b.slows, 10), lastBreak)), ""
		b.slows++
	}
}

// RecordSuccess closes the breaker: an attempt has committed for which the node voted
// in time. It reports whether the breaker was open for failures.
func (b *Breaker) RecordSuccess() bool {
	was := b.trips > 0
	*b = Breaker{}
	return was
}

// BeginTry notes that an attempt begins there: once it is half-open, that one is
// the probe.
func (b *Breaker) BeginTry(now time.Time, tx resource.TxID) {
	if !b.until.IsZero() && !b.TrippedAt(now) {
		b.probe = tx
	}
}

// AbandonTry notes that an attempt has ended without a verdict on the node.
func (b *Breaker) AbandonTry(tx resource.TxID) {
	if b.probe == tx {
		b.probe = ""
	}
}

// String lists the failures, for people.
func (b *Breaker) String() string {
	var parts []string
	for _, f := range []Fault{Silent, Refused, WrongVote, Unregistered} {
		if n := b.faults[f]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[Fault]string{
				Silent: "not answered in time", Refused: "refused although there was room", WrongVote: "answered wrongly",
				Unregistered: "answered under another registration",
			}[f]))
		}
	}
	return fmt.Sprintf("%d reserves in a row failed (%s); the node is the last choice until it answers one", b.failures, strings.Join(parts, ", "))
}

// Sentence is the fault in words for people.
func (f Fault) Sentence() string {
	return map[Fault]string{
		Silent: "the agent did not answer in time", Refused: "the agent refused", WrongVote: "the agent answered wrongly",
		Unregistered: "the agent registered anew meanwhile",
	}[f]
}
