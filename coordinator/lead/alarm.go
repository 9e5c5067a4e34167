package lead

import (
	"cmp"
	"container/heap"
	"time"
)

// alarm is something that the leader does later. The zero pointer is no alarm.
type alarm struct {
	at     time.Time
	number uint64 // of alarms, for the order of those at one instant
	run    func()
	place  int // in the heap; -1: it has run, or was cancelled
}

// alarms are those that are set, the earliest first. The zero value is empty.
type alarms struct {
	heap   alarmHeap
	number uint64
	told   time.Time // for which a wake-up was asked last; zero: for none
}

// after has run carried out later, unless it is cancelled before.
func (l *Leader) after(wait time.Duration, run func()) *alarm {
	l.alarms.number++
	a := &alarm{at: l.now.Add(wait), number: l.alarms.number, run: run}
	heap.Push(&l.alarms.heap, a)
	l.askToWake()
	return a
}

// cancel ends an alarm, if it is set.
func (l *Leader) cancel(a *alarm) {
	if a == nil || a.place < 0 {
		return
	}
	heap.Remove(&l.alarms.heap, a.place)
	a.place = -1
}

// askToWake asks for a wake-up at the earliest alarm, unless an earlier one is
// coming.
func (l *Leader) askToWake() {
	if len(l.alarms.heap) == 0 {
		return
	}
	if at := l.alarms.heap[0].at; l.alarms.told.IsZero() || at.Before(l.alarms.told) {
		l.alarms.told = at
		l.out.add(Effect{Kind: WakeAt, At: at})
	}
}

// runDueAlarms carries out the alarms whose time has come.
func (l *Leader) runDueAlarms() {
	l.alarms.told = time.Time{}
	for len(l.alarms.heap) > 0 && !l.alarms.heap[0].at.After(l.now) {
		a := heap.Pop(&l.alarms.heap).(*alarm)
		a.run()
	}
	l.askToWake()
}

// alarmHeap implements heap.Interface.
type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }

func (h alarmHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].number, h[j].number)) < 0
}

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
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
