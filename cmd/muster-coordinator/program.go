package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	sdnotify "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/musterd/muster/cmd/buildinfo"
	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/cmd/manual"
	"github.com/musterd/muster/coordinator/daemon"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // wrong flags or configuration: nothing was started
)

// gcPercent trades memory for time: a coordinator's live heap is tens of
// megabytes, and under load the runtime's default spends a fifth of the
// processor on collecting it. A heap beyond tens of megabytes is held by
// limitMemory. GOGC in the environment overrides both.
const gcPercent = 400

// program is the command with everything it touches, so that tests run the
// real one.
type program struct {
	args           []string
	stdout, stderr io.Writer
	hostname       func() (string, error)
	env            func(string) string
	// started, if set, gets the daemon once the daemon serves.
	started func(*daemon.Daemon)
}

// errFailed marks an error that is not one of usage.
type errFailed struct{ error }

// errMisconfigured marks an error of the configuration: a file, or a flag that
// overrides one of its keys.
type errMisconfigured struct{ error }

// run returns the exit code.
func (p program) run(ctx context.Context) int {
	root := p.command()
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	var failed errFailed
	var misconfigured errMisconfigured
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &misconfigured):
		fmt.Fprintf(p.stderr, "muster-coordinator: %v\n", misconfigured.error)
		return exitUsage
	case errors.As(err, &failed):
		fmt.Fprintf(p.stderr, "muster-coordinator: %v\n", failed.error)
		return exitFailed
	default:
		fmt.Fprintf(p.stderr, "muster-coordinator: %v\nSee muster-coordinator --help.\n", err)
		return exitUsage
	}
}

func (p program) command() *cobra.Command {
	var file string
	c := defaults()
	cmd := &cobra.Command{
		Use:   "muster-coordinator",
		Short: "Keep a cluster's quota and order, and place work on its agents",
		Long: "muster-coordinator keeps quota and the global order in etcd (embedded, or external by\n" +
			"--etcd-endpoints), is elected, and places work on agents by reserve and commit.\n" +
			"It has no durable state of its own beyond the embedded etcd's folder.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		Version: buildinfo.Version(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.serve(cmd, file) },
	}
	cmd.SetVersionTemplate(buildinfo.Template)
	cmd.AddCommand(manual.Command(buildinfo.Version()), buildinfo.Command(func(err error) error { return err }))
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "config file (YAML; see systemd/muster-coordinator.yaml)")
	f.String("cluster", c.Cluster, "cluster's name")
	f.String("id", "", "this coordinator's id (default: the host's name)")
	f.String("data-dir", c.DataDir, "folder of the embedded etcd")
	f.Bool("tls", false, "prove all parties by certificates; all connections are mutual TLS")
	f.String("advertise", "", "IP address that others reach this host at (default: the one that is bound)")
	f.String("token-file", "", "file with the cluster's token, mode 0600, without --tls")
	f.String("admin-token-file", "", "file with the operators' token, mode 0600")
	f.String("rest-listen", c.RESTListen, "address of REST and metrics")
	f.String("grpc-listen", c.GRPCListen, "address of gRPC, for agents")
	etcdFlags(f)
	f.StringSlice("join", nil, "serf addresses of other members")
	f.String("serf-bind", c.Gossip.SerfBind, "address in the serf ring")
	f.String("serf-rpc-addr", c.Gossip.SerfRPC, `address of the stock serf command line; "" for none`)
	f.String("serf-rpc-token-file", "", "file of mode 0600 with its token (default the cluster's, with --tls one of its own)")
	f.String("capacity-bind", c.Gossip.CapacityBind, "address in the capacity ring")
	f.String("log-level", c.Log.Level, "debug, info, warn or error")
	return cmd
}

// configure reads the file and puts the flags that were given on top.
func configure(cmd *cobra.Command, file string) (config, error) {
	c := defaults()
	if file != "" {
		if err := configfile.Read(file, &c); err != nil {
			return config{}, err
		}
	}
	f := cmd.Flags()
	for name, target := range map[string]*string{
		"cluster": &c.Cluster, "id": &c.ID, "data-dir": &c.DataDir, "token-file": &c.TokenFile, "admin-token-file": &c.AdminTokenFile,
		"advertise": &c.Advertise, "rest-listen": &c.RESTListen, "grpc-listen": &c.GRPCListen, "serf-bind": &c.Gossip.SerfBind,
		"serf-rpc-addr": &c.Gossip.SerfRPC, "serf-rpc-token-file": &c.Gossip.SerfRPCTokenFile,
		"capacity-bind": &c.Gossip.CapacityBind, "log-level": &c.Log.Level,
	} {
		if f.Changed(name) {
			*target, _ = f.GetString(name)
		}
	}
	for name, target := range map[string]*[]string{"join": &c.Gossip.Join} {
		if f.Changed(name) {
			*target, _ = f.GetStringSlice(name)
		}
	}
	c.override(f)
	if f.Changed("tls") {
		c.TLS.Enabled, _ = f.GetBool("tls")
	}
	return c, nil
}

// keyOf are the keys of the configuration that flags override.
var keyOf = map[string]string{
	"cluster": "cluster", "id": "id", "data-dir": "dataDir", "tls": "tls.enabled", "advertise": "advertise", "token-file": "tokenFile",
	"admin-token-file": "adminTokenFile", "rest-listen": "restListen", "grpc-listen": "grpcListen",
	"etcd-endpoints": "etcdEndpoints", "etcd-ca-file": "etcdTLS.caFile", "etcd-cert-file": "etcdTLS.certFile", "etcd-key-file": "etcdTLS.keyFile",
	"etcd-server-name": "etcdTLS.serverName", "etcd-username": "etcdUsername", "etcd-password-file": "etcdPasswordFile",
	"join": "gossip.join", "serf-bind": "gossip.serfBind", "serf-rpc-addr": "gossip.serfRPC", "serf-rpc-token-file": "gossip.serfRPCTokenFile",
	"capacity-bind": "gossip.capacityBind", "log-level": "log.level",
}

// given are the flags of the command line, by their keys of the configuration.
func given(set *pflag.FlagSet) map[string]string {
	flags := map[string]string{}
	set.Visit(func(f *pflag.Flag) { flags[keyOf[f.Name]] = f.Name })
	return flags
}

// serve runs the daemon until the context ends.
func (p program) serve(cmd *cobra.Command, file string) error {
	ctx := cmd.Context()
	c, err := configure(cmd, file)
	if err != nil {
		return errMisconfigured{err}
	}
	dc, level, err := c.check(p.hostname)
	if err != nil {
		return errMisconfigured{configfile.NameOrigin(err, file, given(cmd.Flags()))}
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(p.stderr, options)
	if c.Log.Format == "json" {
		handler = slog.NewJSONHandler(p.stderr, options)
	}
	if p.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		if p.env("GOMEMLIMIT") == "" {
			go limitMemory(ctx)
		}
	}
	dc.Logger, dc.Version = slog.New(handler), buildinfo.Version()
	if dc.SerfRPC.Addr != "" && dc.SerfRPC.Token == "" {
		if dc.SerfRPC.Token, err = serfToken(dc.DataDir); err != nil {
			return errFailed{fmt.Errorf("gossip.serfRPC: %w", err)}
		}
	}
	d, err := daemon.New(ctx, dc)
	if err != nil {
		return errFailed{err}
	}
	dc.Logger.Info("serving", "rest", d.RESTAddr(), "grpc", d.GRPCAddr(), "serf", d.SerfAddr(), "capacity", d.CapacityAddr(), "serf_rpc", d.SerfRPCAddr(), "version", dc.Version)
	if p.started != nil {
		p.started(d)
	}
	notify(dc.Logger, sdnotify.SdNotifyReady)
	watch, stop := context.WithCancel(ctx)
	defer stop()
	go watchdog(watch, d, dc.Logger)
	if p.env("NOTIFY_SOCKET") != "" {
		go reportStatus(watch, d, dc.Logger)
	}
	defer context.AfterFunc(ctx, func() { notify(dc.Logger, sdnotify.SdNotifyStopping) })()
	err = d.Run(ctx)
	if err != nil {
		return errFailed{err}
	}
	return nil
}

// notify notifies systemd, where systemd listens.
func notify(log *slog.Logger, state string) {
	if _, err := sdnotify.SdNotify(false, state); err != nil {
		log.Warn("sd_notify_failed", "state", state, "error", err)
	}
}

// statusEvery is how soon systemd's status line shows a change.
const statusEvery = 2 * time.Second

// reportStatus keeps the status line of `systemctl status`, until ctx ends.
func reportStatus(ctx context.Context, d *daemon.Daemon, log *slog.Logger) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for last := ""; ; {
		if text := d.Status(); text != last {
			last = text
			notify(log, "STATUS="+text)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watchdog notifies systemd twice per interval that the coordinator's loop answers.
func watchdog(ctx context.Context, d *daemon.Daemon, log *slog.Logger) {
	interval, err := sdnotify.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return
	}
	tick := time.NewTicker(interval / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ask, cancel := context.WithTimeout(ctx, interval/2)
			err := d.Alive(ask)
			cancel()
			if err != nil {
				log.Error("watchdog_not_fed", "error", err)
				continue
			}
			notify(log, sdnotify.SdNotifyWatchdog)
		}
	}
}
