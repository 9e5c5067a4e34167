package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/devices/nvml"
)

// maxNodes bounds a dev cluster: each node is a full member of two gossip
// rings in this process.
const maxNodes = 500

// gcPercent trades memory for time: a dev cluster's live heap is small, and
// with the runtime's default a fifth of the processor time under load goes to
// collecting it. GOGC in the environment overrides it.
const gcPercent = 400

// Options connect the command to the CLI around it.
type Options struct {
	Version string
	// AddContext keeps address and token where the CLI's other verbs look, until
	// its End is called.
	AddContext func(addr, token string) (AddedContext, error)
	// Usage marks an error as one of usage (exit code 2).
	Usage func(error) error
	// Env looks an environment variable up.
	Env func(string) string
}

// AddedContext is the context of a running cluster.
type AddedContext struct {
	Name, File string
	// End removes the context, and makes the one before it the current one again.
	End func() error
}

// Command returns `muster dev`.
func Command(o Options) *cobra.Command {
	c := Config{Version: o.Version}
	verbose, runAs := false, ""
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster on this machine: coordinator, etcd and agents in one process",
		Long: "dev runs a coordinator with its embedded etcd and one agent on this host's own CPUs, memory\n" +
			"and GPUs, or, with --profile, N agents on the hardware of a profile (dgx-a100, dgx-h100, …,\n" +
			"or a FILE.json). It prints the address, adds the CLI's context \"dev\" with the token, and stops on\n" +
			"Ctrl-C, which removes that context and makes the one before it current again. Everything listens\n" +
			"on loopback. The commands of jobs run as the user who starts the cluster. On simulated hardware\n" +
			"they get the variables of their devices, and no CPUs of their own.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := check(&c); err != nil {
				return o.Usage(err)
			}
			if c.Profile == "host" && !nvml.Built {
				if err := becomeDriver(os.Executable, syscall.Exec, os.Environ()); err != nil {
					return err
				}
			}
			if c.Work, c.NoContainers, err = workOf(runAs, os.Geteuid(), o.Env); err != nil {
				return o.Usage(err)
			}
			if o.Env("GOGC") == "" {
				debug.SetGCPercent(gcPercent)
			}
			return run(cmd.Context(), c, o, cmd.OutOrStdout(), cmd.ErrOrStderr(), verbose)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.Nodes, "nodes", 1, "number of agents; more than one needs a --profile")
	f.StringVar(&c.Profile, "profile", "host", "hardware of each node: host, a built-in profile, or FILE.json")
	f.StringVar(&c.DataDir, "data-dir", "", "keep all state here (default: a temporary folder, removed at exit)")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:8470", "address of REST and metrics")
	f.StringVar(&runAs, "run-as", "", "user of the commands of jobs; root starts none without it (default: the user who starts the cluster)")
	f.BoolVarP(&verbose, "verbose", "v", false, "log what coordinator and agents do")
	return cmd
}

func check(c *Config) error {
	switch {
	case c.Nodes < 1 || c.Nodes > maxNodes:
		return fmt.Errorf("--nodes %d: want 1 to %d", c.Nodes, maxNodes)
	case c.Nodes > 1 && c.Profile == "host":
		return fmt.Errorf("--nodes %d: %d agents cannot hand out the same host; add --profile dgx-a100 or another", c.Nodes, c.Nodes)
	case c.Profile == "":
		return errors.New("--profile: empty; want host, a built-in profile, or FILE.json")
	}
	return configfile.CheckListen("--listen", c.Listen)
}

// run starts the cluster, announces its addresses, and waits.
func run(ctx context.Context, c Config, o Options, stdout, stderr io.Writer, verbose bool) (err error) {
	level := slog.LevelError
	if verbose {
		level = slog.LevelInfo
	}
	c.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	temporary := c.DataDir == ""
	if temporary {
		if c.DataDir, err = os.MkdirTemp("", "muster-dev-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.DataDir)) }()
	} else if c.DataDir, err = ownFolder(c.DataDir); err != nil {
		return err
	}
	started := time.Now()
	c.Progress = func(ready, nodes int) {
		if time.Since(started) > time.Second {
			fmt.Fprintf(stderr, "%d of %d nodes ready\n", ready, nodes)
		}
	}
	cluster, err := Start(ctx, c)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return nil // stopped before it was up
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("%w; is a dev cluster running already? --listen 127.0.0.1:0 takes a free port", err)
		}
		return err
	}
	added, err := o.AddContext(cluster.Addresses.REST, cluster.Token)
	if err != nil {
		return errors.Join(err, cluster.Stop())
	}
	defer func() { err = errors.Join(err, added.End()) }()
	cluster.announce(stdout, added, temporary, time.Since(started))
	select {
	case <-ctx.Done():
		fmt.Fprintln(stdout, "stopping")
	case err = <-cluster.Failed():
	}
	if temporary {
		cluster.endWork()
	}
	return errors.Join(err, cluster.Stop())
}

// announce prints the hardware, the addresses, the files that hold the token,
// and the commands to try next. The token itself stays off the screen: people
// share terminals and paste them.
func (d *Cluster) announce(w io.Writer, added AddedContext, temporary bool, took time.Duration) {
	where := "this host"
	if d.config.Profile != "host" {
		where = fmt.Sprintf("%d node(s), each a simulated %s", d.config.Nodes, profileLabel(d.config.Profile))
	}
	fmt.Fprintf(w, "Muster %s on %s, ready in %.1f s\n\n", d.config.Version, where, took.Seconds())
	for _, line := range describe(d.Discovered) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	kept := d.config.DataDir
	if temporary {
		kept += " (removed at exit; keep it with --data-dir)"
	}
	fmt.Fprintf(w, "\nAPI      %s\ntoken    %s (mode 0600)\ncontext  %s in %s\ndata     %s\n", d.Addresses.REST, d.Addresses.TokenFile, added.Name, added.File, kept)
	fmt.Fprint(w, "\nTry in another terminal:\n")
	for _, command := range d.firstCommands() {
		fmt.Fprintf(w, "  %s %s\n", os.Args[0], command)
	}
	if d.config.Work == nil {
		fmt.Fprintf(w, "\nJobs with a command are refused, since root runs none: start the cluster with --run-as USER to have them.\n")
	} else if d.config.NoContainers != nil {
		fmt.Fprintf(w, "\nJobs with a root file system of their own (rootfs, bundle) wait: this host runs no containers: %v.\n", d.config.NoContainers)
	}
	fmt.Fprint(w, "\nCtrl-C stops it.\n")
}

// firstCommands are the commands to try first, which work on the hardware of the cluster.
func (d *Cluster) firstCommands() []string {
	commands, example := []string{"get nodes"}, "examples/cpu.yaml"
	gpus := len(d.Discovered.Inventory.Devices)
	if gpus >= 8 && d.config.Nodes >= 4 {
		example = "examples/gang.yaml"
	}
	switch {
	case d.config.Work == nil:
	case gpus > 0:
		commands = append(commands, "run -g 1 -- printenv CUDA_VISIBLE_DEVICES")
	default:
		commands = append(commands, "run -- hostname")
	}
	return append(commands, "submit -f "+example+" --wait", "get allocations")
}
