package coordinator

import (
	"context"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
)

// figuresWait bounds the time that a scrape waits for the loop: less than the usual
// timeout of a scrape, 10 s.
const figuresWait = 5 * time.Second

// countFigures counts the figures in visits to the loop of a millisecond each, so that
// other inputs do not wait for the count.
func (t *term) countFigures(ctx context.Context) (*lead.Figures, error) {
	var count *lead.FiguresCount
	if err := t.visit(ctx, func() { count = t.Leader.CountFigures() }); err != nil {
		return nil, err
	}
	for done := false; !done; {
		if err := t.visit(ctx, func() { done = count.Step() }); err != nil {
			return nil, err
		}
	}
	return count.Figures(), nil
}

// Figures returns a copy of the present term's figures, nil where this coordinator
// does not lead, or its loop does not answer within figuresWait.
func (c *Coordinator) Figures() *lead.Figures {
	t := c.serving()
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresWait)
	defer cancel()
	f, err := t.countFigures(ctx)
	if err != nil {
		return nil
	}
	return f
}

// recentFor is how long figures serve the requests of clients.
const recentFor = time.Second

// recentFigures are the figures that were taken last, for the requests of clients.
type recentFigures struct {
	mu sync.Mutex
	// of is the term of the figures; at is their time.
	of      resource.Epoch
	at      time.Time
	figures *lead.Figures
}

// recentFigures returns the present term's figures, at most recentFor old: many
// requests cost the leader one count.
func (c *Coordinator) recentFigures(ctx context.Context) (*lead.Figures, error) {
	t, err := c.leading()
	if err != nil {
		return nil, err
	}
	r := &c.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == t.epoch && time.Since(r.at) < recentFor {
		return r.figures, nil
	}
	f, err := t.countFigures(ctx)
	if err != nil {
		return nil, failure(err)
	}
	r.of, r.at, r.figures = t.epoch, time.Now(), f
	return f, nil
}
