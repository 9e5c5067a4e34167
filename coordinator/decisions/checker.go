package decisions

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// Checker replays a log and verifies it. Lines come file by file, the files of
// one coordinator in the order of their names. The zero value is not usable;
// see NewChecker.
type Checker struct {
	report  Report
	file    string
	line    int
	version int // of the file

	// known: since a State, no record is missing.
	known bool
	seq   uint64 // of the last record, 0 at the beginning
	at    int64
	epoch resource.Epoch
	order order
	keys  map[string]queue.Key // of those in order
	room  room
	// Of format 1. generation is that of the last record; after something ended at a
	// generation a placement must be of a later one, at least floor.
	generation, floor uint64

	inFlight map[resource.TxID]InFlight
	running  map[string]resource.TxID // units committed since, as far as known
	priority map[string]int32         // of these
	decided  map[resource.TxID]fate
	again    []int // violations of this term that a Restored explains

	history *History // nil: nobody asks
}

// fate is what became of a transaction: "committed", "aborted", "ended", and in
// which of the terms read.
type fate struct {
	what string
	term int
}

// NewChecker returns a checker that has read nothing.
func NewChecker() *Checker {
	c := &Checker{version: Version, report: Report{Notes: []Note{}, Violations: []Violation{}}, decided: map[resource.TxID]fate{}}
	c.forget()
	return c
}

// forget drops what the log no longer says.
func (c *Checker) forget() {
	c.known = false
	c.order = order{}
	c.keys = map[string]queue.Key{}
	c.room = newRoom()
	c.inFlight = map[resource.TxID]InFlight{}
	c.running = map[string]resource.TxID{}
	c.priority = map[string]int32{}
	c.generation, c.floor = 0, 0
}

// Report returns what was found so far.
func (c *Checker) Report() *Report { return &c.report }

// File begins a file.
func (c *Checker) File(name string) {
	c.file, c.line = name, 0
	c.report.Files++
}

// Line takes the next line of the file. A line that does not end in a newline
// is what a crash left of one.
func (c *Checker) Line(text []byte) {
	c.line++
	body, whole := bytes.CutSuffix(text, []byte("\n"))
	switch {
	case !whole:
		c.note("the file ends in the middle of a line of %d bytes", len(body))
	case c.line == 1:
		version, err := ReadHeader(body)
		if c.version = version; err != nil {
			c.violate(RuleFormat, "", "%v", err)
			c.version = Version
		}
	default:
		r, err := Decode(c.version, body)
		if err != nil {
			c.violate(RuleFormat, "", "%v", err)
			c.forget()
			c.seq++ // it stood for one
			return
		}
		c.take(r)
	}
}

// Record takes a record of the newest format that is not from a file; its line is
// its number.
func (c *Checker) Record(r Record) {
	c.line++
	c.version = Version
	if err := r.check(Version); err != nil {
		c.violate(RuleFormat, "", "%v", err)
		return
	}
	c.take(r)
}

func (c *Checker) violate(rule Rule, unit, text string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{c.file, c.line, rule, unit, fmt.Sprintf(text, args...)})
}

func (c *Checker) note(text string, args ...any) {
	c.report.Notes = append(c.report.Notes, Note{c.file, c.line, fmt.Sprintf(text, args...)})
}

func (c *Checker) take(r Record) {
	c.report.Records++
	if r.At > 0 {
		c.at = r.At
	}
	if c.history != nil {
		c.history.before(c, &r)
	}
	begins := r.State != nil && r.State.Begins
	if !begins {
		c.follows(&r)
	}
	c.seq = r.Seq
	switch {
	case r.State != nil:
		c.state(r.State)
	case r.Wait != nil:
		c.wait(r.Wait)
	case r.Skip != nil:
		c.skip(r.Skip)
	case r.Class != nil, r.Node != nil, r.Offer != nil, r.Hold != nil, r.Sleep != nil, r.Event != nil:
		c.takeClasses(&r)
	case r.Leave != nil:
		c.leave(r.Leave)
	case r.Place != nil:
		c.place(r.Place)
	case r.Commit != nil:
		c.commit(r.Commit)
	case r.Abort != nil:
		c.abort(r.Abort)
	case r.End != nil:
		c.end(r.End)
	case r.Restored != nil:
		c.restored(r.Restored)
	}
}

// restored forgets what was decided before this term, and what was held against
// it for that. The order began anew with the term.
func (c *Checker) restored(r *Restored) {
	c.report.Restored++
	c.note("the store was restored from a backup, as %s noticed: what was decided before this term may be decided again", r.By)
	maps.DeleteFunc(c.decided, func(_ resource.TxID, f fate) bool { return f.term < c.report.Terms })
	for _, i := range slices.Backward(c.again) {
		c.report.Violations = slices.Delete(c.report.Violations, i, i+1)
	}
	c.again = nil
}

// twice holds against a record that its transaction is decided already.
func (c *Checker) twice(f fate, unit, text string, args ...any) {
	if f.term < c.report.Terms {
		c.again = append(c.again, len(c.report.Violations))
	}
	c.violate(RuleTwice, unit, text, args...)
}

// follows checks that no record is missing before this one.
func (c *Checker) follows(r *Record) {
	if g := r.Gap; g != nil {
		c.report.Lost += g.Lost
		c.note("%d records were lost before this one: what follows cannot be verified up to the next state", g.Lost)
		c.forget()
	}
	switch {
	case r.Seq == c.seq+1, r.Gap != nil && r.Seq > c.seq:
		return
	case c.seq > 0:
		c.violate(RuleSequence, "", "record %d follows record %d", r.Seq, c.seq)
	case r.State != nil:
		c.note("the records before number %d are in a file that is not here", r.Seq)
	default:
		c.note("the records before number %d are in a file that is not here: nothing can be verified up to the next state", r.Seq)
	}
	c.forget()
}

func (c *Checker) state(s *State) {
	if s.Begins {
		c.report.Terms++
		c.again = nil
		c.forget()
	}
	if c.known {
		diff := c.differs(s)
		if diff == "" {
			diff = c.room.differs(s)
		}
		if diff != "" {
			c.violate(RuleState, "", "%s", diff)
		}
	}
	running, priority, floor, room := c.running, c.priority, c.floor, c.room
	known := c.known
	c.forget()
	if known { // what runs goes on; a State does not list it
		c.running, c.priority, c.floor = running, priority, floor
		c.room.owed, c.room.labels = room.owed, room.labels
	} else {
		room = newRoom()
	}
	c.known, c.epoch, c.generation = true, s.Epoch, s.Generation
	c.takeOrder(s, &room)
	for _, f := range s.InFlight {
		c.inFlight[f.Tx] = f
	}
}

// takeOrder takes over the order and the classes of a State; old are the classes
// before it.
func (c *Checker) takeOrder(s *State, old *room) {
	keys := make([]queue.Key, len(s.Waiting))
	for i, w := range s.Waiting {
		keys[i] = w.key(w.Unit)
		c.keys[w.Unit] = keys[i]
	}
	c.order = newOrder(keys)
	for i := range s.Classes {
		c.room.define(&s.Classes[i].Class)
	}
	u := c.order.units.At(0)
	for _, w := range s.Waiting {
		switch {
		case w.Why > 0:
			c.order.explain(u, &s.Evidence[w.Why-1])
		case w.Class > 0:
			c.offerTo(u, c.room.classes[w.Class])
		}
		u = u.Next()
	}
	for i := range s.Classes {
		c.room.restore(&s.Classes[i], old.classes[s.Classes[i].ID], c.seq)
	}
}

// differs compares a State with what was replayed.
func (c *Checker) differs(s *State) string {
	if s.Epoch != c.epoch {
		return fmt.Sprintf("epoch %d, it was %d, and no term begins here", s.Epoch, c.epoch)
	}
	if len(s.Waiting) != c.order.units.Len() || len(s.InFlight) != len(c.inFlight) {
		return fmt.Sprintf("%d wait and %d are in flight; by the records before it is %d and %d", len(s.Waiting), len(s.InFlight), c.order.units.Len(), len(c.inFlight))
	}
	u := c.order.units.At(0)
	for i, w := range s.Waiting {
		why := uint8(0)
		switch {
		case w.Why > 0:
			why = s.Evidence[w.Why-1].Why.number()
		case w.Class > 0:
			why = inClass.number()
		}
		if k, known := u.Key(), u.Value(); k != w.key(w.Unit) || known.why != why || known.class != w.Class {
			return fmt.Sprintf("position %d is %s (%s, class %d); by the records before it is %s (%s, class %d)",
				i+1, w.Unit, whys[why], w.Class, k.Path, whys[known.why], known.class)
		}
		u = u.Next()
	}
	for _, f := range s.InFlight {
		if _, found := c.inFlight[f.Tx]; !found {
			return fmt.Sprintf("%s of %s is in flight; by the records before it is not", f.Tx, f.Unit)
		}
	}
	return ""
}

func (c *Checker) wait(w *Wait) {
	if !c.known {
		return
	}
	if _, found := c.keys[w.Unit]; found {
		c.violate(RuleOrder, w.Unit, "it comes into the order, and is in it already")
		return
	}
	k := w.key(w.Unit)
	c.order.insert(k)
	c.keys[w.Unit] = k
}

// unit returns a unit that waits, nil where it does not.
func (c *Checker) unit(path string) *unit {
	k, found := c.keys[path]
	if !found {
		return nil
	}
	return c.order.find(k)
}

func (c *Checker) leave(l *Leave) {
	if !c.known {
		return
	}
	if u := c.unit(l.Unit); u != nil {
		c.room.drop(u)
		c.order.remove(u)
		delete(c.keys, l.Unit)
		return
	}
	c.violate(RuleOrder, l.Unit, "it leaves the order, and is not in it")
}

// named joins a few names of many.
func named(units []string, all int) string {
	text := strings.Join(units, ", ")
	if all > len(units) {
		text += fmt.Sprintf(" and %d more", all-len(units))
	}
	return text
}
