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
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator"
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
	Namespaces map[string]coordinator.Namespace
	// MaxTxnOps is the store's limit; 0 is its default.
	MaxTxnOps int
	// Configure changes the configuration of every coordinator that starts.
	Configure func(*coordinator.Config)
}

// Cluster is a store, coordinators and agents. It ends with its test.
type Cluster struct {
	t       testing.TB
	options Options
	Store   *mem.Store
	token   rpcauth.Token
	net     *network
	log     *slog.Logger
	audit   *audit
	delayed sync.WaitGroup // Txns that are on their way
	dir     string         // of the agents' disks

	mu           sync.Mutex
	coordinators []*Coordinator
	agents       map[resource.NodeID]*Agent
	tap          func(Message) bool
	like         *fit.Host
}

// astray reads the coordinators' errors: a leader whose view is not what the
// agents told it has lost count.
type astray struct{ t testing.TB }

func (a astray) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("view_astray")) {
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
	out, level := io.Writer(astray{t}), slog.LevelError
	if testing.Verbose() && os.Getenv("MUSTER_TEST_VERBOSE") != "" {
		out, level = io.Writer(os.Stderr), slog.LevelDebug
	}
	c := &Cluster{
		t: t, options: o, Store: mem.Open(mem.Options{MaxTxnOps: o.MaxTxnOps}), token: token, net: newNetwork(),
		log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})), agents: map[resource.NodeID]*Agent{},
	}
	c.dir = t.TempDir() // before Cleanup, so that it goes after the agents have stopped
	c.audit = startAudit(t, c.Store, o.Namespaces)
	t.Cleanup(c.close)
	return c
}

// close ends every process, then the store.
func (c *Cluster) close() {
	for _, a := range c.Agents() {
		a.Stop()
	}
	for _, k := range c.Coordinators() {
		k.Stop()
	}
	c.delayed.Wait()
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
	deadline := time.Now().Add(Patience)
	for wait := time.Millisecond; ; wait = min(wait+wait/4, 250*time.Millisecond) {
		what, ok := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %v: %s", Patience, what)
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
			if k.alive() && k.Leading() {
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
