package decisions

import (
	"fmt"
	"slices"
	"strings"
)

// History collects what a log says about one unit, or all units of one name.
type History struct {
	name    string
	Moments []Moment
}

// Found reports whether anything is said about the unit.
func (h *History) Found() bool {
	return slices.ContainsFunc(h.Moments, func(e Moment) bool { return e.Unit != "" })
}

// Moment is one thing that happened to a unit, or to all.
type Moment struct {
	At       int64  `json:"at,omitempty"` // Unix milliseconds
	File     string `json:"file"`
	Line     int    `json:"line"`
	Unit     string `json:"unit,omitempty"`
	What     string `json:"what"`
	Position int    `json:"position,omitempty"` // in the order at that moment, 0 where it is not in it
}

// Follow returns what the checker reads about a unit from now on: by its path
// ("ml/alloc/train/0"), or by namespace and name ("ml/train").
func (c *Checker) Follow(name string) *History {
	c.history = &History{name: name}
	return c.history
}

// Matches reports whether a unit's path is what a name means.
func Matches(name, path string) bool {
	if name == path {
		return true
	}
	parts := strings.Split(path, "/")
	return len(parts) == 4 && name == parts[0]+"/"+parts[2]
}

// before looks at a record before it is replayed, when the order still is as
// the record found it.
func (h *History) before(c *Checker, r *Record) {
	tell := func(unit, what string) {
		if !Matches(h.name, unit) {
			return
		}
		e := Moment{At: r.At, File: c.file, Line: c.line, Unit: unit, What: what}
		if u := c.unit(unit); u != nil {
			e.Position = u.Position() + 1
		}
		h.Moments = append(h.Moments, e)
	}
	switch {
	case r.State != nil && r.State.Begins:
		for _, w := range r.State.Waiting {
			tell(w.Unit, "a term begins: it waits")
		}
	case r.Restored != nil:
		h.Moments = append(h.Moments, Moment{At: r.At, File: c.file, Line: c.line, What: r.Restored.String()})
	case r.Wait != nil:
		tell(r.Wait.Unit, "comes into the order")
	case r.Skip != nil:
		h.skipped(c, r.Skip, tell)
	case r.Offer != nil:
		h.offered(c, r.Offer, tell)
	case r.Hold != nil:
		tell(r.Hold.Unit, "passed over: "+r.Hold.Evidence.String())
	case r.Sleep != nil:
		h.slept(c, r.Sleep, tell)
	case r.Leave != nil:
		tell(r.Leave.Unit, "leaves the order")
	case r.Place != nil:
		h.placed(r.Place, tell)
	case r.Commit != nil:
		tell(r.Commit.Unit, fmt.Sprintf("committed at revision %d as %s", r.Commit.Revision, r.Commit.Tx))
	case r.Abort != nil:
		tell(c.inFlight[r.Abort.Tx].Unit, fmt.Sprintf("%s came to nothing", r.Abort.Tx))
	case r.End != nil:
		tell(r.End.Unit, strings.TrimSuffix(fmt.Sprintf("%s ended: %s", r.End.Tx, r.End.Reason), ": "))
	}
}

// String says it for people.
func (r *Restored) String() string {
	text := "the store was restored from a backup"
	if r.Before > 0 && r.After > 0 {
		text += fmt.Sprintf(": it was at revision %d and is at %d without what was written up to then", r.Before, r.After)
	}
	text += fmt.Sprintf("; %s noticed it, in term %d", r.By, r.Epoch)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

func (h *History) skipped(c *Checker, s *Skip, tell func(unit, what string)) {
	u := c.unit(s.First)
	for n := max(1, s.Count); u != nil && n > 0; n-- {
		tell(u.Key().Path, "passed over: "+s.Evidence.String())
		u = u.Next()
	}
}

// offered says that a unit joins a class that sleeps.
func (h *History) offered(c *Checker, o *Offer, tell func(unit, what string)) {
	if to := c.room.classes[o.Class]; to != nil && to.sleep != nil && to.units.Len() > 0 {
		tell(o.Unit, fmt.Sprintf("passed over with class %d: %s", o.Class, to.words))
	}
}

// slept says that the class of units has failed; that it has failed again for the
// same is not worth a line.
func (h *History) slept(c *Checker, s *Sleep, tell func(unit, what string)) {
	of := c.room.classes[s.Class]
	if of == nil || of.words != nil && of.words.Code == s.Code && s.Subject == "" && s.Detail == "" {
		return
	}
	for u := range of.units.All() {
		tell(u.Key().Path, fmt.Sprintf("passed over with class %d: %s", s.Class, s))
	}
}

func (h *History) placed(p *Place, tell func(unit, what string)) {
	if p.Adopted {
		tell(p.Unit, fmt.Sprintf("goes on as %s, which an earlier leader began", p.Tx))
		return
	}
	what := fmt.Sprintf("placed as %s, ahead of it %s", p.Tx, p.Ahead)
	if p.Generation > 0 { // of format 1
		what = fmt.Sprintf("placed as %s at generation %d, ahead of it %s", p.Tx, p.Generation, p.Ahead)
	}
	for _, v := range p.Victims {
		what += fmt.Sprintf("; %s of priority %d gives way", v.Unit, v.Priority)
		tell(v.Unit, fmt.Sprintf("gives way to %s", p.Unit))
	}
	tell(p.Unit, what)
}
