package projector

import (
	"context"
	"errors"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/spool"
)

// This file brings batches to the database, or to the spool.

// advance begins the next write, if there is one.
func (p *Projector) advance(ctx context.Context) {
	now := time.Now()
	if p.inflight != nil {
		if now.Sub(p.inflight.since) > slowWrite && p.term.due(now) {
			p.spoolFlight()
			p.spill()
		}
		return
	}
	if now.Before(p.retryAt) {
		if p.term.due(now) {
			p.spill()
		}
		return
	}
	if p.spool.Len() > 0 {
		if !p.known {
			return // act asks for the position first
		}
		b, found, err := p.spool.First()
		if err != nil || !found {
			p.log.Error("history_spool_unreadable", "error", err)
			p.must(p.spool.Clear()) // the rows are made again, or there is a gap
			p.restart()
			return
		}
		p.send(ctx, b, true)
		return
	}
	if p.term != nil && p.term.blind && !p.away {
		p.restart() // the database has all slices now
		return
	}
	if p.term.due(now) {
		p.send(ctx, p.term.take(now), false)
	}
}

// send writes a batch in the background.
func (p *Projector) send(ctx context.Context, b history.Batch, spooled bool) {
	if b.After < p.position && b.Upto > p.position && p.known {
		b.After = p.position // rows that the history has already change nothing
	}
	p.inflight = &flight{batch: b, since: time.Now(), spooled: spooled}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		p.written <- p.config.Warehouse.Write(ctx, b)
	}()
}

// land takes the outcome of a write.
func (p *Projector) land(ctx context.Context, err error) {
	f := p.inflight
	p.inflight = nil
	var other *history.PositionError
	switch {
	case err == nil:
		p.recover()
		p.position, p.known = f.batch.Upto, true
		p.must(p.spool.DropUpto(f.batch.Upto))
		p.metrics.wrote(&f.batch)
		if !f.spooled {
			p.mark = f.batch.Mark
		}
	case errors.As(err, &other):
		p.recover()
		p.log.Info("history_position_moved", "history_at", int64(other.Has), "after", int64(other.After))
		p.position, p.known = other.Has, true
		p.must(p.spool.DropUpto(other.Has))
		switch {
		case other.Has > f.batch.After && other.Has < f.batch.Upto:
			p.send(ctx, f.batch, f.spooled)
		case other.Has < f.batch.After: // the database was set back
			p.must(p.spool.Clear())
			p.restart()
		}
	default:
		p.fail(err)
		if !f.spooled {
			p.keep(f.batch)
		}
	}
}

// spoolFlight has the spool keep the batch that the database has not answered for.
func (p *Projector) spoolFlight() {
	if f := p.inflight; f != nil && !f.spooled {
		f.spooled = p.keep(f.batch)
	}
}

// spill moves the rows of the term into the spool.
func (p *Projector) spill() {
	if p.term == nil || p.term.narrator == nil || p.inflight != nil && !p.inflight.spooled {
		return
	}
	if b := p.term.take(time.Now()); b.Upto > b.After {
		p.keep(b)
	}
}

// keep appends a batch to the spool. Where the spool is full, or its disk fails, the term
// begins again behind the last batch that is durable, once there is room: until then the
// store keeps the changes, within bounds.
func (p *Projector) keep(b history.Batch) bool {
	err := p.spool.Append(b)
	if err == nil {
		p.mark = b.Mark
		return true
	}
	var full *spool.FullError
	if !errors.As(err, &full) {
		p.metrics.errors.Inc()
	}
	p.log.Error("history_not_spooled", "error", err, "after", int64(b.After), "upto", int64(b.Upto))
	p.restart()
	return false
}

// restart has the term begin anew from the durable position.
func (p *Projector) restart() {
	if p.term != nil {
		p.term.stop()
		p.term.retryAt = time.Now().Add(firstRetry)
	}
}
