package lead

import (
	"slices"
	"time"

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

// mostAudited bounds the keys of changes that a term writes in an hour: a tenant that
// submits and deletes without end must not fill the store. Beyond it the entry of a
// change is a line in the log.
const mostAudited = 40_000

// auditing counts the keys of changes of the present hour.
type auditing struct {
	hour  time.Time
	noted int
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
	if carries && !l.mayNote() {
		c.noted = true
		l.out.warn("audit_left_out", "person", c.by.Person, "verb", c.by.Verb, "kind", c.by.Kind, "namespace", c.by.Namespace, "name", c.by.Name,
			"token", c.by.Token, "request_id", c.by.RequestID, "address", c.by.Address, "limit", mostAudited)
		carries = false
	}
	if carries {
		ops = append(slices.Clip(ops), c.by.Note(l.requestLease, ops))
	}
	return ops, func(o txn.Outcome, rev resource.Revision, err error) {
		if carries && o == txn.Landed {
			c.noted = true
		}
		defer l.actFor(c)()
		d.done(o, rev, err)
	}
}

// mayNote counts a key, and reports whether the hour has room for it.
func (l *Leader) mayNote() bool {
	a := &l.auditing
	if l.now.Sub(a.hour) >= time.Hour {
		*a = auditing{hour: l.now}
	}
	a.noted++
	return a.noted <= mostAudited
}
