package agent

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/crun"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// RunConfig lets an agent start the processes of grants.
type RunConfig struct {
	// Program becomes a supervisor (shim.Become); absolute.
	Program string
	// User is the user of all processes; nil is the agent's own. It is unused with Users.
	User *shim.User
	// Users has the user of each tenant's processes; nil: User is that of all.
	Users *users.Table
	// Env is the environment that work begins with, as NAME=VALUE.
	Env []string
	// Dir is the working directory of work that names none; "" is "/".
	Dir string
	// Affinity: the processes may run on their assigned CPUs alone, and take memory from
	// their NUMA nodes first. Not for hardware that is simulated.
	Affinity bool
	// Launcher starts the supervisors; nil forks Program. Controllers are those of the
	// cgroups that the launcher gives to members.
	Launcher    run.Launcher
	Controllers bounds.Controllers
	// DeviceFiles is the root of the host, by which members get rules about devices; nil:
	// they have none. Devices are patterns of files that all members may open.
	DeviceFiles fs.FS
	Devices     []string
	// Tasks bounds the processes and threads of a member; 0: no bound.
	Tasks int64
	// Containers are root file systems that commands may run in; nil for none.
	Containers *Containers
	// NoContainers is why the host runs no containers, where the operator wants them; else nil.
	NoContainers error
	// Prolog and Epilog are those of run.Config.
	Prolog, Epilog func(ctx context.Context, f shim.Folder, env []string) error
}

// NotEnforced names the parts of a grant that bind no process here.
func (c *RunConfig) NotEnforced() []string {
	return slices.Concat(bounds.NotEnforced(c.Controllers, c.Affinity, c.DeviceFiles != nil), crun.NotEnforced(c.runsContainers() && c.Containers.Init == ""))
}

// ordinaryTerminal is the kind of a command's terminal where its job names none.
const ordinaryTerminal = "xterm"

// mostHosts bounds MUSTER_HOSTS, in bytes: the kernel takes 128 KiB in a variable.
const mostHosts = 120 << 10

// openRunner finds the work of earlier agents.
func (a *Agent) openRunner() error {
	c := a.config.Run
	switch {
	case c == nil && a.config.Attach == nil:
		return nil
	case c == nil: // it follows attached work alone
		c = &RunConfig{}
	}
	var signal func(context.Context, shim.Process, syscall.Signal) error
	if a.config.Attach != nil {
		signal = a.config.Attach.Signal
	}
	var err error
	a.runner, err = run.Open(run.Config{
		Signal: signal,
		Root:   filepath.Join(a.config.DataDir, "run"), Program: c.Program, BootID: a.deps.Discovered.BootID, Log: a.log, Now: a.deps.Now, Devices: a.devicesNow, Launcher: c.Launcher, Prolog: c.Prolog, Epilog: c.Epilog,
		// Nothing is of interest to an owner that has ended.
		Changed: func(ctx context.Context, tx resource.TxID) { _ = a.owner.send(ctx, item{worked: tx}) },
	})
	return err
}

// devicesNow is the present use of the devices and instances. The processes on a device
// are known where the agent looks for orphans. Without the ledger there is no use: the
// members that share a device are not known then. devicesNow blocks until the owner answers.
func (a *Agent) devicesNow(ctx context.Context) map[string]run.DeviceNow {
	list := map[string]run.DeviceNow{}
	now := a.uses.Load()
	if now == nil {
		return list
	}
	view, err := a.view(ctx, nil)
	if err != nil {
		return list
	}
	sharers := sharersOf(view)
	seen := a.seen()
	for uuid, use := range *now {
		d := run.DeviceNow{Use: use, Sharers: sharers[uuid]}
		for _, p := range seen[uuid] {
			d.PIDs = append(d.PIDs, p.pid)
		}
		list[uuid] = d
	}
	return list
}

// sharersOf counts the members of grants that have each device or instance, or a part of
// it.
func sharersOf(v *ledger.View) map[string]int {
	sharers := map[string]int{}
	for _, g := range v.Grants {
		if !g.State.Holds() {
			continue
		}
		for _, m := range g.Members {
			for _, d := range m.Assignment.GPUs {
				sharers[d.UUID]++
			}
			for _, d := range m.Assignment.MIG {
				sharers[d.UUID]++
			}
		}
	}
	return sharers
}

// EndWork has all processes end that the agent has started: SIGTERM now, SIGKILL after
// the grace. It does not block.
func (a *Agent) EndWork(grace time.Duration) { a.stopWork(grace) }

// AwaitWork waits until nothing runs that the agent has started, or ctx ends.
func (a *Agent) AwaitWork(ctx context.Context) {
	for a.runner != nil && slices.ContainsFunc(a.runner.Transactions(), a.runner.Runs) && pause(ctx, workPoll) {
	}
}

// workPoll is the time between two looks of AwaitWork.
const workPoll = 20 * time.Millisecond

// resumeStops repeats the stops that an earlier agent has begun.
func (o *owner) resumeStops() {
	for _, g := range o.ledger.Snapshot().Grants {
		o.agent.runner.Resume(g.Tx, g.State, g.Deadline)
	}
}

// retainWork ends the reports of work that ended before an earlier agent ended: neither
// the store has a record of the transaction that is not terminal, nor the ledger a grant.
func (o *owner) retainWork(records map[resource.TxID]bool) {
	if o.agent.runner == nil {
		return
	}
	o.agent.runner.Retain(func(tx resource.TxID) bool {
		_, recorded := records[tx]
		_, held := o.ledger.Lookup(tx)
		return recorded || held
	})
}

// startWork has the runner start members of a grant that is held.
func (o *owner) startWork(c *grant.Start) {
	g, reasons := o.ledger.MayStart(*c)
	if len(reasons) > 0 { // the leader hears of the state of the grant itself, and of a registration
		o.log.Info("start_refused", "tx", string(c.Tx), "reason", reasons[0].Detail)
		return
	}
	switch run := o.agent.config.Run; {
	case run == nil:
		o.tell(startsNothing(c, "the agent of this node starts no processes"))
		return
	case c.HasContainer() && !run.runsContainers(): // it could do so when the leader chose it
		o.tell(startsNothing(c, "the agent of this node runs no containers: crun is missing, or work.images names no folder"))
		return
	case len(c.Mounts) > 0 && !run.mountsFolders():
		o.tell(startsNothing(c, "the agent of this node mounts no folders in containers: work.mounts names none"))
		return
	}
	config := o.agent.config.Run
	var members []run.Member
	for _, m := range c.Members {
		held, _ := g.Member(m.Index)
		members = append(members, run.Member{
			Index: m.Index, Restart: m.Restart, Spec: config.spec(c, &held), Prepare: o.agent.prepare(c, &held, g.Tenant), Tenant: g.Tenant, Bounds: config.bounds(c, &held, o.agent.Host()),
		})
	}
	o.notePortInUse(c)
	o.agent.runner.Attach(c.Tx, members)
	o.tellWork(c.Tx)
}

// startsNothing is the answer of an agent that cannot start the members, and says why.
func startsNothing(c *grant.Start, why string) rpc.Work {
	w := rpc.Work{Tx: c.Tx}
	for _, m := range c.Members {
		w.States = append(w.States, grant.WorkState{
			Member: m.Index, Restart: m.Restart, Phase: grant.WorkEnded, Code: 126, Reason: string(shim.NotStarted), Message: why,
		})
	}
	return w
}

// spec is what is started for a member. The variables of the assignment win over
// those of the client.
func (c *RunConfig) spec(s *grant.Start, m *ledger.Holding) shim.Spec {
	env := slices.Clone(c.Env)
	dir := cmp.Or(s.Dir, c.Dir, "/")
	if s.HasContainer() { // it begins with an environment and a folder of its own
		env, dir = nil, s.Dir
	}
	if s.TTY {
		env = append(env, "TERM="+ordinaryTerminal)
	}
	env = append(env, s.Env...)
	for name, value := range handoff.Environment(m.Assignment) {
		env = append(env, name+"="+value)
	}
	env = append(env,
		"MUSTER_RANK="+strconv.Itoa(s.Rank+m.Index), "MUSTER_WORLD_SIZE="+strconv.Itoa(len(s.Hosts)), "MUSTER_INDEX="+strconv.Itoa(s.First+m.Index),
		"MASTER_PORT="+strconv.Itoa(s.Port))
	if len(s.Hosts) > 0 {
		env = append(env, "MASTER_ADDR="+s.Hosts[0])
	}
	if hosts := strings.Join(s.Hosts, ","); len(hosts) <= mostHosts {
		env = append(env, "MUSTER_HOSTS="+hosts)
	}
	spec := shim.Spec{Args: s.Args, Container: c.container(s), Env: shim.LastOfEach(env), Dir: dir, User: c.User, Devices: handoff.Devices(m.Assignment), Stdin: s.Stdin, TTY: s.TTY}
	if n := s.Notice; n.Signal != 0 {
		spec.Notice = &shim.Notice{Signal: n.Signal, BeforeMillis: n.Before.Milliseconds(), AfterMillis: n.After.Milliseconds()}
	}
	if c.Affinity {
		spec.CPUs, spec.NUMANodes = m.Assignment.CPUSet().Members(), handoff.NUMANodes(m.Assignment).Members()
	}
	return spec
}

// bounds are those of a member. Hardware that is simulated binds nothing but amounts.
func (c *RunConfig) bounds(s *grant.Start, m *ledger.Holding, host *fit.Host) bounds.Bounds {
	b := bounds.Of(m.Assignment, bounds.Limits{CPU: s.CPULimit, Memory: s.MemoryLimit}, pageSizes(host.Topology()))
	b.Tasks = c.Tasks
	if !c.Affinity {
		b.CPUs, b.Nodes, b.Hugepages = nil, nil, nil
	}
	return b
}

// pageSizes are the sizes of huge pages of a host.
func pageSizes(t *numa.Topology) []resource.Bytes {
	var sizes []resource.Bytes
	for i := range t.Nodes {
		for kb := range t.Nodes[i].Hugepages {
			if size := resource.Bytes(kb) << 10; !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	return sizes
}

// prepare returns what completes a start right before it, and may block: the user of the
// tenant, and the device files.
func (a *Agent) prepare(s *grant.Start, m *ledger.Holding, tenant resource.TenantID) func(*shim.Spec, *bounds.Bounds) error {
	c, assignment, dir := a.config.Run, m.Assignment, s.Dir
	return func(spec *shim.Spec, b *bounds.Bounds) error {
		if c.DeviceFiles != nil {
			nodes, err := bounds.DeviceNodes(c.DeviceFiles, assignment, a.Host().Inventory(), c.Devices)
			if err != nil {
				a.log.Warn("work_devices_not_enforced", "tx", string(s.Tx), "member", m.Index, "error", err)
			}
			b.Devices = nodes // nil with the error: no rules
		}
		if err := c.addDevices(spec); err != nil {
			return err
		}
		return c.asUser(spec, tenant, dir)
	}
}

// asUser completes the spec of a start for the user of its tenant: HOME, USER and LOGNAME
// where neither the client nor the container has set them, and, without a container, the
// user's home as working directory where the client has named none. It does nothing where all processes have the same user.
func (c *RunConfig) asUser(spec *shim.Spec, tenant resource.TenantID, dir string) error {
	if c.Users == nil {
		return nil
	}
	account, err := c.Users.Of(tenant)
	if err != nil {
		return err
	}
	spec.User = &account.ID
	if spec.Container != nil {
		spec.Container.Env = append(account.Env(), spec.Container.Env...)
		return nil
	}
	spec.Env = shim.LastOfEach(append(account.Env(), spec.Env...))
	if dir == "" && filepath.IsAbs(account.Home) {
		spec.Dir, spec.AnyDir = account.Home, true
	}
	return nil
}

// runs reports whether something of a transaction may run.
func (o *owner) runs(tx resource.TxID) bool { return o.agent.runner != nil && o.agent.runner.Runs(tx) }

// worked follows a change of a transaction's processes: the leader gets to know, and a
// grant that is ending ends with its last process, before its deadline too.
func (o *owner) worked(tx resource.TxID) {
	o.tellWork(tx)
	g, _ := o.ledger.Lookup(tx)
	if o.runs(tx) || g.State != grant.Evicting && g.State != grant.Stopping {
		return
	}
	for _, ended := range o.endGrants([]resource.TxID{tx}) {
		o.tell(rpc.Reply(ended))
	}
}

// tellWork queues the state of a transaction's processes for the leader.
func (o *owner) tellWork(tx resource.TxID) {
	if states := o.agent.runner.States(tx); len(states) > 0 {
		o.tell(rpc.Work{Tx: tx, States: states})
	}
}

// work is the state of all processes.
func (o *owner) work() []rpc.Work {
	if o.agent.runner == nil {
		return nil
	}
	var list []rpc.Work
	for _, tx := range o.agent.runner.Transactions() {
		list = append(list, rpc.Work{Tx: tx, States: o.agent.runner.States(tx)})
	}
	return list
}
