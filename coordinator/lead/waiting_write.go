package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// writeWaiting writes the news of one second. Half of the writes, and of the units
// that are looked at, are for those that an event concerned, the newest first; the
// others are for all units in turn, so that none waits for ever.
func (l *Leader) writeWaiting() {
	l.noteFates()
	w := &l.waiting
	var later []*work.Unit // preemptors, which are not in the order
	for looks := 0; len(w.newest) > 0 && looks < waitingLooks/2; looks++ {
		u := w.newest[len(w.newest)-1]
		l.judgeFate(u)
		if l.hasWaitingNews(u) && (looks >= waitingRate.Burst/2 || !l.tellWaiting(u)) {
			break
		}
		w.newest = w.newest[:len(w.newest)-1]
		if u.Preempting() {
			later = append(later, u)
		} else {
			delete(w.noted, u)
		}
	}
	w.newest = append(later, w.newest...)
	round := l.room.Order().Range(w.looked, waitingLooks/2)
	for _, k := range round {
		u := l.work.Units[k.Path]
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
func (l *Leader) hasWaitingNews(u *work.Unit) bool {
	if u == nil || u.Life.Gone() || !u.Waiting() || !u.Queued || u.Stored == 0 || u.Life.EndAsked() || u.Wait.Told.Writing || u.Life.Writing() != work.NoWrite || u.Adopting != "" {
		return false
	}
	if u.Attempt != nil && !u.Preempting() { // it is about to be placed
		return false
	}
	now, before := l.waitingNow(u), record.Waiting{}
	if u.Wait.Told.Waiting != nil {
		before = *u.Wait.Told.Waiting
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
	return now != before && l.post.Now().Sub(u.Wait.Told.At) >= waitingEvery
}

// tellWaiting writes why a unit waits, and reports whether the rate lets it. The
// write compares the unit's own key: it never lands once the unit has left the
// order.
func (l *Leader) tellWaiting(u *work.Unit) bool {
	if !l.waiting.bucket.Take(l.post.Now(), waitingRate) {
		return false
	}
	w := l.waitingNow(u)
	if w.Code == "" { // the verdict alone has changed
		w = *u.Wait.Told.Waiting
		w.Never, w.NeverCode, w.NeverSinceMillis = "", "", 0
	}
	if w.SinceMillis = l.post.Millis(); u.Wait.Told.Waiting != nil && u.Wait.Told.Waiting.Code == w.Code {
		w.SinceMillis = u.Wait.Told.Waiting.SinceMillis
	}
	u.Wait.BeginTold()
	key, at, stored := u.Record.Order().Key(), l.post.Now(), u.Stored
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(u.Record.Path().Key(), stored)},
		Ops:      []record.Op{record.Put(key, record.MustEncode(record.Order{UnitUID: u.Record.UID, Waiting: &w}))},
		Done: func(o txn.Outcome, rev resource.Revision, _ error) {
			landed := o == txn.Landed && u.Stored == stored && u.Queued
			if u.Wait.FinishTold(landed, work.Told{Waiting: &w, Revision: rev, At: at}); landed {
				l.notify(u)
			}
		},
	}, key, post.Wrote(key, func(order record.Order) bool { return order.Waiting != nil && *order.Waiting == w }))
	return true
}

// Rates of these writes: waitingRate in all, waitingEvery for the same code of one
// unit. waitingLooks bounds the units that one round looks at.
const (
	waitingEvery = 10 * time.Second
	waitingLooks = 1000
)

var waitingRate = pace.Rate{Every: 5 * time.Millisecond, Burst: 200}
