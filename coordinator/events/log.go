package events

import (
	"iter"
	"slices"
	"time"
)

// Limits bound a Log.
type Limits struct {
	OfObject int           // events of one object
	Kept     time.Duration // since an event has happened last
	Bytes    int           // of all events, as estimated
}

// Default are the limits of a coordinator (DECISIONS D13).
var Default = Limits{OfObject: 32, Kept: time.Hour, Bytes: 64 << 20}

// kept is an event in a Log.
type kept struct {
	*Event
	taken        time.Time // when the Log took it last; at the beginning, when it happened
	older, newer *kept
}

// Log is the newest events. It is no value for several goroutines.
//
// Invariant: an object has at most Limits.OfObject events; bytes is the sum over
// all events and at most Limits.Bytes; the chain from oldest to newest holds each
// event once, in the order of taken.
type Log struct {
	limits         Limits
	since          time.Time
	of             map[Object][]*kept // by objects without their uid
	oldest, newest *kept
	bytes          int
}

// New begins a Log: it has every event after now, within its limits.
func New(l Limits, now time.Time) *Log {
	return &Log{limits: l, since: now, of: map[Object][]*kept{}}
}

// Since is the instant from which on the Log has had all events. Of the time
// before it has the events of which the objects still have the instants.
func (l *Log) Since() time.Time { return l.since }

// Resume goes on after changes that the Log has not been given.
func (l *Log) Resume(now time.Time) { l.since = now }

// Len counts the events, and Bytes estimates their memory.
func (l *Log) Len() (n int) {
	for _, events := range l.of {
		n += len(events)
	}
	return n
}

// Bytes estimates the memory of all events.
func (l *Log) Bytes() int { return l.bytes }

// Told are the happenings of an object.
type Told struct {
	Object
	Happenings []Happening
}

// Changes are the events that a call has made or counted again, in order, and those
// that it has dropped. The caller may set Revision and Index of the former before
// anybody else sees them.
type Changes struct{ Put, Dropped []*Event }

// Begin takes the objects that are there when the Log begins or goes on: happenings
// that have an instant within the last hour, and that it does not have yet.
func (l *Log) Begin(objects []Told, now time.Time) (c Changes) {
	type one struct {
		Object
		Happening
		at time.Time
	}
	var all []one
	for _, o := range objects {
		for _, h := range o.Happenings {
			if at := h.instant(now); h.At != "" && now.Sub(at) <= l.limits.Kept && !l.has(o.Object, &h, at) {
				all = append(all, one{o.Object, h, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return a.at.Compare(b.at) })
	for _, o := range all {
		l.add(o.Object, o.Happening, o.at, o.at, &c)
	}
	l.expire(now, &c)
	return c
}

// Take takes the happenings of a change of an object.
func (l *Log) Take(t Told, now time.Time) (c Changes) {
	for _, h := range t.Happenings {
		l.add(t.Object, h, h.instant(now), now, &c)
	}
	l.expire(now, &c)
	return c
}

// named is an object without its uid.
func named(o Object) Object {
	o.UID = ""
	return o
}

// find is the event that a happening is one more of, nil for none.
func (l *Log) find(o Object, h *Happening) *kept {
	for _, k := range l.of[named(o)] {
		if k.UID == o.UID && k.Type == h.Type && k.Reason == h.Reason && (h.Latest || k.Message == h.Message) {
			return k
		}
	}
	return nil
}

// has reports whether an event of an instant is there already. The object may have
// changed since, and the message with it.
func (l *Log) has(o Object, h *Happening, at time.Time) bool {
	return slices.ContainsFunc(l.of[named(o)], func(k *kept) bool {
		return k.UID == o.UID && k.Type == h.Type && k.Reason == h.Reason && !k.Last.Before(at)
	})
}

// add counts an event that the object has already, or keeps it as a new one.
func (l *Log) add(o Object, h Happening, at, taken time.Time, c *Changes) {
	if k := l.find(o, &h); k != nil {
		l.unchain(k)
		next := *k.Event
		next.Count++
		next.Message = h.Message
		if at.After(next.Last) {
			next.Last = at
		}
		l.bytes += next.Bytes() - k.Bytes()
		k.Event, k.taken = &next, taken
		l.chain(k)
		c.Put = append(c.Put, k.Event)
		return
	}
	if of := l.of[named(o)]; len(of) >= l.limits.OfObject {
		l.drop(slices.MinFunc(of, func(a, b *kept) int { return a.taken.Compare(b.taken) }), c)
	}
	e := &Event{Object: o, Type: h.Type, Reason: h.Reason, Message: h.Message, Count: 1, First: at, Last: at}
	e.identify(h.Latest)
	k := &kept{Event: e, taken: taken}
	l.of[named(o)] = append(l.of[named(o)], k)
	l.bytes += k.Bytes()
	l.chain(k)
	c.Put = append(c.Put, e)
}

// Expire drops the events that are too old.
func (l *Log) Expire(now time.Time) []*Event {
	var c Changes
	l.expire(now, &c)
	return c.Dropped
}

// expire drops the events that are too old, and the oldest ones beyond the memory.
func (l *Log) expire(now time.Time, c *Changes) {
	for l.oldest != nil && (now.Sub(l.oldest.taken) > l.limits.Kept || l.bytes > l.limits.Bytes) {
		l.drop(l.oldest, c)
	}
}

// drop forgets an event.
func (l *Log) drop(k *kept, c *Changes) {
	l.unchain(k)
	l.bytes -= k.Bytes()
	of := named(k.Object)
	rest := slices.DeleteFunc(l.of[of], func(o *kept) bool { return o == k })
	if l.of[of] = rest; len(rest) == 0 {
		delete(l.of, of)
	}
	c.Put = slices.DeleteFunc(c.Put, func(e *Event) bool { return e == k.Event })
	c.Dropped = append(c.Dropped, k.Event)
}

// chain puts an event behind those that were taken before, from the newest on: at once
// unless the Log begins.
func (l *Log) chain(k *kept) {
	older := l.newest
	for older != nil && older.taken.After(k.taken) {
		older = older.older
	}
	k.older, k.newer = older, l.oldest
	if older != nil {
		k.newer = older.newer
		older.newer = k
	} else {
		l.oldest = k
	}
	if k.newer != nil {
		k.newer.older = k
	} else {
		l.newest = k
	}
}

// unchain takes an event out of the order.
func (l *Log) unchain(k *kept) {
	if k.older != nil {
		k.older.newer = k.newer
	} else {
		l.oldest = k.newer
	}
	if k.newer != nil {
		k.newer.older = k.older
	} else {
		l.newest = k.older
	}
	k.older, k.newer = nil, nil
}

// All yields the events, the one that happened longest ago first.
func (l *Log) All() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for k := l.oldest; k != nil; k = k.newer {
			if !yield(k.Event) {
				return
			}
		}
	}
}
