package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/level"
	"github.com/musterd/muster/resource"
)

// term runs one term of office: the leader, the one goroutine that owns it, and
// the parts that carry out its effects. Others reach the leader through do and
// post.
type term struct {
	*lead.Leader
	store   store.Store
	log     *slog.Logger
	metrics *metrics
	// mayResign asks whether the term may end for a node's sake, and records
	// that it does. sever isolates a node at the end of this term; letBack ends
	// that. follows is the view of a node in this coordinator's cache of the
	// store.
	mayResign func(resource.NodeID) bool
	sever     func(id resource.NodeID, detail string)
	letBack   func(resource.NodeID)
	follows   func(resource.NodeID) lead.NodeFacts
	// forgettable is the part of a compaction that nobody needs to wait for.
	forgettable func(resource.Revision) resource.Revision
	// office is the compare of the leader's key, epoch the term's.
	office record.Compare
	epoch  resource.Epoch
	// level is the feature level of the cluster during the term.
	level level.Level
	// holds reports whether the term still goes on by this host's clocks.
	holds func() bool
	// ctx ends with the term, for the goroutines that answer the loop later.
	ctx context.Context

	inbox  chan func()
	mail   *agents.Mailbox
	ended  chan struct{} // closed when the loop has ended
	commit *committer
	pool   *agents.Pool

	clock clock

	// The loop alone owns the fields below.
	effects []post.Effect               // reused
	clients map[post.Token]chan<- reply // each takes one reply without a wait
	asked   post.Token                  // the last client's
	alarm   *time.Timer
	told    map[resource.NodeID]lead.NodeFacts
	shares  map[resource.NodeID]*turnShare
	// observe sees each input before the leader takes it, nil for a pass; nil: nobody
	// does. Tests set it.
	observe func(now time.Time, in lead.Input)
	// observeLoad sees the input of the leader's load, observeEffects each list
	// of effects before the list is carried out. Tests set them.
	observeLoad    func(now time.Time, in lead.Loaded)
	observeEffects func([]post.Effect)
}

// inboxSize lets clients, timers and the store's answers run ahead of the loop a
// little; beyond it they wait. Agents' messages come through the mailbox.
const inboxSize = 1024

func newTerm(l *lead.Leader, s store.Store, log *slog.Logger, m *metrics) *term {
	t := &term{
		Leader: l, store: s, log: log, metrics: m,
		inbox: make(chan func(), inboxSize), mail: agents.NewMailbox(), ended: make(chan struct{}),
		alarm: time.NewTimer(time.Hour), clients: map[post.Token]chan<- reply{}, told: map[resource.NodeID]lead.NodeFacts{}, shares: map[resource.NodeID]*turnShare{},
	}
	t.forgettable = func(upto resource.Revision) resource.Revision { return upto }
	t.alarm.Stop()
	return t
}

// campaign leads again and again until ctx ends.
func (c *Coordinator) campaign(ctx context.Context) error {
	candidate := store.NewCandidate(c.store, c.config.Address, c.config.LeaseTTL).Knowing(c.store.Known())
	for {
		past := c.past.Load()
		var term *store.Leadership
		err := c.config.Era.Settle(ctx, c.store)
		if err == nil {
			term, err = c.store.Stand(ctx, candidate)
		}
		if err == nil {
			err = c.lead(ctx, term, past) // even if ctx has ended: it resigns
		} else {
			err = fmt.Errorf("%w: %w", errStoreAway, err)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the context ended it
		case c.store.Refusal() != nil: // logged once
			pause(ctx, time.Second)
		case errors.Is(err, errStoreAway), errors.Is(err, record.ErrWentBack):
			c.log.Warn("term_not_begun", "error", err)
			pause(ctx, time.Second)
		case err != nil:
			return err
		}
	}
}

// lead runs one term: load, recover, serve; until the term or ctx ends.
func (c *Coordinator) lead(ctx context.Context, office *store.Leadership, past int64) error {
	log := c.log.With("epoch", int64(office.Epoch))
	resign := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := office.Resign(ctx); err != nil {
			log.Debug("resign_failed", "error", err)
		}
	})
	defer resign()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := lead.Beginning{Rules: c.config.rules(), Epoch: office.Epoch, Held: office.Held(), MaxOps: c.store.MaxTxnOps(), Now: time.Now()}
	rand.Read(b.Seed[:])
	l := newTerm(lead.NewLeader(b), c.store, log, c.metrics)
	l.holds, l.office, l.epoch, l.ctx = office.Holds, office.Held(), office.Epoch, ctx
	l.forgettable = c.follower.CompactUpto
	l.mayResign, l.sever, l.letBack, l.follows = c.mayResign, c.disconnectViolator, c.letBack, c.follower.Facts
	l.mail.Waited = c.metrics.mailWaits.Inc
	l.commit = newCommitter(c.store, office.Held(), office.End, l.post)
	l.commit.writes = c.follower.Expect
	if c.config.observe != nil {
		c.config.observe(l, b)
	}
	var err error
	var from ranger = c.store
	if warm, ok := c.follower.Snapshot(ctx, office.Elected); ok { // model: mutants SUM_BEFORE_ELECTION, LIMIT_BEFORE_ELECTION
		from = warm
	}
	if err = c.store.Read(ctx, from); err != nil {
		return fmt.Errorf("coordinator %s: read the feature level: %w: %w", c.config.ID, errStoreAway, err)
	}
	l.level = c.store.Level()
	revision, err := l.load(ctx, from)
	if err != nil {
		return fmt.Errorf("coordinator %s: %w", c.config.ID, err)
	}
	l.commit.landed(revision) // answers are not older than the loaded state
	if err := l.prepare(ctx); err != nil {
		return fmt.Errorf("coordinator %s: %w: %w", c.config.ID, errStoreAway, err)
	}
	l.apply(lead.BeginAccount{})
	c.tellRestored(l, past)
	l.commit.start(ctx)
	l.pool = agents.NewPool(ctx, agents.Options{
		Cluster: c.config.Cluster, LeaderID: c.config.ID, Epoch: office.Epoch, Identity: l.identity,
		Deliver: l.mail.Put, Dial: c.config.DialAgents, Logger: log,
	})
	nodes, units, live, queued := l.Sizes()
	log.Info("leading", "nodes", nodes, "units", units, "live", live, "queued", queued)
	l.tellFollowed()
	l.apply(lead.ResumeWork{})
	go func() {
		select {
		case <-office.Done():
			log.Warn("leadership_lost", "error", office.Err())
			cancel()
		case <-ctx.Done():
		}
	}()
	c.begin(l, office, past)
	l.run(ctx)
	cancel()
	c.close()
	resign() // every write still on its way carries the compare of the key
	l.pool.Close()
	l.commit.wait()
	return nil
}

// open makes the term the one that serves, and its pool the one that connects.
func (c *Coordinator) open(l *term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = l.pool
	for node, spec := range l.Specifications() {
		c.learnTarget(node, spec.NodeSpec, spec.Revision)
	}
	for node := range c.targets {
		c.dial(node)
	}
	for node, is := range c.suspects {
		l.apply(lead.NodeSuspected{Node: node, Suspected: is})
	}
	c.term.Store(l)
	c.turn(time.Now())
	c.metrics.leads.Set(1)
	c.metrics.terms.Inc()
}

// turn wakes the calls that wait for a leader. c.mu is held.
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

// identity is a node's registration in the store.
func (t *term) identity(ctx context.Context, node resource.NodeID) (resource.Incarnation, resource.Revision, error) {
	key := record.NodeIdentityKey(node)
	kv, found, _, err := t.store.Get(ctx, key)
	if err != nil || !found {
		return resource.Incarnation{}, 0, err
	}
	identity, err := record.Decode[record.NodeIdentity](key, kv.Value)
	if err != nil || identity.Fenced {
		return resource.Incarnation{}, 0, err
	}
	return identity.Incarnation, kv.ModRev, nil
}
