// Package resttest is a service.Service for tests of the API and its clients: the
// real leader (coordinator/lead) over a store in memory, with agents of real
// ledgers, all in the process. Writes land at once, agents answer at once, and
// nothing runs on their hosts. There are no goroutines; timers alone act
// between two requests.
//
// RunQuotas is the contract that every service.Quotas keeps, whichever way it is
// reached.
package resttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// Cluster is the service. All methods are safe for concurrent use.
type Cluster struct {
	now   func() time.Time
	store *mem.Store
	held  record.Compare // of the leader's key

	mu      sync.Mutex
	leader  *lead.Leader
	inputs  []lead.Input // that the leader has not taken yet
	agents  map[resource.NodeID]*alone.Agent
	told    map[resource.NodeID]lead.NodeFacts
	clients map[post.Token]chan<- reply // each takes one reply without a wait
	asked   post.Token                  // the last client's
	changed chan struct{}               // closes at the next change of the store
	// cache is the objects of seen, the store's keys by name.
	cache   *objects.Cache
	seen    map[string]record.KV
	shows   *shows                    // the events of the writes
	output  map[string][]api.LogChunk // of jobs
	endless []string                  // jobs whose output does not end

	reached time.Time // the time is this at least: a timer has gone off
	wakeAt  time.Time // when the leader wants to be woken, zero for never
	timer   *time.Timer
	still   bool // no timer goes off
}

var _ service.Service = (*Cluster)(nil)

// mostAllocations is the limit of a namespace that has none of its own.
const mostAllocations = 10_000

// New builds a cluster; now is its clock. Where that stands still, time goes on
// only when a request has waited.
func New(now func() time.Time, nodes ...Node) *Cluster {
	c := &Cluster{
		now: now, store: mem.Open(mem.Options{}), agents: map[resource.NodeID]*alone.Agent{}, told: map[resource.NodeID]lead.NodeFacts{},
		clients: map[post.Token]chan<- reply{}, changed: make(chan struct{}), cache: objects.New(), shows: newShows(now()),
	}
	c.cache.BoundAllocations(mostAllocations)
	key := record.LeaderKey(1)
	elected := c.write(record.Txn{Then: []record.Op{record.Put(key, nil)}})
	c.held = record.CreateRevIs(key, elected)
	for _, n := range nodes {
		c.agents[n.Name] = c.register(n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lead(resource.Epoch(elected))
	for _, n := range nodes {
		c.inputs = append(c.inputs, c.agents[n.Name].Hello())
	}
	c.settle()
	return c
}

// lead begins the one term.
func (c *Cluster) lead(epoch resource.Epoch) {
	c.leader = lead.NewLeader(lead.Beginning{
		Rules: lead.Rules{
			Id: "resttest", NamespaceAllocations: mostAllocations, VoteBudget: 2 * time.Second, ReservationTTL: 10 * time.Second,
			EvictionGrace: lead.DefaultGrace * time.Second, RecordRetention: 10 * time.Minute,
		},
		Epoch: epoch, Held: c.held, MaxOps: c.store.MaxTxnOps(), Now: c.time(),
	})
	loaded := lead.Loaded{Nodes: c.keys(record.NodesPrefix)}
	effects, err := c.leader.Load(c.time(), loaded, nil)
	must(err)
	c.carryOut(effects)
	c.inputs = append(c.inputs, lead.ConfigWritten{}, lead.BeginAccount{}, lead.ResumeWork{})
}

// StandStill keeps timers that are due later than at once from going off: the time is that
// of the clock of New, however long a test takes.
func (c *Cluster) StandStill() *Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = true
	c.arm()
	return c
}

// time is now, or when a timer went off last.
func (c *Cluster) time() time.Time {
	if now := c.now(); now.After(c.reached) {
		return now
	}
	return c.reached
}

// keys are the keys below a prefix.
func (c *Cluster) keys(prefix string) []record.KV {
	kvs, _, err := c.store.Range(context.Background(), prefix, store.RangeOptions{})
	must(err)
	return kvs
}

func (c *Cluster) key(key string) (kv record.KV, found bool, at resource.Revision) {
	kv, found, at, err := c.store.Get(context.Background(), key)
	must(err)
	return kv, found, at
}

// write writes what no compare can refuse.
func (c *Cluster) write(t record.Txn) resource.Revision {
	result, err := c.store.Txn(context.Background(), t)
	must(err)
	if !result.Succeeded {
		panic(fmt.Sprintf("resttest: the store refused %+v", t))
	}
	c.shows.take(t.Then, result.Revision, c.time())
	return result.Revision
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("resttest: %v", err))
	}
}

// Store is the store behind the cluster, for readers of their own.
func (c *Cluster) Store() *mem.Store { return c.store }
