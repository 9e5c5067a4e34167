package access

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// Bounds of the wait for other coordinators.
const (
	// settleFor bounds how long a change waits for the coordinators to follow.
	settleFor = 5 * time.Second
	// settleLook is the time between two questions to a coordinator.
	settleLook = 25 * time.Millisecond
)

// Peers are the other coordinators, for Settled.
type Peers struct {
	Roster service.Roster
	// Reach waits until this coordinator has followed to a revision.
	Reach func(ctx context.Context, revision int64) error
	// Ask asks the coordinator at a REST address for its state.
	Ask func(ctx context.Context, address string) (api.Coordinator, error)
}

// Settled waits until each live coordinator has followed to a revision, for at most
// settleFor, and returns the names of the others. A coordinator that ends meanwhile is
// waited for until the store lists it no more: its lease is over then, and it answers
// nobody.
func (p Peers) Settled(ctx context.Context, at resource.Revision) (missing []string) {
	// The change is done: a client that goes away does not end the wait of others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	self := p.Roster.Self().ID
	note := func(id string, followed bool) {
		if !followed {
			mu.Lock()
			missing = append(missing, id)
			mu.Unlock()
		}
	}
	wg.Go(func() { note(self, p.Reach(ctx, int64(at)) == nil) })
	for _, c := range p.Roster.Candidates() {
		if c.ID != self {
			wg.Go(func() { note(c.ID, p.follows(ctx, c, at)) })
		}
	}
	wg.Wait()
	slices.Sort(missing)
	return missing
}

// follows waits until a coordinator has followed to a revision, or is gone.
func (p Peers) follows(ctx context.Context, c api.Coordinator, at resource.Revision) bool {
	for {
		if said, err := p.Ask(ctx, c.REST); err == nil && said.Revision >= int64(at) {
			return true
		}
		gone := !slices.ContainsFunc(p.Roster.Candidates(), func(other api.Coordinator) bool { return other.ID == c.ID })
		if gone {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(settleLook):
		}
	}
}
