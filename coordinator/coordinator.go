package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Coordinator campaigns for leadership and leads. It implements service.Service.
type Coordinator struct {
	config  Config
	store   *store.Guarded
	log     *slog.Logger
	metrics *metrics

	follower *follow.Follower
	rights   *access.Table        // as the follower has followed
	term     atomic.Pointer[term] // nil while another leads
	retired  chan struct{}        // closed: it campaigns no more
	resigned chan struct{}        // closed once it leads no more, for good
	past     atomic.Int64         // how often the store was restored from a backup
	// questions has an entry for each question that is being answered; see beginQuestion.
	questions chan struct{}
	recent    recentFigures
	logs      *agents.Logs
	readers   *semaphore.Weighted // of output, at the agents
	execs     *agents.Execs
	sessions  chan struct{} // one for each session of execs

	mu       sync.Mutex
	targets  map[resource.NodeID]target // of registered nodes
	suspects map[resource.NodeID]bool   // as gossip reports
	pool     *agents.Pool               // of the present term, or nil
	turned   chan struct{}              // closed and replaced when a term begins or ends
	since    time.Time                  // when the present term began to serve
	back     *record.WentBackError      // a restoration that no term's account has yet, or nil
	// deposers are agents because of which a term has ended since the last
	// restoration, resignedAt is when one did; see leader.refused.
	deposers   map[resource.NodeID]bool
	resignedAt time.Time
}

// New returns a coordinator over a store. Metrics go to r, which may be nil.
func New(config Config, s store.Store, r prometheus.Registerer) (*Coordinator, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	guarded, is := s.(*store.Guarded)
	if !is {
		guarded = store.Guard(s, config.NewestLevel, config.Logger)
	}
	c := &Coordinator{
		config: config, store: guarded, log: config.Logger.With("coordinator", config.ID),
		metrics: newMetrics(r), targets: map[resource.NodeID]target{}, suspects: map[resource.NodeID]bool{},
		retired: make(chan struct{}), resigned: make(chan struct{}), turned: make(chan struct{}), questions: make(chan struct{}, mostQuestions),
	}
	c.rights = access.NewTable(c.log)
	c.logs, c.readers = &agents.Logs{Cluster: config.Cluster, Dial: config.DialAgents}, semaphore.NewWeighted(mostLogReaders)
	c.execs, c.sessions = &agents.Execs{Cluster: config.Cluster, Dial: config.DialAgents}, make(chan struct{}, mostSessions)
	c.follower = follow.New(follow.Options{
		Rights: c.rights, Noted: config.Noted, NamespaceAllocations: config.NamespaceAllocations,
		Name: config.ID, Store: guarded, Log: c.log, Check: config.LeaseTTL / 2, Leads: c.Leading, Forget: c.onStoreRestored, Registered: c.heardOfAgent,
		Moved: func(at resource.Revision) { c.metrics.cached.Set(float64(at)); config.Era.Moved(at) },
		Saw: func(kv *record.KV) {
			config.Era.Saw(kv)
			if l := c.term.Load(); guarded.Saw(kv) && l != nil {
				l.commit.deposed(store.ErrLevelChanged)
			}
		},
		Reborn: func() { // the next term isolates the nodes registered before
			if l := c.term.Load(); l != nil {
				l.commit.deposed(record.ErrWentBack)
			}
		},
	})
	return c, nil
}

// Leading reports whether this coordinator leads now.
func (c *Coordinator) Leading() bool { return c.serving() != nil }

// serving is the present term, nil while another leads. A term whose lease may
// have ended is none, even before it has noticed.
func (c *Coordinator) serving() *term {
	if l := c.term.Load(); l != nil && l.holds() {
		return l
	}
	return nil
}

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

// AgentSuspected reports that gossip believes a node dead, or alive again.
// While gossip believes it dead, the node is the last choice of placement;
// nothing else follows from it.
func (c *Coordinator) AgentSuspected(node resource.NodeID, is bool) {
	c.mu.Lock()
	_, registered := c.targets[node]
	switch before := c.suspects[node]; {
	case before == is, is && !registered && len(c.suspects) >= mostSuspects:
		c.mu.Unlock()
		return
	case is:
		c.suspects[node] = true
	default:
		delete(c.suspects, node)
	}
	c.mu.Unlock()
	if l := c.term.Load(); l != nil {
		l.tell(lead.NodeSuspected{Node: node, Suspected: is})
	}
}

// NodeRegistered takes a registration that this coordinator has served.
func (c *Coordinator) NodeRegistered(id resource.NodeID, spec record.NodeSpec, rev resource.Revision) {
	c.registeredAt(id, spec, rev)
	if l := c.term.Load(); l != nil {
		l.tell(lead.NodeRegistered{Node: id, Spec: spec, Revision: rev})
	}
}

// Run follows the store, campaigns and leads, again and again, until ctx ends.
// It returns an error only if the state in the store cannot be read.
func (c *Coordinator) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { c.follower.Run(ctx) })
	wg.Go(func() { c.config.Era.Run(ctx) })
	candidacy, retire := context.WithCancel(ctx)
	defer retire()
	wg.Go(func() {
		select {
		case <-c.retired:
			retire()
		case <-ctx.Done():
		}
	})
	err := c.campaign(candidacy)
	close(c.resigned)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// Retire ends this coordinator's term, so that the next candidate leads at
// once, and all campaigning. It goes on to answer requests, as a follower. It
// returns once it leads no more, or when ctx ends. It is called at most once.
func (c *Coordinator) Retire(ctx context.Context) {
	close(c.retired)
	select {
	case <-c.resigned:
	case <-ctx.Done():
	}
}
