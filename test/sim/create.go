package sim

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is coordinator/{create,lifecycle,outcome,committer}.go: units that
// come and go, and how a decision's outcome becomes known.

// accept takes a client's submission, or answers its repetition.
func (t *term) accept(c *client) {
	c.asked = t
	if u, known := t.requests[c.name]; known {
		switch {
		case u == nil || u.gone:
			c.over = true // it was made and has ended
		case !u.create && u.stored != 0:
			t.sim.told(c, u)
		}
		return
	}
	t.counter++
	u := t.newUnit(c, unitRecord{
		uid: resource.UnitUID(fmt.Sprintf("%s-%d-%d", c.name, t.epoch, t.counter)), client: c.index, phase: pending, epoch: t.epoch, counter: t.counter,
	})
	u.create = true
	t.queue.Push(u.key)
}

// created acknowledges a unit that the store now holds.
func (t *term) created(u *unit) {
	u.create = false
	if u.client.asked == t {
		t.sim.told(u.client, u)
	}
}

// enqueue stores a new unit that has to wait.
func (t *term) enqueue(u *unit) {
	u.writing = true
	name := u.client.name
	t.settleCreation(u, decision{
		what:     "creation of " + name,
		compares: []record.Compare{record.Absent(unitKey(name)), record.Absent(requestKey(name))},
		ops:      []op{{unitKey(name), u.record}, {orderKey(name), u.record.uid}, {requestKey(name), u.record.uid}},
		done:     func(o txn.Outcome, rev resource.Revision) { t.enqueued(u, o, rev) },
	})
}

func (t *term) enqueued(u *unit, o txn.Outcome, rev resource.Revision) {
	u.writing = false
	if o != txn.Landed { // made elsewhere: the client is told to ask again
		if u.client.asked == t {
			u.client.asked = nil
		}
		delete(t.requests, u.client.name)
		t.forget(u)
		return
	}
	u.stored, u.queued = rev, true
	t.created(u)
	if u.ending != nil {
		t.endQueued(u)
		return
	}
	if u.failed != t.generation || t.mayEvict(u) {
		t.queue.Push(u.key)
	}
}

// forget removes a unit from memory.
func (t *term) forget(u *unit) {
	u.gone = true
	t.queue.Remove(u.key)
	if u.enrolled {
		must(t.trees.RemoveConsumer(u.client.name))
		u.enrolled = false
	}
	delete(t.units, u.client.name)
}

// finish asks for a unit's release, however far it is.
func (t *term) finish(u *unit, asked txn.ReleaseAsked) {
	if u.ending != nil {
		return
	}
	u.ending = &asked
	switch {
	case u.attempt != nil:
		t.step(u.attempt, asked)
	case u.adopting != nil: // once that is decided
	case !u.writing:
		t.endQueued(u)
	}
}

// endQueued ends a unit that holds nothing.
func (t *term) endQueued(u *unit) {
	t.queue.Remove(u.key)
	if u.stored == 0 {
		delete(t.requests, u.client.name)
		t.forget(u)
		return
	}
	u.writing = true
	key := unitKey(u.client.name)
	d := decision{what: "removal of " + u.client.name, compares: []record.Compare{record.ModRevIs(key, u.stored)}, ops: []op{{key, nil}}}
	if u.queued {
		d.ops = append(d.ops, op{orderKey(u.client.name), nil})
	}
	d.done = func(o txn.Outcome, _ resource.Revision) {
		u.writing = false
		if o != txn.Landed {
			u.ending = nil // it waits as before; the client asks again
			t.queue.Push(u.key)
			return
		}
		t.forget(u)
	}
	t.settle(d, key, func(e entry) bool { return e.value == nil })
}

// read reads a key; the answer comes if the term lives to hear it.
func (t *term) read(what, key string, then func(e entry, rev resource.Revision)) {
	t.sim.ask(what, func() func() {
		e, rev := t.sim.store.keys[key], t.sim.store.rev
		return func() {
			if !t.ended {
				then(e, rev)
				t.schedule()
			}
		}
	})
}

// settle submits a decision that is not a transaction's, and follows it until
// its outcome is known.
func (t *term) settle(d decision, key string, mine func(e entry) bool) {
	done := d.done
	doubt := false
	d.done = func(o txn.Outcome, rev resource.Revision) {
		if doubt = doubt || o == txn.Unknown; o == txn.Landed || !doubt {
			done(o, rev)
			return
		}
		t.read("the outcome of the "+d.what, key, func(e entry, rev resource.Revision) {
			switch {
			case mine(e):
				if e.value != nil {
					rev = e.mod
				}
				done(txn.Landed, rev)
			case o == txn.Unknown:
				t.submit(d)
			default:
				done(txn.Conflict, rev)
			}
		})
	}
	t.submit(d)
}

// settleCreation is settle for a decision that compares with "absent": it
// carries the absence of a guard, and is fenced if it has no answer (ADR 4).
func (t *term) settleCreation(u *unit, d decision) {
	guard := t.nextTx(u.record.uid)
	sent := d
	sent.compares = append(slices.Clip(d.compares), record.Absent(txKey(guard)))
	sent.done = func(o txn.Outcome, rev resource.Revision) {
		if o != txn.Unknown {
			d.done(o, rev)
			return
		}
		key := txKey(guard)
		t.settle(decision{
			what: "fence of the " + d.what, compares: []record.Compare{record.Absent(key)},
			ops: []op{{key, record.Tx{State: grant.RecordAborted, Epoch: t.epoch, UnitUID: u.record.uid}}},
			done: func(txn.Outcome, resource.Revision) {
				t.read("the outcome of the "+d.what, unitKey(u.client.name), func(e entry, _ resource.Revision) {
					if e.value != nil && e.value.(unitRecord).uid == u.record.uid {
						d.done(txn.Landed, e.mod)
						return
					}
					t.settleCreation(u, d)
				})
			},
		}, key, func(e entry) bool { return e.value != nil })
	}
	t.submit(sent)
}

// submit queues a decision for the store.
func (t *term) submit(d decision) {
	if !t.ended {
		t.waiting = append(t.waiting, d)
	}
}

// flush sends some of the waiting decisions as one Txn, which writes no key
// twice. One whose compares fail is taken apart, so that each gets its own
// answer.
func (t *term) flush(n int) {
	if t.waiting[0].anyEpoch {
		n = 1
	}
	written := map[string]bool{}
	for i, d := range t.waiting[:n] {
		if i > 0 && (d.anyEpoch || slices.ContainsFunc(d.ops, func(o op) bool { return written[o.key] })) {
			n = i
			break
		}
		for _, o := range d.ops {
			written[o.key] = true
		}
	}
	batch := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	t.commit(batch)
}

func (t *term) commit(batch []decision) {
	w := &write{what: t.name + ": " + batch[0].what}
	if !batch[0].anyEpoch {
		w.epoch = t.epoch
		if t.sim.bug != EpochNotCompared {
			w.compares = append(w.compares, record.CreateRevIs(t.key, resource.Revision(t.epoch)))
		}
	}
	for _, d := range batch {
		w.compares = append(w.compares, d.compares...)
		w.ops = append(w.ops, d.ops...)
		w.delicate, w.slow = w.delicate || d.delicate, w.slow || d.slow
	}
	if len(batch) > 1 {
		w.what = fmt.Sprintf("%s and %d more", w.what, len(batch)-1)
	}
	w.done = func(o txn.Outcome, rev resource.Revision) {
		if t.ended {
			return
		}
		if o == txn.Conflict && len(batch) > 1 {
			for i := range batch {
				t.commit(batch[i : i+1])
			}
			return
		}
		for _, d := range batch {
			d.done(o, rev)
		}
		t.schedule()
	}
	t.sim.checkDisjoint(w)
	t.sim.send(w)
}

// changeLimit is what an operator asks of the leader.
func (t *term) changeLimit(namespace string, amount int64) {
	if t.changing {
		return
	}
	t.changing = true
	key := limitPrefix + namespace
	t.settle(decision{
		what: "limit of " + namespace, compares: []record.Compare{record.ModRevIs(key, t.limitRev[namespace])}, ops: []op{{key, amount}},
		done: func(o txn.Outcome, rev resource.Revision) {
			t.changing = false
			if o == txn.Landed {
				t.setLimit(namespace, amount, rev)
				t.wake()
			}
		},
	}, key, func(e entry) bool { return e.value == amount })
}
