package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/lead"
)

// figuresWait bounds the time that a scrape waits for the loop.
const figuresWait = time.Second

// Figures returns a copy of the present term's figures, nil where this coordinator
// does not lead, or its loop does not answer within figuresWait.
func (c *Coordinator) Figures() *lead.Figures {
	t := c.serving()
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresWait)
	defer cancel()
	taken := make(chan *lead.Figures, 1) // the loop never waits for a scrape
	if err := t.visit(ctx, func() { taken <- t.Leader.Figures() }); err != nil {
		return nil
	}
	return <-taken
}
