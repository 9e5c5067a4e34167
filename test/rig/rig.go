// Package rig runs real coordinators and real agents in one process, over the
// store in memory and connections in memory, and lets a test lose, see and
// stop whatever it wants: messages on the agents' streams, answers of the
// store, processes at any point. It decides nothing about scheduling; it
// checks the invariants of PROTOCOL.md section 2 while the test runs.
//
// Everything runs on the clock of the goroutine that made it, so that inside a
// testing/synctest bubble leases, budgets and patience cost no real time.
package rig

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// ClusterName is what leaders and agents of a rig call their cluster.
const ClusterName = "rig"

// Patience bounds the waits of Eventually and of all that is built on it.
const Patience = 2 * time.Minute

// Options of a cluster. The zero value is one without limits.
type Options struct {
	Namespaces map[string]lead.Namespace
	// MaxTxnOps is the store's limit; 0 is its default.
	MaxTxnOps int
	// Configure changes the configuration of every coordinator that starts.
	Configure func(*coordinator.Config)
	// Equip changes the configuration of every agent's process that starts.
	Equip func(*agent.Config, *agent.Deps)
	// ApproveGrowth: nodes that register more than before wait for an operator.
	ApproveGrowth bool
	// Rings lets agents and coordinators find each other through gossip, over a
	// network in memory; otherwise they know each other.
	Rings bool
	// Supervise starts an agent again a second after it ended by itself.
	Supervise bool
	// Heartbeat of the agents; 0 is a minute.
	Heartbeat time.Duration
	// Patience replaces the constant of that name where it is set.
	Patience time.Duration
	// Poll bounds the time between two looks of Eventually; 0 is 250 ms.
	Poll time.Duration
}

func (o Options) heartbeat() time.Duration { return cmp.Or(o.Heartbeat, time.Minute) }

// Cluster is a store, coordinators and agents. It ends with its test.
type Cluster struct {
	t       testing.TB
	options Options
	Store   *mem.Store
	token   rpcauth.Token
	net     *network
	air     *air
	log     *slog.Logger
	audit   *audit
	delayed sync.WaitGroup // Txns that are on their way
	busy    sync.WaitGroup // steps that their hook holds
	dir     string         // of the agents' disks

	mu           sync.Mutex
	coordinators []*Coordinator
	agents       map[resource.NodeID]*Agent
	tap          func(Message) bool
	step         func(Step) error
	closed       bool // nothing is started again
	like         *fit.Host
}

// astray reads a coordinator's errors: a leader whose view is not what the
// agents told it has lost count. One that is paused thinks nothing.
type astray struct {
	t    testing.TB
	proc *process
}

func (a astray) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("view_astray")) && !a.proc.paused() {
		a.t.Errorf("%s", line)
	}
	return len(line), nil
}

// New returns a cluster without processes.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	token, err := rpcauth.NewToken("0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		t: t, options: o, Store: mem.Open(mem.Options{MaxTxnOps: o.MaxTxnOps}), token: token, net: newNetwork(),
		log: logTo(io.Discard), agents: map[resource.NodeID]*Agent{},
	}
	c.air = &air{net: c.net, members: map[string]*radio{}}
	c.dir = t.TempDir() // before Cleanup, so that it goes after the agents have stopped
	c.audit = startAudit(t, c.Store, o.Namespaces)
	t.Cleanup(c.close)
	return c
}

// logTo writes errors to w, and everything to standard error instead where that
// is asked for.
func logTo(w io.Writer) *slog.Logger {
	level := slog.LevelError
	if testing.Verbose() && os.Getenv("MUSTER_TEST_VERBOSE") != "" {
		w, level = os.Stderr, slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// over reports whether the cluster is being closed.
func (c *Cluster) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// close ends every process, then the store.
func (c *Cluster) close() {
	c.OnStep(nil)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, a := range c.Agents() {
		a.Stop()
	}
	for _, k := range c.Coordinators() {
		k.Stop()
		if wrong := k.account.failure(); wrong != "" {
			c.t.Errorf("%s: %s", k.ID, wrong)
		}
	}
	c.delayed.Wait()
	c.busy.Wait()
	if c.options.Rings {
		// memberlist's probes end with their time, not with the ring.
		<-time.NewTimer(time.Minute).C
	}
	c.audit.stop()
	if err := c.Store.Close(); err != nil {
		c.t.Error(err)
	}
}

// Agents returns all agents, in order of their nodes.
func (c *Cluster) Agents() []*Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	agents := make([]*Agent, 0, len(c.agents))
	for _, node := range slices.Sorted(maps.Keys(c.agents)) {
		agents = append(agents, c.agents[node])
	}
	return agents
}

// Agent returns one agent that was started before.
func (c *Cluster) Agent(node resource.NodeID) *Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agents[node]
}

// Coordinators returns all coordinators that were started, the stopped ones
// included, in that order.
func (c *Cluster) Coordinators() []*Coordinator {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.coordinators)
}

// Bring starts coordinator "c1" and n agents "n1"…, each a dgx-a100 of 8 GPUs,
// and waits until all nodes are ready.
func (c *Cluster) Bring(n int) *Coordinator {
	c.t.Helper()
	k := c.StartCoordinator("c1")
	for i := range n {
		c.StartAgent(resource.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	c.AwaitReady(n)
	return k
}

// profile is the hardware of every node.
func profile() (fake.Profile, error) { return fake.Lookup("dgx-a100") }

// Eventually waits until cond holds; what is in the failure's message.
func (c *Cluster) Eventually(what string, cond func() bool) {
	c.t.Helper()
	c.await(func() (string, bool) { return what, cond() })
}

// await polls until done; the last message says what never came.
func (c *Cluster) await(done func() (string, bool)) {
	c.t.Helper()
	patience := cmp.Or(c.options.Patience, Patience)
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; ; wait = min(wait+wait/4, cmp.Or(c.options.Poll, 250*time.Millisecond)) {
		what, ok := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %v: %s", patience, what)
		}
		<-time.NewTimer(wait).C
	}
}

// Leader waits for a coordinator that leads and returns it.
func (c *Cluster) Leader() *Coordinator {
	c.t.Helper()
	var leader *Coordinator
	c.Eventually("a coordinator leads", func() bool {
		for _, k := range c.Coordinators() {
			if k.Up() && k.Leading() {
				leader = k
			}
		}
		return leader != nil
	})
	return leader
}

// AwaitReady waits until the leader says that n nodes are ready.
func (c *Cluster) AwaitReady(n int) {
	c.t.Helper()
	c.Eventually(fmt.Sprintf("%d nodes are ready", n), func() bool {
		list, err := c.Leader().ListNodes(c.t.Context())
		if err != nil {
			return false
		}
		ready := 0
		for _, node := range list.Items {
			if node.Status.Phase == "Ready" {
				ready++
			}
		}
		return ready == n
	})
}
