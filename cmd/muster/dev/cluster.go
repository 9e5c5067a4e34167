// Package dev runs a whole cluster in one process: a coordinator with its
// embedded etcd and any number of agents, on this host's own hardware or on
// that of a profile. Everything is the production code; only the wiring is
// here.
package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/nvml"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

// clusterName is the dev cluster's name; it shows in gossip labels only.
const clusterName = "dev"

// readyTimeout bounds how long a start may take; 100 nodes take seconds.
const readyTimeout = 60 * time.Second

// Config is a dev cluster.
type Config struct {
	Nodes int
	// Names are the ids of the first nodes of a profile, "" for node-0 and so on, as the
	// others are called.
	Names []string
	// Profile is "host", a built-in profile's name, or a file that ends in
	// .json.
	Profile string
	DataDir string // absolute; made with mode 0700 if need be
	// AssignmentsDir holds the nodes' assignment files; "" is their data folder.
	AssignmentsDir string
	Listen         string // REST; the rest takes free ports
	Version        string
	// Work is how the commands of jobs are started; nil starts none.
	Work *agent.RunConfig
	// NoContainers is why commands cannot run in root file systems of their own; nil: they can.
	NoContainers error
	// NoHistory leaves out the history of the cluster, which is else a SQLite file in DataDir.
	NoHistory bool
	Logger    *slog.Logger
	// Progress takes a line each time more nodes are ready.
	Progress func(ready, nodes int)
}

// Node is where one node of a dev cluster serves; dev.json lists them.
type Node struct {
	ID       resource.NodeID `json:"id"`
	Agent    string          `json:"agent"`
	Serf     string          `json:"serf"`
	SerfRPC  string          `json:"serfRPC"`
	Capacity string          `json:"capacity"`
	DataDir  string          `json:"dataDir"`
}

// Addresses is the content of <data-dir>/dev.json.
type Addresses struct {
	REST      string `json:"rest"` // URL
	GRPC      string `json:"grpc"`
	Serf      string `json:"serf"`
	SerfRPC   string `json:"serfRPC"` // of the coordinator
	Capacity  string `json:"capacity"`
	TokenFile string `json:"tokenFile"`
	// ClusterTokenFile's token is that of every serf RPC port.
	ClusterTokenFile string `json:"clusterTokenFile"`
	// CAFile holds the authorities that coordinator and agents trust, and
	// OperatorFile the private key and the certificate of an operator, in PEM:
	// with both an operator can ask an agent over gRPC for its own view.
	CAFile       string `json:"caFile"`
	OperatorFile string `json:"operatorFile"`
	Nodes        []Node `json:"nodes"`
}

// Cluster is a running dev cluster. Stop ends it.
type Cluster struct {
	Addresses  Addresses
	Token      string
	Discovered agent.Discovered // of the first node
	Client     *sdk.Client

	config Config
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error // capacity: one per part, so that none blocks
	daemon *daemon.Daemon
	agents []*agent.Agent
}

// hardware returns the hardware of each node.
func hardware(ctx context.Context, c Config) (func(node string) agent.Discovered, error) {
	if c.Profile == "host" {
		d, err := agent.Discover(ctx, agent.DiscoverOptions{})
		return func(string) agent.Discovered { return d }, err
	}
	profile, err := loadProfile(c.Profile)
	if err != nil {
		return nil, err
	}
	// The boot id is this kernel's: a dev cluster restarts with its host.
	host, err := agent.Discover(ctx, agent.DiscoverOptions{})
	if err != nil {
		return nil, err
	}
	topology := profile.Topology()
	return func(node string) agent.Discovered {
		return agent.Discovered{
			Host: sysfs.Host{Hostname: node, BootID: host.BootID, Kernel: host.Host.Kernel}, BootID: host.BootID, Topology: topology, Inventory: profile.Inventory(node),
		}
	}, nil
}

func loadProfile(name string) (fake.Profile, error) {
	if filepath.Ext(name) != ".json" {
		p, err := fake.Lookup(name)
		if err != nil {
			return fake.Profile{}, fmt.Errorf("--profile: %w", err)
		}
		return p, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fake.Profile{}, fmt.Errorf("--profile: %w", err)
	}
	p, err := fake.ParseProfile(data)
	if err != nil {
		return fake.Profile{}, fmt.Errorf("--profile %s: %w", name, err)
	}
	return p, nil
}

// Start brings the cluster up and returns when every node is ready.
func Start(ctx context.Context, c Config) (*Cluster, error) {
	hw, err := hardware(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	admin, adminFile, err := tokenIn(c.DataDir, "token")
	if err != nil {
		return nil, err
	}
	cluster, clusterFile, err := tokenIn(c.DataDir, "cluster-token")
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var history daemon.History
	if !c.NoHistory {
		history.DSN = "sqlite:" + filepath.Join(c.DataDir, "history.db")
	}
	d := &Cluster{config: c, cancel: cancel, Token: admin.Secret(), failed: make(chan error, c.Nodes+1)}
	d.daemon, err = daemon.New(ctx, daemon.Config{
		ID: "dev", Cluster: clusterName, DataDir: filepath.Join(c.DataDir, "coordinator"), RESTListen: c.Listen,
		GRPCListen: "127.0.0.1:0", SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0", SerfRPC: gossip.RPC{Addr: "127.0.0.1:0", Token: cluster.Secret()},
		TLS:        &daemon.TLSConfig{Dir: filepath.Join(c.DataDir, "tls")},
		History:    history,
		AdminToken: admin, RequestsPerMinute: gate.DefaultRequests, Profile: gossip.Local, EndsTogether: true, Version: c.Version, Logger: c.Logger, StartsWork: c.Work != nil,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	d.wg.Go(func() { d.failed <- d.daemon.Run(run) })
	d.Addresses = Addresses{
		REST: "http://" + d.daemon.RESTAddr(), GRPC: d.daemon.GRPCAddr(), Serf: d.daemon.SerfAddr(), SerfRPC: d.daemon.SerfRPCAddr(), Capacity: d.daemon.CapacityAddr(),
		TokenFile: adminFile, ClusterTokenFile: clusterFile,
	}
	if err := d.bringUp(ctx, run, hw, cluster.Secret()); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// bringUp starts the agents and waits for them.
func (d *Cluster) bringUp(ctx, run context.Context, hw func(string) agent.Discovered, serfToken string) error {
	secured, err := d.secure(ctx, hw)
	if err != nil {
		return err
	}
	if d.Client, err = sdk.NewClient(sdk.Config{Endpoint: d.Addresses.REST, Token: d.Token}); err != nil {
		return err
	}
	var like *fit.Host
	for i := range d.config.Nodes {
		name := d.nodeName(i, hw)
		found := hw(name)
		if i == 0 {
			d.Discovered = found
		}
		identity, err := agent.NewIdentity(secured.Nodes[resource.NodeID(name)], secured.GossipKeys)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		a, err := d.startAgent(run, name, found, like, identity, serfToken)
		if err != nil {
			return err
		}
		like = a.Host()
	}
	if err := d.awaitReady(ctx); err != nil {
		return err
	}
	for i, a := range d.agents {
		n := Node{ID: resource.NodeID(d.nodeName(i, hw)), Agent: a.Address(), DataDir: d.nodeDir(d.nodeName(i, hw))}
		if r := a.Rings(); r != nil {
			n.Serf, n.SerfRPC, n.Capacity = r.Serf.Addr(), r.Serf.RPCAddr(), r.Capacity.Addr()
		}
		d.Addresses.Nodes = append(d.Addresses.Nodes, n)
	}
	return writeAddresses(filepath.Join(d.config.DataDir, "dev.json"), d.Addresses)
}

// secure gives every node its certificate, which is kept in memory, and writes
// an operator's.
func (d *Cluster) secure(ctx context.Context, hw func(string) agent.Discovered) (daemon.Secured, error) {
	names := make([]resource.NodeID, 0, d.config.Nodes)
	for i := range d.config.Nodes {
		names = append(names, resource.NodeID(d.nodeName(i, hw)))
	}
	secured, err := d.daemon.Secure(ctx, names, "dev")
	if err != nil {
		return secured, err
	}
	operator, err := folder.Open(filepath.Join(d.config.DataDir, "tls", "operator"))
	if err != nil {
		return secured, err
	}
	d.Addresses.CAFile, d.Addresses.OperatorFile = filepath.Join(d.config.DataDir, "tls", "ca.pem"), operator.PartyPath()
	return secured, operator.Save(folder.Party(secured.Operator))
}

// nodeName is the host's own name for the host, node-0… for a profile without names.
func (d *Cluster) nodeName(i int, hw func(string) agent.Discovered) string {
	if d.config.Profile == "host" {
		return nodeIDOf(hw("").Host.Hostname)
	}
	if i < len(d.config.Names) && d.config.Names[i] != "" {
		return d.config.Names[i]
	}
	return fmt.Sprintf("node-%d", i)
}

func (d *Cluster) nodeDir(name string) string {
	return filepath.Join(d.config.DataDir, "nodes", name)
}

func (d *Cluster) startAgent(run context.Context, name string, found agent.Discovered, like *fit.Host, identity *agent.Identity, serfToken string) (*agent.Agent, error) {
	deps := agent.Deps{Discovered: found, HostLike: like, Identity: identity, Log: d.config.Logger}
	if d.config.Profile == "host" {
		deps.Watch = agent.WatchDevices(agent.DiscoverOptions{}, nvml.WatchOptions{})
	} else { // a node of a profile has no usage to measure and no driver to watch
		deps.Usage = func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil }
	}
	assignments := ""
	if d.config.AssignmentsDir != "" {
		assignments = filepath.Join(d.config.AssignmentsDir, name)
	}
	a, err := agent.New(agent.Config{
		AssignmentsDir: assignments,
		Cluster:        clusterName, Node: resource.NodeID(name), Version: d.config.Version, DataDir: d.nodeDir(name), Listen: "127.0.0.1:0",
		Labels:  map[string]string{"profile": profileLabel(d.config.Profile)},
		Orphans: agent.OrphansConfig{Enabled: d.config.Profile == "host", Ignore: agent.DefaultIgnore}, Run: d.runConfig(), Attach: d.attachConfig(name),
		Gossip: &agent.GossipConfig{
			SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0", Join: []string{d.Addresses.Serf}, Profile: gossip.Local, EndsTogether: true,
			RPC: gossip.RPC{Addr: "127.0.0.1:0", Token: serfToken},
		},
	}, deps)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	d.agents = append(d.agents, a)
	d.wg.Go(func() {
		if err := a.Run(run); err != nil {
			d.failed <- fmt.Errorf("node %s: %w", name, err)
		}
	})
	return a, nil
}

// runConfig is how an agent starts commands. CPUs of a profile are not those of this
// host.
func (d *Cluster) runConfig() *agent.RunConfig {
	if d.config.Work == nil {
		return nil
	}
	c := *d.config.Work
	c.Affinity = d.config.Profile == "host"
	return &c
}

// awaitReady polls until every node is ready.
func (d *Cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := -1
	for {
		ready := 0
		if nodes, err := d.Client.Nodes().List(ctx, sdk.ListOptions{}); err == nil {
			for _, n := range nodes.Items {
				if n.Status.Phase == "Ready" {
					ready++
				}
			}
		}
		if ready >= d.config.Nodes {
			return nil
		}
		if ready != last && d.config.Progress != nil {
			d.config.Progress(ready, d.config.Nodes)
		}
		last = ready
		select {
		case err := <-d.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes became ready within %s: %w", ready, d.config.Nodes, readyTimeout, ctx.Err())
		case <-tick.C:
		}
	}
}

// Failed delivers the error that ended a part before Stop.
func (d *Cluster) Failed() <-chan error { return d.failed }

// Stop ends agents and coordinator and waits for them.
func (d *Cluster) Stop() error {
	d.cancel()
	d.wg.Wait()
	var errs []error
	for len(d.failed) > 0 {
		errs = append(errs, <-d.failed)
	}
	return errors.Join(errs...)
}

// describe words the hardware of a node.
func describe(found agent.Discovered) []string {
	t := found.Topology
	lines := []string{fmt.Sprintf("%d socket(s), %d NUMA node(s), %d cores, %d CPUs, %s memory",
		t.Sockets(), len(t.Nodes), t.Cores(), t.Threads(), humanBytes(t.Memory()))}
	switch {
	case found.NoDriver != "":
		lines = append(lines, found.NoDriver)
	case len(found.Inventory.Devices) == 0:
		lines = append(lines, "no GPUs")
	default:
		counts := map[string]int{}
		var order []string
		for _, g := range found.Inventory.Devices {
			if counts[g.Model]++; counts[g.Model] == 1 {
				order = append(order, g.Model)
			}
		}
		for _, m := range order {
			lines = append(lines, fmt.Sprintf("%d × %s", counts[m], m))
		}
	}
	return append(lines, found.Warnings...)
}

func humanBytes(b resource.Bytes) string { return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30)) }
