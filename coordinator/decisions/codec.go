package decisions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Version is of the format. Header is a file's first line.
const (
	Version = 1
	format  = "muster-decisions"
)

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

// Header returns a file's first line, with its newline.
func Header() []byte { return mustLine(header{format, Version}) }

// CheckHeader refuses a first line of something else or of another version.
func CheckHeader(line []byte) error {
	var h header
	if err := strict(line, &h); err != nil {
		return fmt.Errorf("decisions: first line: %w", err)
	}
	if h.Format != format || h.Version != Version {
		return fmt.Errorf("decisions: first line: format %q version %d: this program reads %q version %d", h.Format, h.Version, format, Version)
	}
	return nil
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

// Decode reads one line. The error names the field and the value that is wrong.
func Decode(line []byte) (Record, error) {
	var r Record
	if err := strict(line, &r); err != nil {
		return Record{}, fmt.Errorf("decisions: %w", err)
	}
	if err := r.check(); err != nil {
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

// check verifies what every record keeps.
func (r *Record) check() error {
	if r.Seq == 0 {
		return fmt.Errorf("seq: 0: want 1 or more")
	}
	parts := []struct {
		set   bool
		check func() error
	}{
		{r.State != nil, func() error { return r.State.check() }},
		{r.Wait != nil, func() error { return want("wait.unit", r.Wait.Unit) }},
		{r.Skip != nil, func() error { return r.Skip.check() }},
		{r.Leave != nil, func() error { return want("leave.unit", r.Leave.Unit) }},
		{r.Place != nil, func() error { return r.Place.check() }},
		{r.Commit != nil, func() error { return r.Commit.check() }},
		{r.Abort != nil, func() error { return want("abort.tx", string(r.Abort.Tx)) }},
		{r.End != nil, func() error { return firstOf(want("end.tx", string(r.End.Tx)), want("end.unit", r.End.Unit)) }},
		{r.Gap != nil, func() error { return r.Gap.check(r.Seq) }},
		{r.Restored != nil, func() error { return r.Restored.check() }},
	}
	n := 0
	for _, p := range parts {
		if !p.set {
			continue
		}
		if n++; n > 1 {
			return fmt.Errorf("more than one of state, wait, skip, leave, place, commit, abort, end, gap, restored is set")
		}
		if err := p.check(); err != nil {
			return err
		}
	}
	if n == 0 {
		return fmt.Errorf("none of state, wait, skip, leave, place, commit, abort, end, gap, restored is set")
	}
	return nil
}

func (e *Evidence) check() error {
	switch {
	case e.Why == "" || !slices.Contains(whys[:], e.Why):
		return fmt.Errorf("why: %q: not a kind of evidence", e.Why)
	case (e.Generation > 0) != e.Why.ofGeneration():
		return fmt.Errorf("generation: %d: evidence %q has one exactly if it is of a generation", e.Generation, e.Why)
	case (e.Until > 0) != (e.Why == InBackoff):
		return fmt.Errorf("until: %d: set exactly for a backoff, this is %q", e.Until, e.Why)
	}
	return nil
}

func (s *Skip) check() error {
	one := s.Last == "" && s.Count == 0
	if !one && (s.Last == "" || s.Last == s.First || s.Count < 2) {
		return fmt.Errorf("skip: first %q, last %q, count %d: want a unit, or two and a count of 2 or more", s.First, s.Last, s.Count)
	}
	return firstOf(want("skip.first", s.First), s.Evidence.check())
}

func (s *State) check() error {
	for i := range s.Evidence {
		if err := s.Evidence[i].check(); err != nil {
			return fmt.Errorf("state.evidence[%d]: %w", i, err)
		}
	}
	for i, w := range s.Waiting {
		if w.Why < 0 || w.Why > len(s.Evidence) {
			return fmt.Errorf("state.waiting[%d].why: %d: there are %d", i, w.Why, len(s.Evidence))
		}
		if err := want("unit", w.Unit); err != nil {
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

func (p *Place) check() error {
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
