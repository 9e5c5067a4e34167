package post

import (
	"cmp"
	"container/heap"
	"time"
)

// Alarm is a later act of the leader. The nil pointer is no alarm.
type Alarm struct {
	at     time.Time
	number uint64 // of alarms, for the order of alarms at the same instant
	run    func()
	place  int // in the heap; -1: has run, or was cancelled
}

// At is the instant of the alarm.
func (a *Alarm) At() time.Time { return a.at }

// alarms are the set alarms, the earliest first. The zero value is empty.
type alarms struct {
	heap   alarmHeap
	number uint64
	asked  time.Time // of the last wake-up that was asked for; zero: no wake-up
}

// After has run carried out later, unless the alarm is cancelled before.
func (p *Post) After(wait time.Duration, run func()) *Alarm {
	p.alarms.number++
	a := &Alarm{at: p.now.Add(wait), number: p.alarms.number, run: run}
	heap.Push(&p.alarms.heap, a)
	p.askToWake()
	return a
}

// Cancel ends an alarm, if set.
func (p *Post) Cancel(a *Alarm) {
	if a == nil || a.place < 0 {
		return
	}
	heap.Remove(&p.alarms.heap, a.place)
	a.place = -1
}

// askToWake asks for a wake-up at the earliest alarm, unless an earlier wake-up is
// coming.
func (p *Post) askToWake() {
	if len(p.alarms.heap) == 0 {
		return
	}
	if at := p.alarms.heap[0].at; p.alarms.asked.IsZero() || at.Before(p.alarms.asked) {
		p.alarms.asked = at
		p.Add(Effect{Kind: WakeAt, At: at})
	}
}

// Ring carries out the alarms whose time has come.
func (p *Post) Ring() {
	p.alarms.asked = time.Time{}
	for len(p.alarms.heap) > 0 && !p.alarms.heap[0].at.After(p.now) {
		a := heap.Pop(&p.alarms.heap).(*Alarm)
		a.run()
	}
	p.askToWake()
}

// Alarms is how many alarms are set.
func (p *Post) Alarms() int { return len(p.alarms.heap) }

// alarmHeap implements heap.Interface.
type alarmHeap []*Alarm

func (h alarmHeap) Len() int { return len(h) }

func (h alarmHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].number, h[j].number)) < 0
}

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*Alarm)
	a.place = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.place = -1
	return a
}
