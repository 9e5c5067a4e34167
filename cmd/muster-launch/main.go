// Command muster-launch is the helper that has systemd start the commands of jobs, for an
// agent without rights (package launch). systemd starts it, by muster-launch.socket; it runs
// as root and reads one file, the agent's configuration, which the agent cannot write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/agent/launch"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/cmd/buildinfo"
)

func main() {
	if err := shim.SealDescriptors(); err != nil {
		fmt.Fprintln(os.Stderr, "muster-launch:", err)
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// Exit codes of the program.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func run(ctx context.Context, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("muster-launch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "muster-launch has systemd start the commands of jobs. systemd starts muster-launch by muster-launch.socket (docs/work.md).")
		flags.PrintDefaults()
	}
	config := flags.String("config", "/etc/muster/muster-agent.yaml", "the agent's configuration, of which work.users, work.allowRoot, work.prolog and work.epilog count")
	agent := flags.String("agent-user", "muster", "the user of the agent: no other user is served")
	version := flags.Bool("version", false, "print the version")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "muster-launch: unexpected argument %q\n", flags.Arg(0))
		return exitUsage
	case *version:
		fmt.Fprintln(stderr, "muster-launch", buildinfo.Version())
		return exitDone
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	server, err := newServer(*config, *agent, log)
	if err != nil {
		fmt.Fprintln(stderr, "muster-launch:", err)
		return exitUsage
	}
	if err := serve(ctx, server); err != nil {
		fmt.Fprintln(stderr, "muster-launch:", err)
		return exitFailed
	}
	return exitDone
}

// newServer reads the table of users and finds the programs.
func newServer(config, agent string, log *slog.Logger) (*launch.Server, error) {
	c, err := readConfig(config, users.Lookup)
	if err != nil {
		return nil, err
	}
	account, err := user.Lookup(agent)
	if err != nil {
		return nil, fmt.Errorf("--agent-user: %w", err)
	}
	uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("--agent-user: %w", err)
	}
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	program := filepath.Join(filepath.Dir(own), shim.Name)
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the supervisor of members: %w: install it beside muster-launch", err)
	}
	manager := &launch.Systemd{Hierarchy: launch.Hierarchy()}
	has, err := manager.Controllers()
	if err != nil {
		return nil, err
	}
	return &launch.Server{Users: c.users, Attachers: c.attachers, Scripts: c.scripts, UID: uint32(uid), GID: uint32(gid), Program: program, Starter: manager, Controllers: has, Log: log}, nil
}

// configured is the part of the agent's configuration that the helper obeys.
type configured struct {
	users, attachers *users.Table
	scripts          map[string]string
}

// readConfig reads the tables of users and the scripts from the agent's configuration, whose
// other keys are the agent's to judge.
func readConfig(path string, lookup func(string) (users.Account, error)) (configured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return configured{}, err
	}
	var file struct {
		Work struct {
			Users     map[string]string `json:"users"`
			AllowRoot bool              `json:"allowRoot"`
			Prolog    string            `json:"prolog"`
			Epilog    string            `json:"epilog"`
		} `json:"work"`
		Attach struct {
			Users map[string]string `json:"users"`
		} `json:"attach"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return configured{}, fmt.Errorf("%s: %w", path, err)
	}
	scripts := map[string]string{launch.Prolog: file.Work.Prolog, launch.Epilog: file.Work.Epilog}
	for name, script := range scripts {
		if script != "" && !filepath.IsAbs(script) {
			return configured{}, fmt.Errorf("%s: work.%s: %.80q is no absolute path", path, name, script)
		}
	}
	table, err := users.NewTable(file.Work.Users, file.Work.AllowRoot, lookup)
	if err != nil {
		return configured{}, fmt.Errorf("%s: work.users: %w", path, err)
	}
	attachers, err := users.NewTable(file.Attach.Users, false, lookup)
	if err != nil {
		return configured{}, fmt.Errorf("%s: attach.users: %w", path, err)
	}
	return configured{table, attachers, scripts}, nil
}

// serve answers at the socket that systemd has opened, until ctx ends.
func serve(ctx context.Context, s *launch.Server) error {
	listeners, err := activation.Listeners()
	if err != nil {
		return fmt.Errorf("sockets of systemd: %w", err)
	}
	if len(listeners) != 1 {
		return fmt.Errorf("%d sockets from systemd, want 1: start it by muster-launch.socket", len(listeners))
	}
	l, ok := listeners[0].(*net.UnixListener)
	if !ok || l.Addr().Network() != "unixpacket" {
		return errors.New("the socket from systemd is not ListenSequentialPacket=")
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		s.Log.Warn("sd_notify_failed", "error", err)
	}
	s.Log.Info("serving", "controllers", s.Controllers)
	return s.Serve(ctx, l)
}
