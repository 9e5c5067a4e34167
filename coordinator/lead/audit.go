package lead

import (
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file notes the person beside each change that a person asks for: in the record
// that a submission creates, and else as a key in the Txn of the change (ADR 49).

// AskedBy is a change that a person asks for: the entry of the change is written with
// it.
type AskedBy struct {
	By *record.Audit
	Request
}

func (r AskedBy) serve(l *Leader, c *call) {
	c.by = r.By
	r.Request.serve(l, c)
}

// actFor has the writes that follow belong to a call, nil for none. The caller calls
// restore when the part of the work is over.
func (l *Leader) actFor(c *call) (restore func()) {
	before := l.acting
	l.acting = c
	return func() { l.acting = before }
}

// made is the person who submits what the call creates. The record has it, so that no
// key is written for it.
func (l *Leader) made() *record.Actor {
	c := l.acting
	if c == nil || c.by == nil {
		return nil
	}
	c.noted = true
	actor := c.by.Actor
	return &actor
}

// noteChangeIn returns the operations of a decision, with the entry of the change that
// it belongs to, and its end. Each write of a change carries the same key until one has
// landed, so that there is one entry of each change, and none of a change that did not
// come about.
func (l *Leader) noteChangeIn(d decision) ([]record.Op, func(txn.Outcome, resource.Revision, error)) {
	c := l.acting
	if c == nil {
		return d.ops, d.done
	}
	ops, carries := d.ops, c.by != nil && !c.noted && len(d.ops) < l.maxOps && len(d.ops) > 0
	if carries {
		if c.entry == nil {
			entry := l.entries.Next(l.now, *c.by)
			c.entry = &entry
		}
		ops = append(slices.Clip(ops), c.entry.Note(l.requestLease, ops))
	}
	return ops, func(o txn.Outcome, rev resource.Revision, err error) {
		if carries && o == txn.Landed {
			c.noted = true
		}
		defer l.actFor(c)()
		d.done(o, rev, err)
	}
}
