package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/coordinator/store/storetest"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/canary"
	"github.com/musterd/muster/test/prerequisite"
	"github.com/musterd/muster/test/programs"
)

// The ports of every host: the programs' defaults.
const (
	RESTPort           = 8470
	GRPCPort           = 8471
	AgentPort          = 8472
	metricsPort        = 8473
	agentSerfPort      = 7946
	agentCapacityPort  = 7947
	leaderSerfPort     = 7948
	leaderCapacityPort = 7949
	serfRPCPort        = 7373
	EtcdPort           = 2379
	etcdPeerPort       = 2380
)

// GossipPorts are those of both rings.
func GossipPorts() []int {
	return []int{agentSerfPort, agentCapacityPort, leaderSerfPort, leaderCapacityPort}
}

const (
	adminToken = canary.Mark + "-0123456789abcdef-operator"
	// Patience bounds what takes a few seconds on an idle machine.
	Patience = 2 * time.Minute
)

// Settings is a config file's content.
type Settings = map[string]any

// Options say what a cluster consists of. The zero value of a field is its
// default.
type Options struct {
	Etcd         int           // members; 3
	Coordinators int           // 3
	Agents       int           // 4
	GPUs         int           // of each agent; 8
	LeaseTTL     time.Duration // of the leader; 2 s
	// Namespaces is the coordinators' setting of that name.
	Namespaces Settings
	// CoordinatorSettings are added to the configuration of each coordinator.
	CoordinatorSettings Settings
	// AgentDir returns the folder of an agent's data; "" is one of the test's.
	AgentDir func(node resource.NodeID) string
	// AgentSettings are added to the configuration of an agent; nil adds none.
	AgentSettings func(node resource.NodeID) Settings
	// Quiet leaves the store unwitnessed: for benchmarks.
	Quiet bool
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *int
		value int
	}{{&o.Etcd, 3}, {&o.Coordinators, 3}, {&o.Agents, 4}, {&o.GPUs, 8}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.LeaseTTL == 0 {
		o.LeaseTTL = 2 * time.Second
	}
	return o
}

// Cluster is the processes of one cluster, all started.
type Cluster struct {
	Options      Options
	Etcd         []*Process
	Coordinators []*Process
	Agents       []*Agent
	// Store is the test's own connection; it is no part of the cluster.
	Store   store.Store
	Client  *Client
	Witness *Witness

	t        testing.TB
	net      *network
	dir      string
	began    time.Time
	storeTLS etcd.TLS     // of the store's clients
	caFile   string       // of the cluster's authority
	operator *rpcauth.TLS // the test itself
	// clients counts those made.
	clients atomic.Int32
}

// Agent is an agent's process and what its host is made of.
type Agent struct {
	*Process
	Node resource.NodeID
	// Dir is the data folder, Boot the file with the kernel's boot id.
	Dir, Boot string
}

// Start starts a cluster and returns once all its nodes are ready. It ends with
// the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		prerequisite.Missing(t, "%v", err)
	}
	c := &Cluster{Options: o.withDefaults(), t: t, dir: t.TempDir(), began: time.Now()}
	c.net = newNetwork(t)
	t.Cleanup(func() { canary.JudgeFiles(t, c.dir) }) // once all programs have ended
	writeFile(t, filepath.Join(c.dir, "admin-token"), adminToken+"\n")
	c.startEtcd()
	c.connect()
	c.startCoordinators()
	c.startTrust()
	c.startAgents()
	if !o.Quiet {
		c.Witness = startWitness(c)
	}
	c.AwaitReady()
	t.Cleanup(c.judgeMetrics)
	return c
}

// Processes are all of them: members of the store, coordinators, agents.
func (c *Cluster) Processes() []*Process {
	all := append(slices.Clone(c.Etcd), c.Coordinators...)
	for _, a := range c.Agents {
		all = append(all, a.Process)
	}
	return all
}

// Hosts are those of processes.
func Hosts(processes ...*Process) []*Host {
	var hosts []*Host
	for _, p := range processes {
		hosts = append(hosts, p.Host)
	}
	return hosts
}

// AgentHosts are those of all agents.
func (c *Cluster) AgentHosts() []*Host {
	var hosts []*Host
	for _, a := range c.Agents {
		hosts = append(hosts, a.Host)
	}
	return hosts
}

// Fault puts these faults of the network in force in place of all that were;
// none heals it.
func (c *Cluster) Fault(faults ...Fault) { c.net.set(faults...) }

// Heal ends every fault: of the network, and of processes that were killed or
// paused.
func (c *Cluster) Heal() {
	c.t.Helper()
	if c.net.private {
		c.Fault()
	}
	for _, p := range c.Processes() {
		p.Restart()
	}
}

// LosePower is what a power cut does to an agent: the process ends, and the
// kernel that comes back is another one. The disk keeps what was written. In a
// network that is shared it is the same as a kill.
func (c *Cluster) LosePower(a *Agent) {
	a.Kill()
	writeBoot(c.t, a.Boot)
}

// Wipe kills an agent and removes everything that it had on disk, as does a new
// disk in a host that has to be started again. What ran there has ended. A new
// token lets it have a certificate again.
func (c *Cluster) Wipe(a *Agent) {
	c.LosePower(a)
	if err := os.RemoveAll(a.Dir); err != nil {
		c.t.Fatal(err)
	}
	c.admit(a.Node, true)
}

// Leader returns the process that the store names as leader, nil while there is
// none, and its epoch.
func (c *Cluster) Leader(ctx context.Context) (*Process, resource.Epoch) {
	l, found, err := storetest.CurrentLeader(ctx, c.Store)
	if err != nil || !found {
		return nil, 0
	}
	for _, p := range c.Coordinators {
		if p.Name == l.Address.ID {
			return p, l.Epoch
		}
	}
	return nil, 0
}

// AwaitLeader waits until a coordinator of an epoch above this one leads.
func (c *Cluster) AwaitLeader(above resource.Epoch) (*Process, resource.Epoch) {
	c.t.Helper()
	var leader *Process
	var epoch resource.Epoch
	programs.Eventually(c.t, Patience, "a coordinator leads", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if leader, epoch = c.Leader(ctx); leader == nil || epoch <= above {
			return fmt.Errorf("epoch is %d", epoch)
		}
		return nil
	})
	return leader, epoch
}

// Followers are the coordinators that are not the leader.
func (c *Cluster) Followers(leader *Process) []*Process {
	return slices.DeleteFunc(slices.Clone(c.Coordinators), func(p *Process) bool { return p == leader })
}

// AwaitReady waits until every node is ready.
func (c *Cluster) AwaitReady() {
	c.t.Helper()
	programs.Eventually(c.t, Patience, fmt.Sprintf("%d nodes are ready", len(c.Agents)), c.unready)
}

// unready says which nodes are not.
func (c *Cluster) unready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := c.Client.Nodes(ctx)
	if err != nil {
		return err
	}
	var phases []string
	ready := 0
	for _, n := range list.Items {
		phases = append(phases, n.Metadata.Name+" "+n.Status.Phase)
		if n.Status.Phase == "Ready" {
			ready++
		}
	}
	if ready != len(c.Agents) {
		return fmt.Errorf("%d are: %v", ready, phases)
	}
	return nil
}

// endpoint is a client of one coordinator, with the administrator's token.
func (c *Cluster) endpoint(p *Process) *sdk.Client { return c.endpointOf(p, adminToken) }

// endpointOf is a client of one coordinator, with a token.
func (c *Cluster) endpointOf(p *Process, token string) *sdk.Client {
	client, err := sdk.NewClient(sdk.Config{
		Endpoint: "https://" + p.Address(RESTPort), Token: token, HTTPClient: &http.Client{Transport: c.transport()},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}
