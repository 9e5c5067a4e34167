// Package sampler thins the heartbeats that a coordinator hears to one sample a minute
// and node, and brings the samples to the history in batches. It decides which
// heartbeats become samples and which are lost while the database is away; it reads no
// heartbeat itself and has no part in the history's position.
package sampler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

const (
	// every is the least time between two samples of a node. Heartbeats come each 10 s,
	// and some later than others: a sample is due a little before a minute has passed.
	every = time.Minute - 2*time.Second
	// most is the number of samples that wait: those of 10,000 nodes for 6 minutes. The
	// oldest go first.
	most = 60_000
	// mostNodes is the number of nodes whose last sample is remembered.
	mostNodes = 100_000
	// batch is the number of samples in one write.
	batch = 2000

	flushEvery   = 5 * time.Second
	writeTimeout = 20 * time.Second
	lastTimeout  = 2 * time.Second // of the write at the end
	firstRetry   = 5 * time.Second // doubling to lastRetry
	lastRetry    = time.Minute
)

// Write adds samples to the history, all or none. It blocks no longer than ctx.
type Write func(ctx context.Context, samples []history.Heartbeat) error

// Sampler keeps samples until they are written. Hear may be called from any goroutine.
type Sampler struct {
	write   Write
	log     *slog.Logger
	written prometheus.Counter
	dropped prometheus.Counter

	mu sync.Mutex
	// last is the instant of each node's last sample. Invariant: at most mostNodes.
	last map[resource.NodeID]time.Time
	// waiting are the samples in the order of their arrival. Invariant: at most most.
	waiting []history.Heartbeat
}

// New returns a sampler whose counters are in r; nil: they are not read.
func New(write Write, log *slog.Logger, r prometheus.Registerer) *Sampler {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "muster", Subsystem: "history", Name: name, Help: help})
	}
	s := &Sampler{
		write: write, log: log, last: map[resource.NodeID]time.Time{},
		written: counter("heartbeats_total", "Samples of heartbeats that were written to the database, one a minute and node."),
		dropped: counter("heartbeats_dropped_total", "Samples of heartbeats that were lost because the database did not take them in time."),
	}
	if r != nil {
		r.MustRegister(s.written, s.dropped)
	}
	return s
}

// Hear keeps a heartbeat as a sample if the node's last one is a minute old. It never
// blocks.
func (s *Sampler) Hear(h history.Heartbeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[h.Node]
	switch {
	case known && h.At.Sub(last) < every:
		return
	case !known && len(s.last) >= mostNodes:
		s.dropped.Inc()
		return
	}
	s.last[h.Node] = h.At
	s.keep([]history.Heartbeat{h})
}

// keep appends samples, and drops the oldest ones beyond the bound. mu is held.
func (s *Sampler) keep(samples []history.Heartbeat) {
	s.waiting = append(s.waiting, samples...)
	if over := len(s.waiting) - most; over > 0 {
		s.waiting = s.waiting[over:]
		s.dropped.Add(float64(over))
	}
}

// Run writes the samples every 5 s until ctx ends, and then the rest, within 2 s.
// While the database does not answer it tries again after 5 s, 10 s, … 60 s.
func (s *Sampler) Run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var retry time.Duration
	var retryAt time.Time
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
			defer cancel()
			if err := s.flush(last); err != nil {
				s.giveUp()
			}
			return
		case <-tick.C:
		}
		now := time.Now()
		s.forget(now)
		if now.Before(retryAt) {
			continue
		}
		err := s.flush(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if retry == 0 {
				s.log.Warn("history_heartbeats_wait", "error", err)
			}
			retry = min(max(2*retry, firstRetry), lastRetry)
			retryAt = time.Now().Add(retry)
		case retry > 0:
			s.log.Info("history_heartbeats_written_again")
			retry, retryAt = 0, time.Time{}
		}
	}
}

// flush writes all that waits, in batches. The batch of a write that failed waits again.
func (s *Sampler) flush(ctx context.Context) error {
	for {
		part := s.take()
		if len(part) == 0 {
			return nil
		}
		writing, cancel := context.WithTimeout(ctx, writeTimeout)
		err := s.write(writing, part)
		cancel()
		if err != nil {
			s.putBack(part)
			return err
		}
		s.written.Add(float64(len(part)))
	}
}

// take takes the oldest samples.
func (s *Sampler) take() []history.Heartbeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.waiting), batch)
	part := s.waiting[:n:n]
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return part
}

// putBack has samples wait before all others.
func (s *Sampler) putBack(part []history.Heartbeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	later := s.waiting
	s.waiting = part
	s.keep(later)
}

// forget removes nodes that have had no sample for two minutes.
func (s *Sampler) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, at := range s.last {
		if now.Sub(at) > 2*every {
			delete(s.last, node)
		}
	}
}

// giveUp counts the waiting samples as lost.
func (s *Sampler) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped.Add(float64(len(s.waiting)))
	s.waiting = nil
}
