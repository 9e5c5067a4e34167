//go:build cgo && linux

package nvml

import (
	"sync"
	"sync/atomic"
)

// worker makes a watch's calls into the library, one after the other on a
// goroutine of its own, so that a call that never returns holds up nothing but
// the worker. Jobs are given by one goroutine. A worker whose call about a card hangs
// is left behind, and the watch goes on with another one.
type worker struct {
	source *Source
	jobs   chan func()
	ended  chan struct{} // closed once the last job is done
	asked  atomic.Pointer[question]
	moved  chan struct{} // capacity 1: a question that hung was answered

	mu    sync.Mutex
	inJob bool // it has Source.mu
}

// startWorker runs a worker until its jobs are closed.
func startWorker(s *Source) *worker {
	w := &worker{source: s, jobs: make(chan func()), ended: make(chan struct{}), moved: make(chan struct{}, 1)}
	w.asked.Store(ask("", nil))
	go func() {
		defer close(w.ended)
		for job := range w.jobs {
			w.do(job)
		}
	}()
	return w
}

// do runs a job with the library to itself, but for calls that were left behind.
func (w *worker) do(job func()) {
	w.source.mu.Lock()
	w.mu.Lock()
	w.inJob = true
	w.mu.Unlock()
	job()
	w.yield()
}

// yield gives the library up, if the worker still has it.
func (w *worker) yield() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inJob {
		w.inJob = false
		w.source.mu.Unlock()
	}
}

// leaveBehind gives the library up in the worker's place, in the middle of a job. The
// worker ends with the job.
func (w *worker) leaveBehind() stuckCall {
	w.yield()
	close(w.jobs)
	return stuckCall{w.asked.Load(), w.ended}
}

// asking notes, from within a job, a call that begins.
func (w *worker) asking(call string, c *card) {
	before := w.asked.Swap(ask(call, c))
	if before.hung.Load() {
		select {
		case w.moved <- struct{}{}:
		default:
		}
	}
}
