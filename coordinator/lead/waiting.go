package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file writes why units wait, for readers: with the unit's place in the order
// when that is stored, then once a second for units with news. A unit has news when
// its code has changed, and when its message has and the last write is old enough.

// Rates of these writes: waitingRate in all, waitingEvery for the same code of one
// unit. waitingLooks bounds the units that one round looks at.
const (
	waitingEvery = 10 * time.Second
	waitingLooks = 1000
)

var waitingRate = pace.Rate{Every: 5 * time.Millisecond, Burst: 200}

// told is why a unit waits as the store has it.
type told struct {
	waiting  *record.Waiting   // never changed; nil: the unit was not tried yet
	revision resource.Revision // of the order key
	at       time.Time         // when this leader wrote it last
	writing  bool
}

// waitingNews are units of which something is to be written.
//
// Invariant: noted has the units of newest and no others.
type waitingNews struct {
	bucket pace.Bucket
	newest []*unit // that an event concerned since the last write, the newest last
	noted  map[*unit]bool
	looked int // position in the order at which the next round goes on
}

// agrees reports whether the code of some evidence is the one in the store.
func (t *told) agrees(e *sched.Evidence) bool {
	return e == nil || t.waiting != nil && t.waiting.Code == evidenceCode(e)
}

// evidenceCode is the code of evidence.
func evidenceCode(e *sched.Evidence) string {
	if e.Code == sched.OverQueue {
		return shown.QueueFull
	}
	return shown.CodeOf(e.Short != nil)
}

// waitingOf is why a unit waits now.
func (l *Leader) waitingOf(u *unit) record.Waiting {
	switch {
	case u.isSuspended():
		return shown.Suspended(u.record.Kind, u.record.Namespace, u.record.Name)
	case u.hold == holdDelay:
		return u.retryOf()
	case u.hold == holdThrottled:
		return shown.ParallelismReached(u.job.doc.AtOnce())
	case u.awaitsMembers():
		return shown.WaitingForGang(u.group.arrived(), u.group.rule.MinMembers, u.group.id)
	}
	if b := l.blockOf(u); b != nil {
		return shown.WaitingForQueue(waitingForQueue(b))
	}
	switch e := l.evidenceOf(u); {
	case u.preempting():
		return shown.Preempting(u.attempt.nomination())
	case u.lifecycle == phaseResting && u.refusals > 0:
		reason := "an attempt came to nothing"
		if u.failed.node != "" {
			reason = "node " + string(u.failed.node) + ": " + u.failed.String()
		}
		return shown.Refused(u.refusals, Clip(reason), u.rested)
	case e != nil && e.Short != nil:
		return shown.OverQuota(l.quotas.Reasons(e.Short)[0].Detail)
	case e != nil:
		return shown.NoPlace(u.record.Namespace, u.record.Name)
	}
	return record.Waiting{}
}

// waitingNow is waitingOf with the verdict whether the unit can ever run.
func (l *Leader) waitingNow(u *unit) record.Waiting {
	w := l.waitingOf(u)
	if w.Code == "" && u.fate.message != "" {
		w = shown.Untried()
	}
	l.addFate(&w, &u.fate, u.told.waiting)
	return w
}

// orderOf is the value of the order key of a unit that is stored, with why it waits.
func (l *Leader) orderOf(u *unit) record.Order {
	o := record.Order{UnitUID: u.record.UID}
	if w := l.waitingNow(u); w.Code != "" {
		w.SinceMillis = l.millis()
		o.Waiting = &w
	}
	u.setTold(told{waiting: o.Waiting, at: l.now})
	return o
}

// noteWaiting notes that something may have changed about why a unit waits.
func (l *Leader) noteWaiting(u *unit) {
	if l.waiting.noted[u] {
		return
	}
	if l.waiting.noted == nil {
		l.waiting.noted = map[*unit]bool{}
	}
	l.waiting.noted[u] = true
	l.waiting.newest = append(l.waiting.newest, u)
}

// writeWaiting writes the news of one second. Half of the writes, and of the units
// that are looked at, are for those that an event concerned, the newest first; the
// others are for all units in turn, so that none waits for ever.
func (l *Leader) writeWaiting() {
	l.noteFates()
	w := &l.waiting
	var later []*unit // preemptors, which are not in the order
	for looks := 0; len(w.newest) > 0 && looks < waitingLooks/2; looks++ {
		u := w.newest[len(w.newest)-1]
		l.judgeFate(u)
		if l.hasWaitingNews(u) && (looks >= waitingRate.Burst/2 || !l.tellWaiting(u)) {
			break
		}
		w.newest = w.newest[:len(w.newest)-1]
		if u.preempting() {
			later = append(later, u)
		} else {
			delete(w.noted, u)
		}
	}
	w.newest = append(later, w.newest...)
	round := l.room.Order().Range(w.looked, waitingLooks/2)
	for _, k := range round {
		u := l.units[k.Path]
		if u != nil {
			l.judgeFate(u)
		}
		if l.hasWaitingNews(u) && !l.tellWaiting(u) {
			return
		}
		w.looked++
	}
	if w.looked >= l.room.Order().Len() {
		w.looked = 0
	}
}

// hasWaitingNews reports whether why a unit waits is to be written now.
func (l *Leader) hasWaitingNews(u *unit) bool {
	if u == nil || u.gone || !u.waiting() || !u.queued || u.stored == 0 || u.ending != nil || u.told.writing || u.writing != noWrite || u.adopting != nil {
		return false
	}
	if u.attempt != nil && !u.preempting() { // it is about to be placed
		return false
	}
	now, before := l.waitingNow(u), record.Waiting{}
	if u.told.waiting != nil {
		before = *u.told.waiting
	}
	now.SinceMillis = before.SinceMillis
	switch {
	case now.NeverCode != before.NeverCode:
		return true
	case now.Code == "": // it was not tried since
		return false
	case now.Code != before.Code:
		return true
	}
	return now != before && l.now.Sub(u.told.at) >= waitingEvery
}

// tellWaiting writes why a unit waits, and reports whether the rate lets it. The
// write compares the unit's own key: it never lands once the unit has left the
// order.
func (l *Leader) tellWaiting(u *unit) bool {
	if !l.waiting.bucket.Take(l.now, waitingRate) {
		return false
	}
	w := l.waitingNow(u)
	if w.Code == "" { // the verdict alone has changed
		w = *u.told.waiting
		w.Never, w.NeverCode, w.NeverSinceMillis = "", "", 0
	}
	if w.SinceMillis = l.millis(); u.told.waiting != nil && u.told.waiting.Code == w.Code {
		w.SinceMillis = u.told.waiting.SinceMillis
	}
	u.beginTold()
	key, at, stored := u.record.Order().Key(), l.now, u.stored
	l.settle(decision{
		compares: []record.Compare{record.ModRevIs(u.record.Path().Key(), stored)},
		ops:      []record.Op{record.Put(key, record.MustEncode(record.Order{UnitUID: u.record.UID, Waiting: &w}))},
		done: func(o txn.Outcome, rev resource.Revision, _ error) {
			if u.finishTold(); o == txn.Landed && u.stored == stored && u.queued {
				u.setTold(told{waiting: &w, revision: rev, at: at})
				l.notify(u)
			}
		},
	}, key, func(value []byte, found bool) bool {
		order, err := record.Decode[record.Order](key, value)
		return found && err == nil && order.Waiting != nil && *order.Waiting == w
	})
	return true
}
