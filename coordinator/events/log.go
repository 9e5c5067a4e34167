package events

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/objects"
)

// Limits bound a Log.
type Limits struct {
	OfObject int           // events of one object
	Kept     time.Duration // since the coordinator took the event last
	Bytes    int           // of all events, as estimated
}

// Default are the limits of a coordinator (DECISIONS D13).
var Default = Limits{OfObject: 32, Kept: time.Hour, Bytes: 64 << 20}

// Event is what happened to an object, once or several times with the same type,
// reason and message.
type Event struct {
	Object          objects.Name
	UID             string // of the object; "" for objects that have none
	Type            Type
	Reason, Message string
	Count           int
	First, Last     time.Time
}

// bytes estimates the memory of an event, with its places in the Log.
func (e *Event) bytes() int {
	return 320 + len(e.Object.Namespace) + len(e.Object.Name) + len(e.UID) + len(e.Reason) + len(e.Message)
}

// kept is an event in a Log, in the order in which the Log took the events.
type kept struct {
	Event
	taken        time.Time // when the Log took it last
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
	of             map[objects.Name][]*kept
	oldest, newest *kept
	bytes          int
}

// New begins a Log: it has every event after now, within its limits.
func New(l Limits, now time.Time) *Log {
	return &Log{limits: l, since: now, of: map[objects.Name][]*kept{}}
}

// Since is the instant from which on the Log has had all events. Of the time
// before it has the events that the objects still tell of.
func (l *Log) Since() time.Time { return l.since }

// Begin takes an object that is there when the Log begins.
func (l *Log) Begin(n objects.Name, uid string, object any, now time.Time) {
	l.Take(n, uid, nil, object, now)
}

// Take takes a change of an object.
func (l *Log) Take(n objects.Name, uid string, before, after any, now time.Time) {
	for _, h := range Derive(before, after) {
		l.add(n, uid, h, now)
	}
	l.Expire(now)
}

// add counts an event that the object has already, or keeps it as a new one.
func (l *Log) add(n objects.Name, uid string, h Happening, now time.Time) {
	same := func(k *kept) bool {
		return k.UID == uid && k.Type == h.Type && k.Reason == h.Reason && k.Message == h.Message
	}
	if i := slices.IndexFunc(l.of[n], same); i >= 0 {
		k := l.of[n][i]
		l.unchain(k)
		k.Count, k.taken = k.Count+1, now
		if at := h.instant(now); at.After(k.Last) {
			k.Last = at
		}
		l.chain(k)
		return
	}
	if len(l.of[n]) >= l.limits.OfObject {
		l.drop(slices.MinFunc(l.of[n], func(a, b *kept) int { return a.taken.Compare(b.taken) }))
	}
	at := h.instant(now)
	k := &kept{Event: Event{Object: n, UID: uid, Type: h.Type, Reason: h.Reason, Message: h.Message, Count: 1, First: at, Last: at}, taken: now}
	l.of[n] = append(l.of[n], k)
	l.bytes += k.bytes()
	l.chain(k)
}

// Expire drops the events that are too old, and the oldest ones beyond the memory.
func (l *Log) Expire(now time.Time) {
	for l.oldest != nil && (now.Sub(l.oldest.taken) > l.limits.Kept || l.bytes > l.limits.Bytes) {
		l.drop(l.oldest)
	}
}

// drop forgets an event.
func (l *Log) drop(k *kept) {
	l.unchain(k)
	l.bytes -= k.bytes()
	rest := slices.DeleteFunc(l.of[k.Object], func(o *kept) bool { return o == k })
	if l.of[k.Object] = rest; len(rest) == 0 {
		delete(l.of, k.Object)
	}
}

// chain makes an event the newest one.
func (l *Log) chain(k *kept) {
	k.older, k.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = k
	} else {
		l.oldest = k
	}
	l.newest = k
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

// Selection selects events. A zero field selects all.
type Selection struct {
	Namespace string // of the objects
	Name      string
	UID       string
	// Match is a further condition; nil for none.
	Match func(*Event) bool
}

// List returns copies of the events that a selection selects, by the time at which
// they happened last, then by their objects.
func (l *Log) List(s Selection, now time.Time) []Event {
	l.Expire(now)
	var got []Event
	for k := l.oldest; k != nil; k = k.newer {
		e := &k.Event
		if (s.Namespace == "" || s.Namespace == e.Object.Namespace) && (s.Name == "" || s.Name == e.Object.Name) &&
			(s.UID == "" || s.UID == e.UID) && (s.Match == nil || s.Match(e)) {
			got = append(got, *e)
		}
	}
	slices.SortStableFunc(got, func(a, b Event) int {
		return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return got
}
