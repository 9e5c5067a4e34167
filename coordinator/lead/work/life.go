package work

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/txn"
)

// Write is a Txn about a unit, other than those of the attempt.
type Write uint8

const (
	NoWrite         Write = iota
	WriteCreation         // stores the unit, with its place in the order
	WriteAdoption         // makes the unit and its lost record again
	WriteEndRequest       // stores the request to end the unit of a live attempt
	WriteEnd              // ends a unit without a place
	WriteFailure          // ends a unit without a place as Failed
	WriteChange           // changes the document, or the queue
)

// Life is the state of the life of a unit. The zero value is the life of a unit under creation.
//
// Invariant: see Check.
type Life struct {
	phase   Phase
	removed bool
	misstep string // the first step outside the table of phases

	// ending is the request to end the unit, or nil; durable: the store has the request.
	ending  *txn.ReleaseAsked
	durable bool
	// asker is the call of the request; nil where another leader was asked.
	asker *post.Author
	// asked is the instant of the request, in milliseconds of the leader's clock; 0 where an
	// older version has stored the request.
	asked int64

	writing Write
}

// Take takes a step of the table. stored: the store has the unit. A step outside the table is
// taken as well, and Check names the first.
func (l *Life) Take(s Step, stored bool) {
	next, ok := l.phase.After(s, stored)
	if !ok {
		l.miss(fmt.Sprintf("is %s and cannot be %s", l.phase, s))
	}
	l.phase, l.removed = next, l.removed || s == StepRemoved
}

// miss keeps the first misstep for Check.
func (l *Life) miss(step string) { l.misstep = cmp.Or(l.misstep, step) }

// Restore takes over the phase of a stored unit, or of a unit in a dry run.
func (l *Life) Restore(p api.Phase) { l.phase = PhaseOf(p) }

// Phase is the unit's present phase.
func (l *Life) Phase() Phase { return l.phase }

// Gone reports whether the object was removed.
func (l *Life) Gone() bool { return l.removed }

// AskEnd takes over a request to end the unit, which the store does not have yet. The instant
// is in milliseconds; each Txn about this end writes the instant.
func (l *Life) AskEnd(asked txn.ReleaseAsked, instant int64, asker *post.Author) {
	if l.removed {
		l.miss("is gone and cannot be asked to end")
	}
	l.ending, l.asked, l.asker, l.durable = &asked, instant, asker, false
}

// RestoreEnd takes over a stored request. The instant is in milliseconds, 0 where unknown.
func (l *Life) RestoreEnd(asked txn.ReleaseAsked, instant int64) {
	l.AskEnd(asked, instant, nil)
	l.durable = true
}

// EndAnswered takes over whether the store has the request. A request not in the store is
// dropped: the owner asks again. A dropped request stays dropped.
func (l *Life) EndAnswered(stored bool) {
	if l.durable = stored && l.EndAsked(); !l.durable {
		l.ending, l.asked = nil, 0
	}
}

// Ending is the request to end the unit, or nil.
func (l *Life) Ending() *txn.ReleaseAsked { return l.ending }

// EndAsked reports whether the unit is to end.
func (l *Life) EndAsked() bool { return l.ending != nil }

// EndDurable reports whether the store has the request to end the unit.
func (l *Life) EndDurable() bool { return l.durable }

// Asked is the instant of the request in milliseconds, 0 where unknown.
func (l *Life) Asked() int64 { return l.asked }

// Asker is the call of the request, nil where another leader was asked.
func (l *Life) Asker() *post.Author { return l.asker }

// Begin notes a Txn under way about the unit. A second Txn may begin only beside WriteEndRequest:
// where the unit's attempt has ended, the answer to the request is of no interest.
func (l *Life) Begin(w Write) {
	if l.IsBeingWritten() {
		l.miss(fmt.Sprintf("is being written by Txn %d, and Txn %d cannot begin", l.writing, w))
	}
	l.writing = w
}

// Finish notes the answer to a Txn about the unit.
func (l *Life) Finish(w Write) {
	if l.writing == w {
		l.writing = NoWrite
	}
}

// Writing is the Txn under way about the unit.
func (l *Life) Writing() Write { return l.writing }

// IsBeingWritten reports whether a Txn under way keeps the unit from all other steps.
func (l *Life) IsBeingWritten() bool { return l.writing != NoWrite && l.writing != WriteEndRequest }

// IsBeingAdopted reports whether the Txn for the lost record of the unit is under way. The unit
// is charged already, and has no attempt yet.
func (l *Life) IsBeingAdopted() bool { return l.writing == WriteAdoption }

// Check verifies a life between two inputs.
//
// Invariant: durable only with a request; a removed unit has ended; each write is of a phase
// that allows the write; each step was in the table.
func (l *Life) Check() error {
	var errs []error
	holds := func(ok bool, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s, write %d, end asked %t, gone %t: want %s", l.phase, l.writing, l.EndAsked(), l.removed, want))
		}
	}
	holds(!l.durable || l.EndAsked(), "a request where one is in the store")
	holds(!l.removed || l.phase == Ended, "a removed unit to have ended")
	switch l.writing {
	case NoWrite, WriteChange, WriteFailure:
	case WriteCreation:
		holds(l.phase == Creating, "a new unit to be creating")
	case WriteAdoption:
		holds(l.phase <= Resting, "a unit for adoption to wait")
	case WriteEndRequest, WriteEnd:
		holds(l.EndAsked(), "a request to write")
	}
	if l.misstep != "" {
		errs = append(errs, errors.New(l.misstep))
	}
	return errors.Join(errs...)
}
