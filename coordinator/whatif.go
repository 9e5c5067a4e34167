package coordinator

import (
	"context"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/whatif"
)

// mostQuestions bounds the questions that are answered at one time: each has a copy
// of the scheduling state, and takes a processor.
const mostQuestions = 2

// beginQuestion waits until another question may be answered; done ends it.
func (c *Coordinator) beginQuestion(ctx context.Context) (done func(), err error) {
	select {
	case c.questions <- struct{}{}:
		return func() { <-c.questions }, nil
	case <-ctx.Done():
		return nil, failure(ctx.Err())
	}
}

// WhatIf answers what would happen to an allocation, or to a job's first unit that
// waits: whether it would start, whether it ever can, and what would help. The answer
// is nil for a unit that does not wait. ahead counts the units in front of it that are
// about to be tried. The leader's loop takes a snapshot, and no more.
func (c *Coordinator) WhatIf(ctx context.Context, namespace, name string) (answer *whatif.Answer, ahead int, err error) {
	done, err := c.beginQuestion(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	q, err := ask[*lead.Question](ctx, c, lead.AskWhatIf{Namespace: namespace, Name: name})
	if err != nil {
		return nil, 0, err
	}
	answer, ahead = q.Answer()
	return answer, ahead, nil
}
