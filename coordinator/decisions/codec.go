package decisions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Version is of the format that is written; versions 1 to 5 are read. Format 3 has
// rules about other units, format 4 has queues and counted resources, format 5 has classes
// that join gangs and classes that would borrow. Header is a file's first line.
const (
	Version = 5
	format  = "muster-decisions"
)

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// Header returns a file's first line, with its newline.
func Header() []byte { return mustLine(header{format, Version}) }

// ReadHeader returns the version that a first line names. It refuses a line of
// something else or of a version that is not read.
func ReadHeader(line []byte) (version int, err error) {
	var h header
	if err := strict(line, &h); err != nil {
		return 0, fmt.Errorf("decisions: first line: %w", err)
	}
	if h.Format != format || h.Version < 1 || h.Version > Version {
		return 0, fmt.Errorf("decisions: first line: format %q version %d: this program reads %q versions 1 to %d", h.Format, h.Version, format, Version)
	}
	return h.Version, nil
}

// Encode returns a record as one line, with its newline.
func Encode(r Record) []byte { return mustLine(r) }

// mustLine encodes what has no value that JSON lacks.
func mustLine(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("decisions: %T: %v", v, err))
	}
	return append(line, '\n')
}

// Decode reads one line of a version. The error names the field and the value that
// is wrong.
func Decode(version int, line []byte) (Record, error) {
	var r Record
	if err := strict(line, &r); err != nil {
		return Record{}, fmt.Errorf("decisions: %w", err)
	}
	if err := r.check(version); err != nil {
		return Record{}, fmt.Errorf("decisions: record %d: %w", r.Seq, err)
	}
	return r, nil
}

// strict decodes exactly one JSON object without unknown fields.
func strict(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(line[d.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("%d bytes after the value", len(rest))
	}
	return nil
}

// part is one of a record's parts.
type part struct {
	name  string
	set   bool
	since int // the first version that has it
	until int // the last one; 0: every later one
	check func() error
}

// parts lists all parts.
func (r *Record) parts(version int) []part {
	return []part{
		{"state", r.State != nil, 1, 0, func() error { return r.State.check(version) }},
		{"class", r.Class != nil, 2, 0, func() error { return r.Class.check(version) }},
		{"node", r.Node != nil, 2, 0, func() error { return r.Node.check() }},
		{"wait", r.Wait != nil, 1, 0, func() error { return want("wait.unit", r.Wait.Unit) }},
		{"offer", r.Offer != nil, 2, 0, func() error { return want("offer.unit", r.Offer.Unit) }},
		{"hold", r.Hold != nil, 2, 0, func() error { return firstOf(want("hold.unit", r.Hold.Unit), r.Hold.Evidence.check(version)) }},
		{"sleep", r.Sleep != nil, 2, 0, func() error { return r.Sleep.check(version) }},
		{"event", r.Event != nil, 2, 0, func() error { return r.Event.check(version) }},
		{"skip", r.Skip != nil, 1, 1, func() error { return r.Skip.check() }},
		{"leave", r.Leave != nil, 1, 0, func() error { return want("leave.unit", r.Leave.Unit) }},
		{"place", r.Place != nil, 1, 0, func() error { return r.Place.check(version) }},
		{"commit", r.Commit != nil, 1, 0, func() error { return r.Commit.check() }},
		{"abort", r.Abort != nil, 1, 0, func() error {
			return firstOf(want("abort.tx", string(r.Abort.Tx)), ofFormat1(version, "abort.generation", r.Abort.Generation > 0))
		}},
		{"end", r.End != nil, 1, 0, func() error {
			return firstOf(want("end.tx", string(r.End.Tx)), want("end.unit", r.End.Unit), ofFormat1(version, "end.generation", r.End.Generation > 0))
		}},
		{"gap", r.Gap != nil, 1, 0, func() error { return r.Gap.check(r.Seq) }},
		{"restored", r.Restored != nil, 1, 0, func() error { return r.Restored.check() }},
	}
}

// check verifies what every record of a version keeps.
func (r *Record) check(version int) error {
	if r.Seq == 0 {
		return fmt.Errorf("seq: 0: want 1 or more")
	}
	var known []string
	n := 0
	var err error
	for _, p := range r.parts(version) {
		has := version >= p.since && (p.until == 0 || version <= p.until)
		if has {
			known = append(known, p.name)
		}
		if !p.set {
			continue
		}
		if !has {
			return fmt.Errorf("%s: not a record of format %d", p.name, version)
		}
		n++
		err = firstOf(err, p.check())
	}
	switch {
	case n > 1:
		return fmt.Errorf("more than one of %s is set", strings.Join(known, ", "))
	case n == 0:
		return fmt.Errorf("none of %s is set", strings.Join(known, ", "))
	}
	return err
}

// check verifies evidence of a unit that is held; in format 1, of any unit.
func (e *Evidence) check(version int) error {
	switch {
	case e.Why == "" || e.Why == inClass || !slices.Contains(whys[:], e.Why) || version > 1 && e.Why.ofGeneration() || version < 4 && e.Why == AwaitsQueue:
		return fmt.Errorf("why: %q: not a kind of evidence", e.Why)
	case (e.Generation > 0) != e.Why.ofGeneration():
		return fmt.Errorf("generation: %d: evidence %q has one exactly if it is of a generation", e.Generation, e.Why)
	case (e.Until > 0) != (e.Why == InBackoff):
		return fmt.Errorf("until: %d: set exactly for a backoff, this is %q", e.Until, e.Why)
	}
	return nil
}

func (s *State) check(version int) error {
	if err := firstOf(ofFormat1(version, "state.generation", s.Generation > 0), s.checkClasses(version)); err != nil {
		return err
	}
	for i := range s.Evidence {
		if err := s.Evidence[i].check(version); err != nil {
			return fmt.Errorf("state.evidence[%d]: %w", i, err)
		}
	}
	for i, w := range s.Waiting {
		if w.Why < 0 || w.Why > len(s.Evidence) {
			return fmt.Errorf("state.waiting[%d].why: %d: there are %d", i, w.Why, len(s.Evidence))
		}
		if w.Class != 0 && (w.Why != 0 || !s.has(w.Class)) {
			return fmt.Errorf("state.waiting[%d].class: %d, and why is %d: want one of the state's classes, or evidence", i, w.Class, w.Why)
		}
		if err := firstOf(want("unit", w.Unit), ofFormat1(version, "tried", w.Tried > 0)); err != nil {
			return fmt.Errorf("state.waiting[%d].%w", i, err)
		}
		if i > 0 && !before(s.Waiting[i-1].key(s.Waiting[i-1].Unit), w.key(w.Unit)) {
			return fmt.Errorf("state.waiting[%d]: %s does not come after %s", i, w.Unit, s.Waiting[i-1].Unit)
		}
	}
	for i, f := range s.InFlight {
		if err := firstOf(want("tx", string(f.Tx)), want("unit", f.Unit), f.Kind.check()); err != nil {
			return fmt.Errorf("state.inFlight[%d].%w", i, err)
		}
	}
	return nil
}

// has reports whether the state has a class, of which the IDs ascend.
func (s *State) has(class int) bool {
	_, found := slices.BinarySearchFunc(s.Classes, class, func(c StateClass, id int) int { return cmp.Compare(c.ID, id) })
	return found
}

func (s *State) checkClasses(version int) error {
	if version < 2 && len(s.Classes) > 0 {
		return fmt.Errorf("state.classes: %d: format %d has none", len(s.Classes), version)
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		if i > 0 && c.ID <= s.Classes[i-1].ID {
			return fmt.Errorf("state.classes[%d].id: %d does not come after %d", i, c.ID, s.Classes[i-1].ID)
		}
		err := c.check(version)
		if err == nil && c.Sleep != nil {
			if err = c.Sleep.check(version); err == nil && c.Sleep.Class != c.ID {
				err = fmt.Errorf("sleep.class: %d: want %d", c.Sleep.Class, c.ID)
			}
		}
		if err != nil {
			return fmt.Errorf("state.classes[%d]: %w", i, err)
		}
	}
	return nil
}

func (p *Place) check(version int) error {
	if err := ofFormat1(version, "place: generation, fresh or stale", p.Generation > 0 || p.Fresh != 0 || len(p.Stale) > 0); err != nil {
		return err
	}
	if p.Position < 1 {
		return fmt.Errorf("place.position: %d: want 1 or more", p.Position)
	}
	if (len(p.Victims) > 0) != (p.Kind == Preemption || p.Kind == Claim) {
		return fmt.Errorf("place.victims: %d of a placement that is %s", len(p.Victims), p.Kind)
	}
	for i, v := range p.Victims {
		if err := want("unit", v.Unit); err != nil {
			return fmt.Errorf("place.victims[%d].%w", i, err)
		}
	}
	return firstOf(want("place.unit", p.Unit), want("place.tx", string(p.Tx)), p.Kind.check())
}

func (k Kind) check() error {
	if k != Plain && k != Preemption && k != Claim {
		return fmt.Errorf("kind: %q: want plain, preemption or claim", k)
	}
	return nil
}

func (c *Commit) check() error {
	if c.Revision <= 0 {
		return fmt.Errorf("commit.revision: %d: want 1 or more", c.Revision)
	}
	return firstOf(want("commit.tx", string(c.Tx)), want("commit.unit", c.Unit))
}

func (g *Gap) check(seq uint64) error {
	if g.Lost == 0 || g.Lost > seq {
		return fmt.Errorf("gap.lost: %d: want 1 to %d", g.Lost, seq)
	}
	return nil
}

func (r *Restored) check() error {
	if r.Before < 0 || r.After < 0 {
		return fmt.Errorf("restored: before %d, after %d: want 0 or more", r.Before, r.After)
	}
	return want("restored.by", r.By)
}

// ofFormat1 refuses a field that later formats do not have.
func ofFormat1(version int, field string, set bool) error {
	if version > 1 && set {
		return fmt.Errorf("%s: set, and format %d does not have it", field, version)
	}
	return nil
}

func want(field, value string) error {
	if value == "" {
		return fmt.Errorf("%s: empty", field)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
