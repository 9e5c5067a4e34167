package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/rpcauth"
)

// Config holds an agent's identity, addresses and folders. New validates it.
type Config struct {
	Cluster string
	Node    resource.NodeID
	Version string // of the program, for people
	// DataDir holds journal/ and assignments/; one agent per folder.
	DataDir string
	// AssignmentsDir holds the assignment files instead; "" is
	// DataDir/assignments. They are made anew at each start, so memory will do.
	AssignmentsDir string
	// AssignmentsMode holds their permissions; 0 is handoff.DefaultMode.
	AssignmentsMode fs.FileMode
	// Listen is the address of the gRPC server; port 0 takes a free one.
	Listen string
	// Advertise is the IP address that others reach this host at, for the leader
	// and the rings; "" is the one that is bound.
	Advertise string
	// MetricsListen serves /metrics and /healthz; "" opens nothing.
	MetricsListen string
	// MetricsToken is the bearer token that /metrics needs; zero: none.
	MetricsToken rpcauth.Token
	// Coordinators are addresses known from the start.
	Coordinators []string
	Labels       map[string]string
	// ReservedCPUs and ReservedMemory are kept for the system.
	ReservedCPUs   bitset.Set
	ReservedMemory resource.Bytes
	// Counts are the counted resources of the host, ascending by name: pods, storage and
	// those that the node declares. None: the host counts nothing.
	Counts []grant.Count
	// Heartbeat is the time between reports of usage; 0 is 10 s.
	Heartbeat time.Duration
	// HeldSync bounds how long a HELD may wait for its fsync; 0 is 50 ms.
	HeldSync time.Duration
	// NewJournal moves the journal aside and takes the wiped-disk path.
	NewJournal bool
	// Headroom is the journal's room for releases on a full disk, in bytes; 0
	// is 16 MiB.
	Headroom int64
	// Gossip joins the rings; nil stays out of them.
	Gossip *GossipConfig
	// Orphans are off unless they are enabled.
	Orphans OrphansConfig
	// AssumeDeadAfter opts in to the assume-dead policy: after so long without
	// contact the agent stops all workloads of its grants. MinAssumeDead to
	// MaxAssumeDead; 0 is off.
	AssumeDeadAfter time.Duration
	// Run has the agent start the processes of grants; nil starts none.
	Run *RunConfig
	// Attach lets launchers outside of Muster attach processes to grants over a local
	// socket; nil has no socket.
	Attach *AttachConfig
	// Kubelet gives devices to the kubelet of this host; nil gives none.
	Kubelet *deviceplugin.Config
	// MemoryPressure says when the host is short of memory and takes no new work;
	// the zero value is never. See MinStall and the constants beside it.
	MemoryPressure pressure.Policy
}

// GossipConfig is the part of gossip.Config that an agent does not know itself.
type GossipConfig struct {
	SerfBind, CapacityBind string
	Join, CapacityJoin     []string
	RPC                    gossip.RPC
	Cell                   string
	Profile                gossip.Profile
	Transports             gossip.Transports // nil is the host's network
	// EndsTogether says that all members of the rings end at one time. The agent does
	// not take leave of them then: the last ones would wait 5 s for members that are
	// gone.
	EndsTogether bool
}

// Deps are the adapters of an agent. The zero value of a field is its default.
type Deps struct {
	// Discovered is required.
	Discovered Discovered
	// HostLike may be another agent's fit.Host of the same kind: score tables
	// are shared.
	HostLike *fit.Host
	// Identity proves this node to the others by its certificate. Without one
	// Token is required, and everything stays on loopback.
	Identity *Identity
	Token    rpcauth.Token
	// Listener replaces Config.Listen, and the leader then dials Address.
	Listener net.Listener
	Address  string
	// Dialer replaces TCP for calls to coordinators.
	Dialer rpc.Dialer
	// Usage measures the host; nil measures it through gopsutil.
	Usage func(context.Context) (usage.Usage, error)
	// Memory looks at the host's memory; nil never looks.
	Memory func() (pressure.Reading, error)
	// Metrics takes the collectors; nil takes none. With MetricsListen it must
	// gather too.
	Metrics prometheus.Registerer
	Log     *slog.Logger
	// Watch looks after the devices from then on until ctx ends, and calls
	// emit, from one goroutine, with each change of them; nil watches nothing.
	// absent lists the devices of known that were lost before, by UUID. See
	// WatchDevices.
	Watch func(ctx context.Context, known *devices.Inventory, absent []string, emit func(devices.Change)) error
	// Hurry, where not nil and of capacity 1, is the agent's request that Watch
	// soon lists the processes anew (nvml.WatchOptions.Hurry).
	Hurry chan struct{}
	// ProcessName is the name of a process's command, "" where it is not known;
	// nil asks the kernel.
	ProcessName func(pid int) string
	// Kubelet says how an agent without Config.Kubelet reaches the kubelet, once
	// operators give the kubelet a device; its Pool is nil. The zero value has the
	// kubelet's own paths.
	Kubelet deviceplugin.Config
	// Followers take each group of changes after the agent's own followers.
	Followers []follow.Follower
	// Now is the owner's time line (see package ledger); nil is the kernel's
	// boot-time clock.
	Now func() time.Time
	// JournalFS replaces the journal's files, AssignmentFS how the assignment
	// files are changed.
	JournalFS    journal.FS
	AssignmentFS handoff.FS
}

// prepare checks the arguments and fills in defaults.
func prepare(config Config, deps Deps) (*Agent, error) {
	d := deps.Discovered
	switch {
	case config.Cluster == "" || config.Node == "":
		return nil, fmt.Errorf("agent: cluster %q and node %q must both be set", config.Cluster, config.Node)
	case config.DataDir == "":
		return nil, errors.New("agent: no data folder")
	case deps.Identity == nil && deps.Token.IsZero():
		return nil, errors.New("agent: no cluster token and no certificate")
	case deps.Identity != nil && deps.Identity.name() != (pki.Identity{Cluster: config.Cluster, Role: pki.Node, ID: string(config.Node)}):
		return nil, fmt.Errorf("agent: the certificate is of %s, the agent is node %s of cluster %s", deps.Identity.name(), config.Node, config.Cluster)
	case d.BootID == "":
		return nil, errors.New("agent: the kernel's boot id is unknown (/proc/sys/kernel/random/boot_id): a restart of the host could not be told from one of the agent")
	case config.AssumeDeadAfter != 0 && (config.AssumeDeadAfter < MinAssumeDead || config.AssumeDeadAfter > MaxAssumeDead):
		return nil, fmt.Errorf("agent: assumeDeadAfter %s is outside %s..%s; 0 is off", config.AssumeDeadAfter, MinAssumeDead, MaxAssumeDead)
	case config.MemoryPressure != (pressure.Policy{}) && !validMemoryPolicy(config.MemoryPressure):
		return nil, fmt.Errorf("agent: memoryPressure %+v: want a stall of %s..%s, available memory of %s..%s, and an end after %s..%s; the zero value is off",
			config.MemoryPressure, MinStall, MaxStall, MinAvailable, MaxAvailable, MinClearMemory, MaxClearMemory)
	case config.Heartbeat < 0 || config.HeldSync < 0:
		return nil, fmt.Errorf("agent: heartbeat %s or held sync %s is negative", config.Heartbeat, config.HeldSync)
	}
	if config.Heartbeat == 0 {
		config.Heartbeat = defaultHeartbeat
	}
	if config.HeldSync == 0 {
		config.HeldSync = defaultHeldSync
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = bootTime
	}
	if deps.Usage == nil {
		deps.Usage = usage.NewSampler(config.DataDir).Sample
	}
	host, err := fit.NewHostLike(deps.HostLike, d.Topology, d.Inventory, fit.Reserved{CPUs: config.ReservedCPUs, Memory: config.ReservedMemory})
	if err == nil {
		err = grant.CheckCounts(config.Counts)
	}
	if err == nil {
		host, err = host.WithCounts(grant.AmountsOf(config.Counts))
	}
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", config.Node, err)
	}
	a := &Agent{
		config: config, deps: deps, log: deps.Log.With("node", string(config.Node)), usage: deps.Usage,
		register: make(chan struct{}, 1), found: make(chan struct{}, 1), dirty: make(chan struct{}, 1),
		renewal: make(chan struct{}, 1), audit: make(chan struct{}, 1),
	}
	a.link = newLinkState(a.deps.Now)
	a.hardware.Store(a.hardwareOf(host))
	if a.deps.ProcessName == nil {
		a.deps.ProcessName = commandName
	}
	a.sight(d.Running)
	return a, nil
}
