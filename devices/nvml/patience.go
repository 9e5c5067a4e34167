//go:build cgo && linux

package nvml

import (
	"sync"
	"sync/atomic"
	"time"
)

// patience bounds a discovery. A call into the driver cannot be cancelled: its
// thread stays in the library until the call returns. So the call is left behind
// with its goroutine, and another goroutine asks about the next card, as NVML
// allows: its functions may be called by several threads. While a call is left
// behind the library is never shut down and the same question is not put again.
type patience struct {
	stall time.Duration // a call that takes longer is left behind
	until time.Time     // the end of the time for all calls together; zero: there is none
	relay bool          // the caller's asker learns of every call that is waited for
	left  sync.WaitGroup
	stuck []stuckCall // the calls that were left behind
}

// leftBehind names the first call that has not returned yet, "" if all have.
func (p *patience) leftBehind() string {
	for _, s := range p.stuck {
		if !s.returned() {
			return s.question.silence(time.Now())
		}
	}
	return ""
}

// isOver reports whether the time for all calls together is over.
func (p *patience) isOver() bool { return !p.until.IsZero() && !time.Now().Before(p.until) }

// leftFor is the time until a call that began then is left behind.
func (p *patience) leftFor(since time.Time) time.Duration {
	left := time.Until(since.Add(p.stall))
	if !p.until.IsZero() {
		left = min(left, time.Until(p.until))
	}
	return left
}

// stuckCall is a call that was left behind with its thread.
type stuckCall struct {
	question *question
	done     <-chan struct{} // closed once the call has returned, and the thread is free
}

func (s *stuckCall) returned() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// unasked is the fate of a card for which no time was left.
var unasked = &question{}

// each does a job about each of n cards in their order. Where p is nil, the
// caller's goroutine does them all. done takes the result of a job that ended in
// time; late names the call that was left behind, or unasked where the job did
// not begin. The result of a job that ends later is dropped: the watch asks
// again. done and late run on the caller's goroutine.
func each[T any](p *patience, n int, asking asker, job func(i int, asking asker) T, done func(i int, result T), late func(i int, q *question)) {
	if p == nil {
		for i := range n {
			done(i, job(i, asking))
		}
		return
	}
	for i := 0; i < n; {
		if p.isOver() {
			late(i, unasked)
			i++
			continue
		}
		l := startLane(p, i, n, asking, job)
		i = l.follow(p, i, n, done, late)
	}
}

// lane is a goroutine that does jobs until one of its calls is left behind.
type lane[T any] struct {
	asked   atomic.Pointer[question]
	results chan laneResult[T] // room for all, so that a late one is dropped unread
	over    atomic.Bool        // no receiver reads results any more
	done    chan struct{}      // closed at the end
}

type laneResult[T any] struct {
	i      int
	result T
}

func startLane[T any](p *patience, first, n int, asking asker, job func(i int, asking asker) T) *lane[T] {
	l := &lane[T]{results: make(chan laneResult[T], n-first), done: make(chan struct{})}
	l.asked.Store(ask("", nil))
	p.left.Add(1)
	note := func(call string, c *card) {
		l.asked.Store(ask(call, c))
		if p.relay && !l.over.Load() {
			asking(call, c)
		}
	}
	go func() {
		defer p.left.Done()
		defer close(l.done)
		for i := first; i < n && !l.over.Load(); i++ {
			l.results <- laneResult[T]{i, job(i, note)}
		}
	}()
	return l
}

// follow takes the lane's results and returns the index of the next job that
// no caller does.
func (l *lane[T]) follow(p *patience, i, n int, done func(i int, result T), late func(i int, q *question)) int {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i < n {
		select {
		case r := <-l.results:
			done(r.i, r.result)
			i = r.i + 1
			continue
		default:
		}
		q := l.asked.Load()
		left := p.leftFor(q.since)
		if left <= 0 {
			select {
			case r := <-l.results: // it ended just now
				done(r.i, r.result)
				i = r.i + 1
				continue
			default:
			}
			l.over.Store(true)
			p.stuck = append(p.stuck, stuckCall{q, l.done})
			late(i, q)
			return i + 1
		}
		timer.Reset(left)
		select {
		case r := <-l.results:
			done(r.i, r.result)
			i = r.i + 1
		case <-timer.C:
		}
	}
	return i
}
