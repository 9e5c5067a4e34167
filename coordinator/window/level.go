package window

import (
	"math"
	"time"
)

// Level is an amount that changes in steps, with its peak and its average over the
// recent past. The past is divided into slots of equal width; a question about a
// period is answered for whole slots. One goroutine owns a Level.
//
// Invariant: slots[k mod len] describes slot k up to at, for newest-len < k <= newest,
// and newest is the slot of at.
type Level struct {
	width  time.Duration
	slots  []span
	newest int64
	began  time.Time
	at     time.Time // until then the value is in the slots
	value  int64
}

// span is the level during a slot, as far as the slot is over.
type span struct {
	peak int64
	area float64 // amount × seconds
}

// NewLevel returns a level of 0 that begins at a time. There is at least one slot,
// of at least 1 ms.
func NewLevel(began time.Time, slots int, width time.Duration) *Level {
	l := &Level{width: max(width, time.Millisecond), slots: make([]span, max(slots, 1)), began: began, at: began}
	l.newest = slotOf(began, l.width)
	return l
}

// Value is the present amount.
func (l *Level) Value() int64 { return l.value }

// Set sets the amount from a time on. An earlier time than that of the last call
// counts as the latter.
func (l *Level) Set(now time.Time, value int64) {
	l.advance(now)
	l.value = value
	of := l.slot(l.newest)
	of.peak = max(of.peak, value)
}

// Past is a level over the recent past.
type Past struct {
	Peak, Average int64
	// Since is the beginning of the time that the numbers are about: of the oldest
	// slot that the period touches, or of the level.
	Since time.Time
}

// Over is the level over a period that ends at a time. A period beyond the slots is
// cut.
func (l *Level) Over(now time.Time, period time.Duration) Past {
	l.advance(now)
	oldest := max(slotOf(l.at.Add(-period), l.width), l.newest-int64(len(l.slots))+1)
	since := time.UnixMilli(oldest * l.width.Milliseconds())
	if since.Before(l.began) {
		since = l.began
	}
	p := Past{Peak: l.value, Average: l.value, Since: since}
	var area float64
	for k := max(oldest, slotOf(l.began, l.width)); k <= l.newest; k++ {
		of := l.slot(k)
		p.Peak = max(p.Peak, of.peak)
		area += of.area
	}
	if covered := l.at.Sub(since).Seconds(); covered > 0 {
		p.Average = int64(math.Round(area / covered))
	}
	return p
}

// IsIdle reports whether the level is 0 and was 0 in all slots.
func (l *Level) IsIdle(now time.Time) bool {
	p := l.Over(now, l.width*time.Duration(len(l.slots)))
	return l.value == 0 && p.Peak == 0
}

func (l *Level) slot(k int64) *span { return &l.slots[k%int64(len(l.slots))] }

// advance accounts for the amount until a time.
func (l *Level) advance(now time.Time) {
	if !now.After(l.at) {
		return
	}
	last, size := slotOf(now, l.width), int64(len(l.slots))
	for k := max(l.newest, last-size+1); k <= last; k++ {
		if k > l.newest {
			*l.slot(k) = span{peak: l.value}
		}
		from, to := time.UnixMilli(k*l.width.Milliseconds()), time.UnixMilli((k+1)*l.width.Milliseconds())
		if from.Before(l.at) {
			from = l.at
		}
		if to.After(now) {
			to = now
		}
		l.slot(k).area += float64(l.value) * to.Sub(from).Seconds()
	}
	l.newest, l.at = last, now
}
