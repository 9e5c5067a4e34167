//go:build cgo && linux

package nvml

import (
	"sync/atomic"
)

// worker makes a watch's calls into the library, one after the other on a
// goroutine of its own, so that a call that never returns holds up nothing but
// the worker. Jobs are given by one goroutine.
type worker struct {
	source *Source
	jobs   chan func()
	ended  chan struct{} // closed once the last job and the cleaning up are done
	asked  atomic.Pointer[question]
	moved  chan struct{} // capacity 1: a question that hung was answered
}

// startWorker runs a worker until its jobs are closed. cleanUp is its last job.
func startWorker(s *Source, cleanUp func()) *worker {
	w := &worker{source: s, jobs: make(chan func()), ended: make(chan struct{}), moved: make(chan struct{}, 1)}
	w.asked.Store(&question{})
	go func() {
		defer close(w.ended)
		for job := range w.jobs {
			w.do(job)
		}
		w.do(cleanUp)
		s.endWatch()
	}()
	return w
}

// do runs a job with the library to itself.
func (w *worker) do(job func()) {
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	job()
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
