// Package coordinator is the thin half of Muster: it is elected, rebuilds its
// view from the store, orders and places units, and drives their transactions
// against the agents (DESIGN.md section 5). It owns no durable state: kill it,
// start another, nothing is lost.
//
// One goroutine per term owns the view (leader). What is decided is decided in
// the packages below it: place, queue, quota, txn; what is durable is the
// store's.
package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// Coordinator campaigns for leadership and leads. It implements rest.Service.
type Coordinator struct {
	config  Config
	store   store.Store
	log     *slog.Logger
	metrics *metrics

	term          atomic.Pointer[leader] // nil while another leads
	leaderAddress atomic.Pointer[store.LeaderAddress]

	mu      sync.Mutex
	targets map[resource.NodeID]string // agents' addresses, as gossip tells them
	pool    *agents.Pool               // of the present term, or nil
}

// New returns a coordinator over a store. Metrics go to r, which may be nil.
func New(config Config, s store.Store, r prometheus.Registerer) (*Coordinator, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Coordinator{
		config: config, store: s, log: config.Logger.With("coordinator", config.ID),
		metrics: newMetrics(r), targets: map[resource.NodeID]string{},
	}, nil
}

// Leading reports whether this coordinator leads now.
func (c *Coordinator) Leading() bool { return c.term.Load() != nil }

// Alive asks the present term's loop for a sign of life; ctx bounds the wait. A
// coordinator that does not lead is alive.
func (c *Coordinator) Alive(ctx context.Context) error {
	l := c.term.Load()
	if l == nil {
		return nil
	}
	answered := make(chan struct{})
	go l.post(func() { close(answered) })
	select {
	case <-answered:
		return nil
	case <-l.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("coordinator %s: its loop does not answer: %w", c.config.ID, ctx.Err())
	}
}

// AgentSeen tells where a node's agent serves; gossip is the source. It is
// never believed beyond that: the agent has to prove itself on its stream.
func (c *Coordinator) AgentSeen(node resource.NodeID, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.targets[node] = addr
	if c.pool != nil {
		c.pool.SetTarget(node, addr)
	}
}

// NodeRegistered takes a registration that this coordinator has served.
func (c *Coordinator) NodeRegistered(id resource.NodeID, spec store.NodeSpec, rev resource.Revision) {
	if l := c.term.Load(); l != nil {
		l.post(func() {
			l.node(id).setSpec(spec, rev)
		})
	}
}

// NodeHeard takes a heartbeat that this coordinator has served.
func (c *Coordinator) NodeHeard(id resource.NodeID, usage resource.Vector) {
	if l := c.term.Load(); l != nil {
		l.post(func() {
			if n := l.nodes[id]; n != nil {
				n.usage = usage
			}
		})
	}
}

// Run campaigns and leads, again and again, until ctx ends. It returns an
// error only if the state in the store cannot be read.
func (c *Coordinator) Run(ctx context.Context) error {
	follow, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.followLeader(follow) })
	defer wg.Wait()
	defer stop()
	for {
		term, err := store.Campaign(ctx, c.store, c.config.Address, c.config.LeaseTTL)
		if err == nil {
			err = c.lead(ctx, term) // even if ctx has ended: it resigns
		} else {
			err = fmt.Errorf("%w: %w", errStoreAway, err)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errStoreAway):
			c.log.Warn("term_not_begun", "error", err)
			pause(ctx, time.Second)
		case err != nil:
			return err
		}
	}
}

// followLeader keeps the address that refused clients are told.
func (c *Coordinator) followLeader(ctx context.Context) {
	for ctx.Err() == nil {
		if l, found, err := store.CurrentLeader(ctx, c.store); err == nil && found {
			c.leaderAddress.Store(&l.Address)
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.config.LeaseTTL / 2):
		}
	}
}

// lead runs one term: load, recover, serve; until the term or ctx ends.
func (c *Coordinator) lead(ctx context.Context, term *store.Leadership) error {
	log := c.log.With("epoch", int64(term.Epoch))
	defer func() {
		resign, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := term.Resign(resign); err != nil {
			log.Debug("resign_failed", "error", err)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &leader{
		config: c.config, store: c.store, log: log, epoch: term.Epoch, ctx: ctx,
		inbox: make(chan func(), inboxSize), ended: make(chan struct{}),
		commit: newCommitter(c.store, term.Held()),
		nodes:  map[resource.NodeID]*node{}, units: map[string]*unit{}, jobs: map[string]*job{}, members: map[string]*member{},
		attempts: map[resource.TxID]*attempt{}, requests: map[string]request{}, quotas: newQuotas(c.config.Quota),
		generation: 1, leasedAt: time.Now(), hopeless: map[string]uint64{}, metrics: c.metrics,
	}
	live, err := l.load(ctx) // model: mutant SUM_BEFORE_ELECTION
	if err != nil {
		return fmt.Errorf("coordinator %s: %w", c.config.ID, err)
	}
	if err := l.prepare(ctx, term); err != nil {
		return fmt.Errorf("coordinator %s: %w: %w", c.config.ID, errStoreAway, err)
	}
	l.commit.start(ctx)
	l.pool = agents.NewPool(ctx, agents.Options{
		Cluster: c.config.Cluster, LeaderID: c.config.ID, Epoch: term.Epoch, Identity: l.identity,
		Deliver: l.deliver, Dial: c.config.DialAgents, Logger: log,
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
	c.open(l)
	l.run(ctx)
	c.close()
	l.pool.Close()
	l.commit.wait()
	return nil
}

// open makes the term the one that serves, and its pool the one that connects.
func (c *Coordinator) open(l *leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = l.pool
	for node, addr := range c.targets {
		c.pool.SetTarget(node, addr)
	}
	c.leaderAddress.Store(&c.config.Address)
	c.term.Store(l)
	c.metrics.leads.Set(1)
}

func (c *Coordinator) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = nil
	c.term.Store(nil)
	c.metrics.leads.Set(0)
}

// resume goes on with what earlier leaders began. It runs before the loop; the
// commands it sends reach agents as their streams open.
func (l *leader) resume(live []recovered) {
	for _, r := range live {
		l.perform(r.attempt, r.effects)
	}
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
	key := store.NodeIdentityKey(node)
	kv, found, _, err := l.store.Get(ctx, key)
	if err != nil || !found {
		return resource.Incarnation{}, 0, err
	}
	identity, err := store.Decode[store.NodeIdentity](key, kv.Value)
	if err != nil || identity.Fenced {
		return resource.Incarnation{}, 0, err
	}
	return identity.Incarnation, kv.ModRev, nil
}
