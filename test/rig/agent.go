package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
)

// Agent is one host: its disk, its boots and its agent process.
type Agent struct {
	Node resource.NodeID

	cluster *Cluster

	mu    sync.Mutex
	boots int
	dir   string
	wipes int
	run   *agentRun // nil while the process is down
}

type agentRun struct {
	agent    *agent.Agent
	listener *bufconn.Listener
	cancel   context.CancelFunc
	ended    chan error // capacity 1
}

// StartAgent starts a new host with its agent and tells every coordinator.
func (c *Cluster) StartAgent(node resource.NodeID) *Agent {
	c.t.Helper()
	a := &Agent{Node: node, cluster: c, dir: filepath.Join(c.dir, string(node)), boots: 1}
	c.mu.Lock()
	c.agents[node] = a
	coordinators := c.coordinators
	c.mu.Unlock()
	a.Start()
	for _, k := range coordinators {
		if k.alive() {
			k.AgentSeen(node, string(node))
		}
	}
	return a
}

// Start starts the agent's process on what its disk holds.
func (a *Agent) Start() {
	a.cluster.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != nil {
		return
	}
	hardware, err := profile()
	if err != nil {
		a.cluster.t.Fatal(err)
	}
	c := a.cluster
	r := &agentRun{listener: c.net.listen(string(a.Node)), ended: make(chan error, 1)}
	dir := filepath.Join(a.dir, fmt.Sprintf("disk-%d", a.wipes))
	topology := hardware.Topology()
	c.mu.Lock()
	like := c.like
	c.mu.Unlock()
	r.agent, err = agent.New(agent.Config{
		Cluster: ClusterName, Node: a.Node, Version: "rig", DataDir: dir, Coordinators: []string{"c1", "c2"},
		Heartbeat: time.Minute, HeldSync: time.Millisecond, Headroom: 64 << 10,
	}, agent.Deps{
		Discovered: agent.Discovered{
			Host: sysfs.Host{Hostname: string(a.Node)}, BootID: fmt.Sprintf("boot-%d", a.boots),
			Topology: topology, Inventory: hardware.Inventory(string(a.Node)),
		},
		HostLike: like, Token: c.token, Listener: r.listener, Address: string(a.Node), Dialer: c.net.dial,
		Usage: func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil },
		Log:   c.log, Now: time.Now, JournalFS: disk{filepath.Join(dir, "journal")},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.like = r.agent.Host()
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- r.agent.Run(ctx) }()
	a.run = r
}

// Stop ends the process. Its disk keeps what it wrote, as after a kill -9.
func (a *Agent) Stop() {
	a.cluster.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == nil {
		return
	}
	a.cluster.net.unplug(string(a.Node), a.run.listener)
	a.run.cancel()
	if err := <-a.run.ended; err != nil {
		a.cluster.t.Errorf("agent %s: %v", a.Node, err)
	}
	a.run = nil
}

// Restart is Stop and Start.
func (a *Agent) Restart() { a.Stop(); a.Start() }

// Reboot restarts the host: another kernel, hence another incarnation.
func (a *Agent) Reboot() {
	a.Stop()
	a.mu.Lock()
	a.boots++
	a.mu.Unlock()
	a.Start()
}

// Replace restarts the host with an empty disk.
func (a *Agent) Replace() {
	a.Stop()
	a.mu.Lock()
	a.boots++
	a.wipes++
	a.mu.Unlock()
	a.Start()
}

// Snapshot is what the agent holds; false while it is down.
func (a *Agent) Snapshot() (rpc.Snapshot, bool) {
	a.mu.Lock()
	r := a.run
	a.mu.Unlock()
	if r == nil {
		return rpc.Snapshot{}, false
	}
	s, err := r.agent.Snapshot(context.Background())
	return s, err == nil
}

// Incarnation is that of the running process.
func (a *Agent) Incarnation() resource.Incarnation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == nil {
		return resource.Incarnation{}
	}
	return a.run.agent.Incarnation()
}

// disk is a folder whose files are never synced: power does not fail here.
type disk struct{ dir string }

func (d disk) Open(name string, create bool) (journal.File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Join(d.dir, name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

func (d disk) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to))
}

func (disk) SyncDir() error { return nil }

type diskFile struct{ *os.File }

func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f diskFile) Sync() error { return nil }

func (f diskFile) Allocate(end int64) error {
	size, err := f.Size()
	if err != nil || size >= end {
		return err
	}
	return f.Truncate(end)
}
