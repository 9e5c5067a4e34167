package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

var (
	_ service.Peer   = (*Coordinator)(nil)
	_ service.Roster = (*Coordinator)(nil)
)

// Leader implements service.Peer: the coordinator that leads, once it does. Of
// another one this coordinator knows that it was elected, not that it serves
// already or still.
func (c *Coordinator) Leader(ctx context.Context) (service.Leader, error) {
	for {
		c.mu.Lock()
		turned := c.turned
		c.mu.Unlock()
		if l := c.serving(); l != nil {
			return service.Leader{ID: c.config.ID, Address: c.config.Address.REST, GRPC: c.config.Address.GRPC, Epoch: int64(l.epoch), Own: true}, nil
		}
		found, changed := c.follower.Candidates()
		if len(found) > 0 && found[0].Address.ID != c.config.ID {
			return leaderOf(found[0]), nil
		}
		select {
		case <-turned:
		case <-changed:
		case <-ctx.Done():
			return service.Leader{}, c.elsewhere()
		}
	}
}

func leaderOf(l store.Leader) service.Leader {
	return service.Leader{ID: l.Address.ID, Address: l.Address.REST, GRPC: l.Address.GRPC, Epoch: int64(l.Epoch)}
}

// Patience is how long a request may wait for a leader: a dead one's lease, and
// the time that the next one takes to begin.
func (c *Coordinator) Patience() time.Duration { return c.config.LeaseTTL + 1500*time.Millisecond }

// Reach implements service.Peer.
func (c *Coordinator) Reach(ctx context.Context, revision int64) error {
	return c.follower.Reach(ctx, resource.Revision(revision))
}

// CatchUp waits until everything is followed here that was acknowledged before the call.
func (c *Coordinator) CatchUp(ctx context.Context) error {
	_, err := c.follower.Fresh(ctx)
	return err
}

// Revision is not older than anything this coordinator has answered as the
// leader; 0 while another leads.
func (c *Coordinator) Revision() int64 {
	if l := c.term.Load(); l != nil {
		return l.commit.newest.Load()
	}
	return 0
}

// Rights are the access tokens and the role bindings, as this coordinator has followed
// the store.
func (c *Coordinator) Rights() *access.Table { return c.rights }

// Self implements service.Roster.
func (c *Coordinator) Self() api.Coordinator {
	at, _ := c.follower.At()
	self := api.Coordinator{
		ID: c.config.ID, Role: api.FollowerRole, Revision: int64(at), REST: c.config.Address.REST, GRPC: c.config.Address.GRPC,
	}
	if l := c.serving(); l != nil {
		c.mu.Lock()
		self.Role, self.Epoch, self.Since = api.LeaderRole, int64(l.epoch), c.since.UTC().Format(time.RFC3339)
		c.mu.Unlock()
	}
	return self
}

// Candidates implements service.Roster.
func (c *Coordinator) Candidates() []api.Coordinator {
	found, _ := c.follower.Candidates()
	all := make([]api.Coordinator, 0, len(found))
	for _, f := range found {
		all = append(all, api.Coordinator{ID: f.Address.ID, Epoch: int64(f.Epoch), REST: f.Address.REST, GRPC: f.Address.GRPC})
	}
	return all
}

// Ready reports whether this coordinator can answer: it leads, or its cache has
// been loaded, and this coordinator knows the feature level of the cluster.
func (c *Coordinator) Ready(context.Context) error {
	if err := c.store.Refusal(); err != nil {
		return api.Errorf(503, "coordinator %s: %v", c.config.ID, err)
	}
	if at, _ := c.follower.At(); at == 0 && !c.Leading() {
		return c.elsewhere()
	}
	return nil
}
