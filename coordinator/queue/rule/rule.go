// Package rule keeps the named queues: the units of each, and the rules of the queue.
// It decides which unit may enter a queue, which unit may be tried now, and which one
// waits for the bound of running members. It places and orders no unit; the order is
// that of package queue.
//
// Pure: no clock, no I/O. One goroutine owns a Book.
package rule

import "github.com/musterd/muster/coordinator/queue"

// Rules are the rules of one queue. The zero value lets everything in, and everything
// start.
type Rules struct {
	Hold   bool // no unit starts
	Closed bool // no new unit enters
	Strict bool // no unit starts before those ahead of it
	// MaxRunning and MaxWaiting bound the members that hold something and the members
	// that wait; 0 = no bound.
	MaxRunning, MaxWaiting int
	// Policy is the placement policy of the queue, "" for the cluster's.
	Policy string
}

// Standing is the part of a unit in its queue.
type Standing uint8

// The standings.
const (
	// Gone: the unit is in no queue.
	Gone Standing = iota
	// Aside: the unit waits, and holds back nobody: it is suspended, its group
	// is not complete, or its job does not let it be tried now: before the instant of its
	// next try, or beyond the parallelism.
	Aside
	// Waits: the unit waits, and under Strict holds back the units behind it.
	Waits
	// Starts: the unit holds something already, and under Strict holds back the units
	// behind it until its start is durable.
	Starts
	// Runs: the unit holds something.
	Runs
)

// waits reports whether the unit has no place yet.
func (s Standing) waits() bool { return s == Aside || s == Waits || s == Starts }

// holds reports whether the members count as running.
func (s Standing) holds() bool { return s == Starts || s == Runs }

// blocks reports whether the unit holds back the units behind it under Strict.
func (s Standing) blocks() bool { return s == Waits || s == Starts }

// Unit is a unit as the rules of its queue see it. Path of the key is unique.
type Unit struct {
	Queue    string
	Key      queue.Key
	Members  int
	Standing Standing
}

// holding is the number of members that hold something.
func (u *Unit) holding() int {
	if !u.Standing.holds() {
		return 0
	}
	return u.Members
}

// holdingIn is holding for one queue.
func (u *Unit) holdingIn(queue string) int {
	if u.Queue != queue {
		return 0
	}
	return u.holding()
}

// Code is the rule that holds a unit back.
type Code uint8

// The codes, in the order in which they are asked.
const (
	Held    Code = iota + 1 // the queue is on hold
	Behind                  // the queue is strict, and Head is ahead of the unit
	Full                    // the members that hold something are at the bound
	TooWide                 // the unit alone is above the bound
)

// Block is the rule that holds a unit back.
type Block struct {
	Code  Code
	Queue string
	Head  string // path, of Behind
	// Running members of Max hold something, and the unit needs Needs: of Full and
	// TooWide.
	Running, Max, Needs int
}

// Count is the members of a queue.
type Count struct{ Waiting, Running int }

// Book is the queues and their units. The zero value is empty.
//
// Invariant: counts and heads follow from the units alone.
type Book struct {
	units  map[string]Unit // by path
	queues map[string]*named
	news   map[string]*News // by queue
}

// named is one queue. A queue without rules and units is forgotten.
type named struct {
	rules Rules
	count Count
	// line has the units that block, in order: kept under Strict alone.
	line queue.Keys
	// waiting has the units that have no place, in order.
	waiting queue.Keys
	units   int
}

// News is the change of a queue since the last call of TakeNews.
type News struct {
	Queue string
	// Changed: the rules are others.
	Changed bool
	// Before is the place of the head before the first change, under Strict; the zero
	// value for none.
	Before queue.Key
	// Freed: fewer members of a unit hold something than before, or the bound of running
	// members is greater, or there is none any more.
	Freed bool
}
