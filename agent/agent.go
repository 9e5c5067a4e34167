// Package agent is the host's agent: it owns the ledger and its journal, serves
// the leader's session, registers with coordinators, resolves undecided
// transactions, writes assignment files, follows the events of the devices, and
// publishes the free capacity on the rings.
//
// One goroutine (owner) decides; everything else sends it commands or asks it
// for views. It decides nothing that agent/ledger and, of devices' health,
// devices/health do not, and it never places, admits to a quota or commits: the
// coordinator and the store do.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/netlimit"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

const (
	defaultHeartbeat = 10 * time.Second
	defaultHeldSync  = 50 * time.Millisecond
	// stopTimeout bounds how long a stop waits for sessions to end.
	stopTimeout = 2 * time.Second
)

// Agent is one host's agent. New opens its journal and listeners; Run serves
// until its context ends; one of Run and Close must be called.
type Agent struct {
	config  Config
	deps    Deps
	log     *slog.Logger
	address string

	// hardware is the host's present hardware; the owner replaces it as a
	// whole.
	hardware atomic.Pointer[hardware]
	// sighting lists the processes on the devices; the health monitor replaces it as a whole.
	sighting atomic.Pointer[sighting]
	// memory is the shortage of memory as it is shown; memoryWatch replaces it as a
	// whole. nil until the first look.
	memory atomic.Pointer[pressure.State]

	// absent lists the devices that were held and not found at the start, by UUID,
	// their MIG instances included.
	absent []string

	contact      *contactState
	link         *linkState
	journal      *journal.Journal
	owner        *owner
	runner       *run.Runner          // nil where the agent starts no processes
	kubelet      *deviceplugin.Plugin // off where the kubelet gets no devices
	kubeletSince kubeletSince
	listener     net.Listener
	http         net.Listener // nil without MetricsListen
	server       *grpc.Server
	calls        *rpc.Coordinators
	resolver     *resolver
	metrics      *metrics
	usage        func(context.Context) (usage.Usage, error)

	register chan struct{} // capacity 1: a wish to register is one wish
	audit    chan struct{} // capacity 1: the same, but within auditSpread
	found    chan struct{} // capacity 1: the ring has found a coordinator
	dirty    chan struct{} // capacity 1: the digest should be published anew
	renewal  chan struct{} // capacity 1: a coordinator has something new

	registered atomic.Bool                       // this process has registered once
	watched    atomic.Bool                       // the watch of the devices has reported
	unknown    atomic.Pointer[[]devices.Unknown] // the GPUs that the watch could not use; nil: no news of the watch
	hangs      atomic.Pointer[string]            // the call about the driver that the watch waits for; nil and "": none
	uses       atomic.Pointer[uses]

	mu    sync.Mutex
	rings *gossip.Rings // nil before Run and without Gossip
}

// New opens the journal, replays it and listens. Errors: those of
// journal.Open (another agent on the folder, a corrupt journal), an address in
// use, a host or configuration that contradicts itself.
func New(config Config, deps Deps) (*Agent, error) {
	a, err := prepare(config, deps)
	if err != nil {
		return nil, err
	}
	if err := a.open(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// open takes hold of the folder and the addresses.
func (a *Agent) open() error {
	// Launchers of other users read the assignments below it; the journal's own
	// folder is private.
	if err := os.MkdirAll(a.config.DataDir, 0o755); err != nil {
		return fmt.Errorf("agent: data folder: %w", err)
	}
	var err error
	if a.contact, err = openContactState(a.config.DataDir, a.deps.Discovered.BootID, a.config.AssumeDeadAfter, a.deps.Now, a.log); err != nil {
		return err
	}
	assignments := cmp.Or(a.config.AssignmentsDir, filepath.Join(a.config.DataDir, "assignments"))
	if err := a.pruneSilent(assignments); err != nil {
		return err
	}
	j, recovery, err := journal.Open(filepath.Join(a.config.DataDir, "journal"), journal.Options{
		NewJournal: a.config.NewJournal, Headroom: a.config.Headroom, FS: a.deps.JournalFS,
	})
	if err != nil {
		return err
	}
	a.journal = j
	a.logRecovery(recovery)
	if recovery.Wiped || recovery.MovedTo != "" {
		a.contact.wiped()
	}
	files, err := handoff.Open(assignments, a.assignmentOptions())
	if err != nil {
		return err
	}
	if a.metrics, err = newMetrics(a); err != nil {
		return err
	}
	l := ledger.New(a.Host())
	if err := l.Replay(recovery.Payloads); err != nil {
		return fmt.Errorf("journal %s: %w; restart with --new-journal to move it aside and recover from the store", j.Path(), err)
	}
	if a.absent, err = a.keepHeld(l); err != nil {
		return err
	}
	a.rememberInventory()
	a.calls = rpc.NewCoordinators(a.coordinators, a.member(), a.deps.Dialer)
	if err := a.openRunner(); err != nil {
		return err
	}
	if err := a.openKubelet(); err != nil {
		return err
	}
	a.owner = newOwner(a, l, files)
	a.resolver = newResolver(a)
	if err := a.owner.start(resource.Incarnation{JournalID: j.ID(), BootID: a.deps.Discovered.BootID}); err != nil {
		return err
	}
	if err := a.listen(); err != nil {
		return err
	}
	a.server = rpc.NewServer(a.config.Cluster, a.member(), a.owner, a, a, a.calls)
	return nil
}

func (a *Agent) logRecovery(r *journal.Recovery) {
	switch {
	case r.MovedTo != "":
		a.log.Warn("journal_moved_aside", "to", r.MovedTo, "journal_id", r.JournalID)
	case r.Wiped:
		a.log.Info("journal_created", "path", a.journal.Path(), "journal_id", r.JournalID)
	case r.Cut > 0 || r.Doubtful || r.Short > 0:
		a.log.Warn("journal_repaired", "path", a.journal.Path(), "cut_bytes", r.Cut,
			"cut_offset", r.CutOffset, "doubtful", r.Doubtful, "missing_bytes", r.Short, "previous_id", r.PreviousID, "journal_id", r.JournalID)
	default:
		a.log.Info("journal_replayed", "path", a.journal.Path(), "records", len(r.Payloads), "journal_id", r.JournalID)
	}
}

func (a *Agent) listen() error {
	var err error
	if a.listener = a.deps.Listener; a.listener == nil {
		if a.listener, err = rpc.ListenAs(a.member(), "listen", a.config.Listen); err != nil {
			return err
		}
	}
	if a.listener, err = a.limitConnections("grpc", a.listener, rpcauth.AgentConnections()); err != nil {
		return err
	}
	if a.address = a.deps.Address; a.address == "" {
		if a.address, err = rpcauth.Reachable("listen", a.listener.Addr(), a.config.Advertise); err != nil {
			return err
		}
	}
	if a.config.MetricsListen == "" {
		return nil
	}
	if _, ok := a.deps.Metrics.(prometheus.Gatherer); !ok {
		return fmt.Errorf("agent: metricsListen %s is set and nothing gathers metrics", a.config.MetricsListen)
	}
	if a.http, err = rpc.ListenAs(a.member(), "metricsListen", a.config.MetricsListen); err != nil {
		return err
	}
	a.http, err = a.limitConnections("metrics", a.http, netlimit.Limits{Total: scrapers})
	return err
}

// Address is where the leader reaches the agent.
func (a *Agent) Address() string { return a.address }

// MetricsAddress is where metrics are served, "" where they are not.
func (a *Agent) MetricsAddress() string {
	if a.http == nil {
		return ""
	}
	return a.http.Addr().String()
}

// Incarnation is the one this process runs under.
func (a *Agent) Incarnation() resource.Incarnation { return a.owner.incarnation }

// Host is the host's facts and score tables at this moment, for Deps.HostLike
// of others.
func (a *Agent) Host() *fit.Host { return a.hardware.Load().host }

// Rings returns the agent's membership of the rings, nil before Run has joined
// them and without gossip.
func (a *Agent) Rings() *gossip.Rings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rings
}

// coordinators lists the addresses that are configured and those that the ring
// announces.
func (a *Agent) coordinators() []string {
	list := slices.Clone(a.config.Coordinators)
	if r := a.Rings(); r != nil {
		for _, m := range r.Serf.Members() {
			if m.Tags.Role == gossip.RoleCoordinator && m.Status == gossip.Alive && m.Tags.Addr != "" {
				list = append(list, m.Tags.Addr)
			}
		}
	}
	return list
}

// wake puts a wish into a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
