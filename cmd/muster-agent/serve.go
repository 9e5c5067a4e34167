package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/cmd/buildinfo"
	"github.com/musterd/muster/devices/nvml"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// serve discovers the host and runs its agent until ctx ends.
func serve(ctx context.Context, s settings, newJournal bool, stderr io.Writer) error {
	log := newLogger(s, stderr)
	where := agent.DiscoverOptions{SysfsRoot: s.Discovery.SysfsRoot, NVMLLibrary: s.Discovery.NVMLLibrary, Limit: s.discovery}
	var err error
	if where.Driver, err = where.NewDriver(); err != nil {
		return err
	}
	found, err := agent.Discover(ctx, where)
	if err != nil {
		if ctx.Err() != nil {
			log.Info("stopped", "while", "the host was discovered")
			return nil
		}
		return err
	}
	logFound(log, found, fit.Reserved{CPUs: s.reservedCPUs, Memory: s.reservedMemory})
	hurry := make(chan struct{}, 1)
	deps := agent.Deps{
		Discovered: found, Token: s.token, Log: log, Hurry: hurry,
		Memory: func() (pressure.Reading, error) { return usage.ReadMemory(os.DirFS("/")) },
		Watch:  agent.WatchDevices(where, nvml.WatchOptions{Rediscover: s.rediscover, HangAfter: s.hangAfter, Retry: s.driverRetry, Hurry: hurry}),
	}
	if s.TLS.Enabled {
		if deps.Identity, err = identify(ctx, log, &s); err != nil {
			return err
		}
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	deps.Metrics = metrics
	if s.declared, err = withStorage(ctx, s.declared, s.DataDir); err != nil {
		log.Warn("storage_not_measured", "folder", s.DataDir, "error", err, "effect", "the node has no ephemeral-storage")
	}
	config, err := withWork(ctx, agentConfig(s, newJournal), &s)
	if err != nil {
		return err
	}
	if config.Run != nil {
		if folders := s.Work.Images; len(folders) > 0 {
			if config.Run.Containers, err = agent.FindContainers(config.Run.Program, folders, s.Work.Mounts); err != nil {
				config.Run.NoContainers = err
				log.Warn("runs_no_containers", "error", err, "effect", "the node gets no job with a rootfs", "see", "docs/work.md")
			}
		}
		if missing := config.Run.NotEnforced(); len(missing) > 0 {
			log.Warn("work_not_enforced", "limits", missing, "see", "docs/work.md")
		}
	}
	a, err := agent.New(config, deps)
	if err != nil {
		if errors.Is(err, journal.ErrLocked) {
			return fmt.Errorf("dataDir %s: %w; one agent per folder", s.DataDir, err)
		}
		return err
	}
	notify(log, daemon.SdNotifyReady)
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); watchdog(ctx, log, a) }()
	reported := make(chan struct{})
	go func() { defer close(reported); reportStatus(ctx, log, a) }()
	go func() { <-ctx.Done(); notify(log, daemon.SdNotifyStopping) }()
	err = a.Run(ctx)
	cancel()
	<-watched
	<-reported
	return err
}

// identify reads the node's certificate, or gets one, and sees to it that the
// serf RPC port has a token.
func identify(ctx context.Context, log *slog.Logger, s *settings) (*agent.Identity, error) {
	if err := os.MkdirAll(s.DataDir, 0o755); err != nil { // as the agent makes it
		return nil, fmt.Errorf("dataDir: %w", err)
	}
	if s.serfToken.IsZero() && s.Gossip.Enabled && s.Gossip.SerfRPC != "" {
		token, err := rpcauth.ReadOrGenerate(filepath.Join(s.DataDir, "serf-rpc-token"))
		if err != nil {
			return nil, err
		}
		s.serfToken = token
	}
	return agent.OpenIdentity(ctx, agent.IdentityConfig{
		Cluster: s.Cluster, Node: s.node, Dir: filepath.Join(s.DataDir, "identity"), TokenFile: s.BootstrapTokenFile,
		Coordinators: s.enrollAt(), Log: log,
	})
}

func agentConfig(s settings, newJournal bool) agent.Config {
	c := agent.Config{
		Cluster: s.Cluster, Node: s.node, Version: buildinfo.Version(), DataDir: s.DataDir, AssignmentsDir: s.AssignmentsDir, AssignmentsMode: s.filesMode,
		Listen: s.Listen, Advertise: s.Advertise, MetricsListen: s.MetricsListen, MetricsToken: s.metricsToken, Coordinators: s.Coordinators, Labels: s.Labels,
		ReservedCPUs: s.reservedCPUs, ReservedMemory: s.reservedMemory, Counts: s.declared,
		Heartbeat: s.heartbeat, AssumeDeadAfter: s.assumeDead, MemoryPressure: s.memory, NewJournal: newJournal, Kubelet: s.kubelet, Attach: s.attach,
		Orphans: agent.OrphansConfig{Enabled: s.Orphans.Enabled, Ignore: s.Orphans.Ignore},
	}
	if g := s.Gossip; g.Enabled {
		c.Gossip = &agent.GossipConfig{
			SerfBind: g.SerfBind, CapacityBind: g.CapacityBind, Join: g.Join, CapacityJoin: g.JoinCapacity, Cell: g.Cell,
		}
		if g.SerfRPC != "" {
			c.Gossip.RPC = gossip.RPC{Addr: g.SerfRPC, Token: s.serfToken.Secret()}
		}
	}
	return c
}

// withStorage adds the storage of the file system that holds a folder, which may not be
// made yet, to counted resources. With an error it adds nothing.
func withStorage(ctx context.Context, counts []grant.Count, dir string) ([]grant.Count, error) {
	storage, err := usage.Storage(ctx, dir)
	if err != nil || storage == 0 {
		return counts, err
	}
	c := grant.Count{Name: resource.EphemeralStorage, Amount: int64(storage)}
	at, _ := slices.BinarySearchFunc(counts, c, func(a, b grant.Count) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Insert(slices.Clone(counts), at, c), nil
}

func newLogger(s settings, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.level}
	if s.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// logFound logs the host in one line, and each of its odd parts in a line of its own.
func logFound(log *slog.Logger, d agent.Discovered, reserved fit.Reserved) {
	gpus := "none"
	if n := len(d.Inventory.Devices); n > 0 {
		models := map[string]bool{}
		var names []string
		for _, g := range d.Inventory.Devices {
			if !models[g.Model] {
				models[g.Model] = true
				names = append(names, g.Model)
			}
		}
		gpus = fmt.Sprintf("%d × %s", n, strings.Join(names, ", "))
	}
	attributes := []any{
		"host", d.Host.Hostname, "sockets", d.Topology.Sockets(), "numa_nodes", len(d.Topology.Nodes), "cores", d.Topology.Cores(),
		"cpus", d.Topology.Threads(), "memory", resource.FormatBytes(d.Topology.Memory()), "gpus", gpus,
	}
	if d.NoDriver != "" {
		attributes = append(attributes, "no_driver", d.NoDriver)
	}
	if len(d.Unknown) > 0 {
		attributes = append(attributes, "gpus_unknown", len(d.Unknown))
	}
	if d.Hung != "" {
		attributes = append(attributes, "driver_hangs", d.Hung)
	}
	log.Info("host_discovered", attributes...)
	for _, w := range slices.Concat(d.Warnings, d.OverLimits(reserved)) {
		log.Warn("host_is_odd", "warning", w)
	}
}

// notify notifies systemd, where systemd asked for that.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("sd_notify_failed", "state", state, "error", err)
	}
}

// statusEvery is how soon systemd's status line shows a change.
const statusEvery = 2 * time.Second

// reportStatus keeps the status line of `systemctl status`, until ctx ends: it says
// why the agent takes no work, if it does not.
func reportStatus(ctx context.Context, log *slog.Logger, a *agent.Agent) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	for last := ""; ; {
		text := "part of the cluster"
		if problem := a.Problem(); problem != "" {
			text = "takes no work: " + strings.Join(strings.Fields(problem), " ")
		}
		if text != last {
			last = text
			notify(log, "STATUS="+text)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// watchdog feeds systemd's watchdog for as long as the owner answers, until
// ctx ends.
func watchdog(ctx context.Context, log *slog.Logger, a *agent.Agent) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	ticker := time.NewTicker(interval / 3)
	defer ticker.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, interval/3)
		err := a.Alive(asking)
		cancel()
		switch {
		case err == nil:
			notify(log, daemon.SdNotifyWatchdog)
		case ctx.Err() == nil:
			log.Error("watchdog_not_fed", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
