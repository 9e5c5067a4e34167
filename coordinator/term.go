package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// campaign leads again and again until ctx ends.
func (c *Coordinator) campaign(ctx context.Context) error {
	candidate := store.NewCandidate(c.store, c.config.Address, c.config.LeaseTTL)
	for {
		past := c.past.Load()
		term, err := candidate.Campaign(ctx)
		if err == nil {
			err = c.lead(ctx, term, past) // even if ctx has ended: it resigns
		} else {
			err = fmt.Errorf("%w: %w", errStoreAway, err)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case errors.Is(err, errStoreAway), errors.Is(err, record.ErrWentBack):
			c.log.Warn("term_not_begun", "error", err)
			pause(ctx, time.Second)
		case err != nil:
			return err
		}
	}
}

// lead runs one term: load, recover, serve; until the term or ctx ends.
func (c *Coordinator) lead(ctx context.Context, term *store.Leadership, past int64) error {
	log := c.log.With("epoch", int64(term.Epoch))
	resign := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := term.Resign(ctx); err != nil {
			log.Debug("resign_failed", "error", err)
		}
	})
	defer resign()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &leader{
		config: c.config, store: c.store, log: log, epoch: term.Epoch, holds: term.Holds, ctx: ctx,
		inbox: make(chan func(), inboxSize), ended: make(chan struct{}),
		view:       newView(c.config.Quota, resource.Revision(term.Epoch)),
		generation: 1, leasedAt: time.Now(), hopeless: map[string]uint64{}, metrics: c.metrics,
		unheard: map[resource.TxID]map[resource.NodeID]bool{}, doubtful: map[resource.TxID]bool{}, leased: c.follower.leased,
		mayResign: c.mayResign, sever: c.sever, letBack: c.letBack, identityAt: c.follower.identityAt,
		mail: agents.NewMailbox(),
	}
	l.status, l.banOf = c.follower.status, c.follower.banned
	l.mail.Waited = c.metrics.mailWaits.Inc
	l.commit = newCommitter(c.store, term.Held(), term.End, l.post)
	var from ranger = c.store
	if warm, ok := c.follower.snapshot(ctx, term.Elected); ok { // model: mutants SUM_BEFORE_ELECTION, LIMIT_BEFORE_ELECTION
		from = warm
	}
	live, err := l.load(ctx, from)
	if err != nil {
		return fmt.Errorf("coordinator %s: %w", c.config.ID, err)
	}
	if err := l.prepare(ctx, term); err != nil {
		return fmt.Errorf("coordinator %s: %w: %w", c.config.ID, errStoreAway, err)
	}
	l.keepAccount()
	c.tellRestored(l, past)
	l.commit.start(ctx)
	l.pool = agents.NewPool(ctx, agents.Options{
		Cluster: c.config.Cluster, LeaderID: c.config.ID, Epoch: term.Epoch, Identity: l.identity,
		Deliver: l.mail.Put, Dial: c.config.DialAgents, Logger: log,
	})
	log.Info("leading", "nodes", len(l.nodes), "units", len(l.units), "live", len(live), "queued", l.queue.Len())
	l.resume(live)
	go func() {
		select {
		case <-term.Done():
			log.Warn("leadership_lost", "error", term.Err())
			cancel()
		case <-ctx.Done():
		}
	}()
	c.begin(l, term, past)
	l.run(ctx)
	cancel()
	c.close()
	resign() // whatever is still on its way carries the compare of the key
	l.pool.Close()
	l.commit.wait()
	return nil
}

// open makes the term the one that serves, and its pool the one that connects.
func (c *Coordinator) open(l *leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = l.pool
	for node, n := range l.nodes {
		c.learnTarget(node, n.spec, n.specRev)
	}
	for node := range c.targets {
		c.dial(node)
	}
	for node, suspected := range c.suspects {
		if n := l.nodes[node]; n != nil {
			n.view.Suspect = suspected
		}
	}
	c.term.Store(l)
	c.turn(time.Now())
	c.metrics.leads.Set(1)
	c.metrics.terms.Inc()
}

// turn wakes whoever waits for a leader. c.mu is held.
func (c *Coordinator) turn(since time.Time) {
	c.since = since
	close(c.turned)
	c.turned = make(chan struct{})
}

func (c *Coordinator) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = nil
	c.term.Store(nil)
	c.turn(time.Time{})
	c.metrics.leads.Set(0)
}

// resume goes on with what earlier leaders began. It runs before the loop; the
// commands it sends reach agents as their streams open.
func (l *leader) resume(live []recovered) {
	for _, r := range live {
		l.perform(r.attempt, r.effects)
	}
	l.awaitAdoptions()
	for _, j := range l.jobs {
		if c := j.record.Cancelled; c != nil {
			for _, u := range j.units {
				l.end(u, txn.ReleaseAsked{GraceSeconds: c.GraceSeconds, Reason: c.Reason})
			}
			l.finishJob(j)
		}
	}
}

// identity is what the store has registered for a node.
func (l *leader) identity(ctx context.Context, node resource.NodeID) (resource.Incarnation, resource.Revision, error) {
	key := record.NodeIdentityKey(node)
	kv, found, _, err := l.store.Get(ctx, key)
	if err != nil || !found {
		return resource.Incarnation{}, 0, err
	}
	identity, err := record.Decode[record.NodeIdentity](key, kv.Value)
	if err != nil || identity.Fenced {
		return resource.Incarnation{}, 0, err
	}
	return identity.Incarnation, kv.ModRev, nil
}
