package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource"
)

// Agent is one host: its disk, its boots and its agent process.
type Agent struct {
	Node resource.NodeID

	cluster *Cluster
	dir     string // of what is not in memory: the journal's lock and the assignment files

	mu    sync.Mutex
	boots int
	wipes int
	disk  *disk
	run   *agentRun // nil before the first start; may have ended
}

// agentRun is one process.
type agentRun struct {
	proc     *process
	listener *listener
	ctx      context.Context
	cancel   context.CancelFunc
	agent    atomic.Pointer[agent.Agent] // nil until its journal is open
	asked    atomic.Bool                 // somebody ended it
	ended    chan struct{}               // closed when nothing of it runs any more
}

func (r *agentRun) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// StartAgent starts a new host with its agent and tells every coordinator.
func (c *Cluster) StartAgent(node resource.NodeID) *Agent {
	c.t.Helper()
	a := &Agent{Node: node, cluster: c, dir: filepath.Join(c.dir, string(node)), boots: 1, disk: newDisk()}
	c.mu.Lock()
	c.agents[node] = a
	coordinators := c.coordinators
	c.mu.Unlock()
	a.Start()
	for _, k := range coordinators {
		if !c.options.Rings {
			k.AgentSeen(node, string(node))
		}
	}
	return a
}

// Start starts the agent's process on what its disk holds, unless it runs.
func (a *Agent) Start() {
	c := a.cluster
	c.t.Helper()
	a.mu.Lock()
	if a.run != nil && !a.run.over() || c.over() {
		a.mu.Unlock()
		return
	}
	r := &agentRun{proc: &process{name: string(a.Node)}, ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.listener = c.net.listen(string(a.Node), r.proc)
	a.run = r
	config, deps := a.settings(r)
	a.mu.Unlock()
	started, err := agent.New(config, deps)
	if err != nil {
		a.gone(r, err)
		return
	}
	r.agent.Store(started)
	c.mu.Lock()
	c.like = started.Host()
	c.mu.Unlock()
	go func() { a.gone(r, started.Run(r.ctx)) }()
}

// settings is called with mu held.
func (a *Agent) settings(r *agentRun) (agent.Config, agent.Deps) {
	c := a.cluster
	hardware, err := profile()
	if err != nil {
		panic("rig: " + err.Error()) // of a profile that is built in
	}
	c.mu.Lock()
	like := c.like
	c.mu.Unlock()
	config := agent.Config{
		Cluster: ClusterName, Node: a.Node, Version: "rig", DataDir: filepath.Join(a.dir, fmt.Sprintf("disk-%d", a.wipes)),
		Coordinators: c.known(), Heartbeat: c.options.heartbeat(), HeldSync: time.Millisecond, Headroom: 64 << 10,
		Gossip: c.agentGossip(r.proc),
	}
	deps := agent.Deps{
		Discovered: agent.Discovered{
			Host: sysfs.Host{Hostname: string(a.Node)}, BootID: fmt.Sprintf("boot-%d", a.boots),
			Topology: hardware.Topology(), Inventory: hardware.Inventory(string(a.Node)),
		},
		HostLike: like, Token: c.token, Listener: r.listener, Address: c.address(string(a.Node)), Dialer: c.net.dialer(string(a.Node), r.proc),
		Usage: func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil },
		Log:   c.log, Now: time.Now, JournalFS: mount{a.disk, a, r.proc}, AssignmentFS: folder{mount{a.disk, a, r.proc}},
	}
	if c.options.Equip != nil {
		c.options.Equip(&config, &deps)
	}
	return config, deps
}

// Assigned lists the transactions whose assignments launchers on the host see,
// ascending: what may run there, whether the agent does or not.
func (a *Agent) Assigned() []resource.TxID {
	entries, err := os.ReadDir(a.assignments())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.cluster.t.Error(err)
	}
	var txs []resource.TxID
	for _, e := range entries {
		name, found := strings.CutSuffix(e.Name(), ".json")
		if !found {
			continue
		}
		tx, err := url.PathUnescape(name)
		if err != nil {
			a.cluster.t.Error(err)
		}
		txs = append(txs, resource.TxID(tx))
	}
	return txs
}

// Ending is the notice in the files of the only assignment on the host; false where there
// is another number of assignments, or no notice.
func (a *Agent) Ending() (end handoff.End, ok bool) {
	txs := a.Assigned()
	if len(txs) != 1 {
		return end, false
	}
	var document struct{ End handoff.End }
	text, err := os.ReadFile(filepath.Join(a.assignments(), url.PathEscape(string(txs[0]))+".json"))
	if err != nil || json.Unmarshal(text, &document) != nil {
		return end, false
	}
	return document.End, document.End != handoff.End{}
}

// gone is called once when a process has ended.
func (a *Agent) gone(r *agentRun, err error) {
	a.cluster.net.unplug(string(a.Node), r.listener)
	close(r.ended)
	switch {
	case r.asked.Load():
	case a.cluster.options.Supervise:
		time.AfterFunc(time.Second, a.Start)
	case err != nil:
		a.cluster.t.Errorf("agent %s: %v", a.Node, err)
	}
}

// Stop ends the process, which gives back what it holds of the host.
func (a *Agent) Stop() { a.end(false) }

// Crash ends the process as kill -9 does: nothing more of it reaches the disk
// or the network. Its disk keeps what it wrote.
func (a *Agent) Crash() { a.end(true) }

// Kill is Crash without waiting until the remains have ended; it may be called
// from a step of the process itself.
func (a *Agent) Kill() {
	if r := a.process(); r != nil {
		r.proc.kill()
		a.cluster.net.sever(r.proc)
		go a.end(true)
	}
}

// Pause stops the process for a while, as SIGSTOP does.
func (a *Agent) Pause(d time.Duration) {
	if r := a.process(); r != nil {
		r.proc.pause()
		time.AfterFunc(d, r.proc.resume)
	}
}

// Disconnect breaks every connection of the process.
func (a *Agent) Disconnect() {
	if r := a.process(); r != nil {
		a.cluster.net.sever(r.proc)
	}
}

func (a *Agent) process() *agentRun {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.run
}

func (a *Agent) end(kill bool) {
	r := a.process()
	if r == nil {
		return
	}
	r.asked.Store(true)
	if kill {
		r.proc.kill()
		a.cluster.net.sever(r.proc)
	}
	r.proc.resume()
	a.cluster.net.unplug(string(a.Node), r.listener)
	r.cancel()
	<-r.ended
}

// Restart is Stop and Start.
func (a *Agent) Restart() { a.Stop(); a.Start() }

// Reboot restarts the host: another kernel, hence another incarnation.
func (a *Agent) Reboot() {
	a.Stop()
	a.boot(0)
}

// PowerCycle takes the power away and brings it back: what the disk had not
// made durable is lost.
func (a *Agent) PowerCycle() {
	a.Crash()
	a.disk.lose()
	a.boot(0)
}

// Replace restarts the host with an empty disk.
func (a *Agent) Replace() {
	a.Stop()
	a.boot(1)
}

func (a *Agent) boot(wipes int) {
	a.cluster.audit.restarted(a.Node)
	a.mu.Lock()
	a.boots++
	a.wipes += wipes
	if wipes > 0 {
		a.disk = newDisk()
	}
	a.mu.Unlock()
	a.Start()
}

// Snapshot is what the agent holds; false while it is down.
func (a *Agent) Snapshot() (rpc.Snapshot, bool) {
	r := a.process()
	if r == nil || r.over() || r.proc.paused() {
		return rpc.Snapshot{}, false
	}
	running := r.agent.Load()
	if running == nil {
		return rpc.Snapshot{}, false
	}
	s, err := running.Snapshot(context.Background())
	return s, err == nil
}

// Up reports whether the process runs and is not paused.
func (a *Agent) Up() bool {
	r := a.process()
	return r != nil && !r.over() && !r.proc.paused()
}

// Incarnation is that of the present or the last process.
func (a *Agent) Incarnation() resource.Incarnation {
	r := a.process()
	if r == nil || r.agent.Load() == nil {
		return resource.Incarnation{}
	}
	return r.agent.Load().Incarnation()
}
