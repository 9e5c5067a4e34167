package post

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file notes the person beside each change that a person asks for: in the record
// that a submission creates, and else as a key in the Txn of the change (ADR 49).

// Author is the caller for whom the leader acts. The zero value is no caller.
type Author struct {
	// by is the change that a person asks for, or nil, and entry the entry of the
	// change, once chosen; noted: the store has the change.
	by, entry *record.Audit
	noted     bool
	// caller bounds the priority of new work.
	caller ceiling.Caller
}

// NewAuthor is the author of a call; by is the change that a person asks for, or nil.
func NewAuthor(by *record.Audit, caller ceiling.Caller) Author {
	return Author{by: by, caller: caller}
}

// Person asks for the change; "" for no person.
func (a *Author) Person() string {
	if a.by == nil {
		return ""
	}
	return a.by.Person
}

// ActFor has the writes that follow belong to the author of a call; nil ends that. The caller calls
// restore when the part of the work is over.
func (p *Post) ActFor(a *Author) (restore func()) {
	before := p.acting
	p.acting = a
	return func() { p.acting = before }
}

// Acting is the author for whom the leader acts, or nil.
func (p *Post) Acting() *Author { return p.acting }

// Caller bounds the priority of new work of the author; the zero value for no author.
func (p *Post) Caller() ceiling.Caller {
	if p.acting == nil {
		return ceiling.Caller{}
	}
	return p.acting.caller
}

// Made is the person who submits the new work of the call. The record of the work has the
// person, so the change needs no key of its own.
func (p *Post) Made() *record.Actor {
	a := p.acting
	if a == nil || a.by == nil {
		return nil
	}
	a.noted = true
	actor := a.by.Actor
	return &actor
}

// leaseEvery is the time after which the leader asks for another lease.
const leaseEvery = time.Hour

// RenewLease asks for another lease of request ids and entries where the last was asked for
// long ago.
func (p *Post) RenewLease() {
	if p.now.Sub(p.leasedAt) > leaseEvery {
		p.leasedAt = p.now
		p.Add(Effect{Kind: GrantLease})
	}
}

// TakeLease takes the store's lease; a store without an answer leaves the lease before.
func (p *Post) TakeLease(l record.LeaseID) {
	if l != 0 {
		p.lease = l
	}
}

// Lease is the lease of request ids and entries, or 0.
func (p *Post) Lease() record.LeaseID { return p.lease }

// noteChangeIn returns the operations of a decision, with the entry of the change, and the
// end of the decision. Each write of a change carries the same key until a write has
// landed: each change has an entry, and a change without effect is without an entry.
func (p *Post) noteChangeIn(d Decision) ([]record.Op, func(txn.Outcome, resource.Revision, error)) {
	a := p.acting
	if a == nil {
		return d.Ops, d.Done
	}
	ops, carries := d.Ops, a.by != nil && !a.noted && len(d.Ops) < p.maxOps && len(d.Ops) > 0
	if carries {
		if a.entry == nil {
			entry := p.entries.Next(p.now, *a.by)
			a.entry = &entry
		}
		ops = append(slices.Clip(ops), a.entry.Note(p.lease, ops))
	}
	return ops, func(o txn.Outcome, rev resource.Revision, err error) {
		if carries && o == txn.Landed {
			a.noted = true
		}
		defer p.ActFor(a)()
		d.Done(o, rev, err)
	}
}
