package lead

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// This file judges how a node answers Reserve commands. A node that fails them
// is the last choice of placement for a while. A member that fits nowhere else
// still goes there.

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

// tried tells the breakers of an attempt's nodes that it begins.
func (l *Leader) tried(a *attempt) {
	now := l.now
	for _, id := range a.machine.Nodes() {
		n := l.nodes[id]
		n.breaker.beginTry(now, a.machine.ID())
		n.setTripped(now)
	}
}

// watchVotes bounds how long votes are collected. Nodes that have not voted
// within a quarter of that are the last choice for others from then on, so that
// one attempt waits for a node that hangs, and not many.
func (l *Leader) watchVotes(a *attempt) {
	early := l.rules.VoteBudget / 4
	l.setTimer(a, early, func() {
		now := l.now
		for _, id := range a.machine.Nodes() {
			if _, answered := a.machine.Answer(id); !answered {
				a.addLate(id)
				n := l.nodes[id]
				n.breaker.slow(now, a.machine.ID())
				n.setTripped(now)
			}
		}
		l.setBudget(a, l.rules.VoteBudget-early)
	})
}

// recordMissingVotes notes the nodes whose votes have not come when the budget is spent.
func (a *attempt) recordMissingVotes() {
	if !a.machine.Undecided() || a.isPreempting() {
		return
	}
	for _, id := range a.machine.Nodes() {
		if _, answered := a.machine.Answer(id); !answered {
			a.fail(id, faultSilent)
		}
	}
}

// closeBreakers closes the breakers of the nodes that voted in time for an attempt
// which has committed.
func (l *Leader) closeBreakers(a *attempt) {
	now := l.now
	for _, id := range a.machine.Nodes() {
		n := l.nodes[id]
		switch {
		case a.late[id]:
			n.breaker.abandonTry(a.machine.ID())
		case n.breaker.recordSuccess():
			l.out.info("node_answers_again", "node", id)
		}
		n.setTripped(now)
	}
}

// judgeNodes counts the faults of an attempt that was aborted: its unit avoids
// the nodes at fault while others fit, and their breakers count the failure.
func (l *Leader) judgeNodes(a *attempt) {
	now, tx := l.now, a.machine.ID()
	for _, id := range slices.SortedFunc(slices.Values(a.machine.Nodes()), cmp.Compare[resource.NodeID]) {
		n := l.nodes[id]
		f := a.failed[id]
		if f == "" {
			n.breaker.abandonTry(tx)
			n.setTripped(now)
			continue
		}
		a.unit.avoidNode(id)
		a.unit.noteFailure(failure{node: id, fault: f, said: a.said[id]})
		l.out.count(MetricFaults, string(f))
		if n.breaker.failed(now, tx, f) && l.mayLog(n) {
			l.out.warn("node_suspect", "node", id, "fault", string(f), "failures", n.breaker.failures, "until", n.breaker.until)
		}
		n.setTripped(now)
	}
}
