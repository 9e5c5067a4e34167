package lead

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// fault is how a node has failed an attempt.
type fault string

const (
	faultSilent     fault = "silent"     // no vote within the budget
	faultRefused    fault = "refused"    // a No, although the view had room
	faultWrongVote  fault = "wrong_vote" // a vote for something that was not asked
	faultUnregister fault = "registered" // a vote of another registration than the store's
)

// Limits of a breaker.
const (
	tolerated  = 3 // failures in a row that open it
	firstBreak = time.Second
	lastBreak  = time.Minute
	// slowBreak is how long a node is the last choice that has not voted within
	// a quarter of the budget, the first time.
	slowBreak = 5 * time.Second
	// LoudBreak is how long a node is the last choice after its messages had to
	// wait because it says nothing new without end: its vote would wait as well.
	LoudBreak = 5 * time.Second
)

// breaker follows one node's answers to reserves. It is closed (the zero
// value); open until a time; or half-open after that: one attempt may try the
// node, and no second one meanwhile. A commit with a vote that came in time
// closes it, another failure opens it for twice as long. A node that is merely
// slow opens it as well, and is no suspect for that.
//
// Invariant: trips > 0 only while until is set; probe is set only after until.
type breaker struct {
	failures int // in a row
	faults   map[fault]int
	trips    int // in a row
	slows    int // in a row
	until    time.Time
	probe    resource.TxID
}

// trippedAt reports whether the node is the last choice.
func (b *breaker) trippedAt(now time.Time) bool {
	return !b.until.IsZero() && (now.Before(b.until) || b.probe != "")
}

// failed counts a failure, and reports whether it has opened the breaker. While
// it is open, failures of attempts that began before are no news.
func (b *breaker) failed(now time.Time, tx resource.TxID, f fault) bool {
	b.failures++
	if b.faults == nil {
		b.faults = map[fault]int{}
	}
	b.faults[f]++
	probed := b.probe != "" && b.probe == tx
	if b.failures < tolerated && !probed || !probed && b.trippedAt(now) && b.trips > 0 {
		return false
	}
	b.probe = ""
	if until := now.Add(min(firstBreak<<min(b.trips, 10), lastBreak)); until.After(b.until) {
		b.until = until
	}
	b.trips++
	return true
}

// slow makes the node the last choice for a while, because of an attempt that
// waits for its vote.
func (b *breaker) slow(now time.Time, tx resource.TxID) {
	if !b.trippedAt(now) || b.probe == tx {
		b.until, b.probe = now.Add(min(slowBreak<<min(b.slows, 10), lastBreak)), ""
		b.slows++
	}
}

// recordSuccess closes the breaker: an attempt has committed for which the node voted
// in time. It reports whether the breaker was open for failures.
func (b *breaker) recordSuccess() bool {
	was := b.trips > 0
	*b = breaker{}
	return was
}

// beginTry notes that an attempt begins there: once it is half-open, that one is
// the probe.
func (b *breaker) beginTry(now time.Time, tx resource.TxID) {
	if !b.until.IsZero() && !b.trippedAt(now) {
		b.probe = tx
	}
}

// abandonTry notes that an attempt has ended without a verdict on the node.
func (b *breaker) abandonTry(tx resource.TxID) {
	if b.probe == tx {
		b.probe = ""
	}
}

// String lists the failures, for people.
func (b *breaker) String() string {
	var parts []string
	for _, f := range []fault{faultSilent, faultRefused, faultWrongVote, faultUnregister} {
		if n := b.faults[f]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[fault]string{
				faultSilent: "not answered in time", faultRefused: "refused although there was room", faultWrongVote: "answered wrongly",
				faultUnregister: "answered under another registration",
			}[f]))
		}
	}
	return fmt.Sprintf("%d reserves in a row failed (%s); the node is the last choice until it answers one", b.failures, strings.Join(parts, ", "))
}

// String says how an attempt failed on the node.
func (f failure) String() string {
	text := map[fault]string{
		faultSilent: "the agent did not answer in time", faultRefused: "the agent refused", faultWrongVote: "the agent answered wrongly",
		faultUnregister: "the agent registered anew meanwhile",
	}[f.fault]
	if f.said != "" {
		text += ": " + f.said
	}
	return text
}
