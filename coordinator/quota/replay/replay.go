// Package replay plays recorded scenarios of quota trees and forests against
// package quota and reports where the outcome differs from the recording
// (format: vectors/quota/README.md). It decides nothing about quota.
package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Mismatch is one difference between a recording and what happened.
type Mismatch struct {
	Scenario string
	// Op is the position of the operation from 0, or -1 for the final state
	// and for a scenario that cannot be played.
	Op   int
	Call string // such as "allocate c3"
	// Field is the part of the expectation, such as "preempted".
	Field     string
	Want, Got string
}

// String returns e.g. "tree-1: op 3 (allocate c3): aNode: want {"T":"n1"}, got {"T":"n2"}".
func (m Mismatch) String() string {
	where := m.Scenario
	if m.Op >= 0 {
		where += fmt.Sprintf(": op %d (%s)", m.Op, m.Call)
	}
	return fmt.Sprintf("%s: %s: want %s, got %s", where, m.Field, m.Want, m.Got)
}

// Run plays every scenario of a stream, one JSON object a line, and calls
// report with each mismatch. A scenario that has one has failed. The error is
// of reading the stream, or names the line that is no scenario.
func Run(r io.Reader, report func(Mismatch)) (passed, failed int, err error) {
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, readErr := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var s scenario
			d := json.NewDecoder(bytes.NewReader(line))
			if err := d.Decode(&s); err != nil {
				return passed, failed, fmt.Errorf("line %d: %w", number, err)
			}
			if play(&s, report) {
				passed++
			} else {
				failed++
			}
		}
		if readErr == io.EOF {
			return passed, failed, nil
		}
		if readErr != nil {
			return passed, failed, fmt.Errorf("line %d: %w", number, readErr)
		}
	}
}

// play plays one scenario and reports whether it passed.
func play(s *scenario, report func(Mismatch)) bool {
	passed := true
	fail := func(m Mismatch) {
		passed = false
		m.Scenario = s.ID
		report(m)
	}
	p, err := load(s)
	if err != nil {
		fail(Mismatch{Op: -1, Field: "trees", Want: "a scenario", Got: err.Error()})
		return false
	}
	for i := range s.Ops {
		op := &s.Ops[i]
		call := op.Op + " " + op.ID + op.Mode + op.Node
		p.state = p.m.AppendState(p.state[:0])
		before := p.positions()
		got, err := p.do(op)
		if err != nil {
			fail(Mismatch{Op: i, Call: call, Field: "op", Want: "an operation", Got: err.Error()})
			return false
		}
		p.observe(op, before, &got)
		compare(&op.Expect, &got, func(field string, want, have any) {
			fail(Mismatch{Op: i, Call: call, Field: field, Want: show(want), Got: show(have)})
		})
		if broken := p.broken(op, &got); broken != "" {
			fail(Mismatch{Op: i, Call: call, Field: "state", Want: "sound", Got: broken})
		}
	}
	p.compareFinal(func(node string, want, have any) {
		fail(Mismatch{Op: -1, Field: "final " + node, Want: show(want), Got: show(have)})
	})
	return passed
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
