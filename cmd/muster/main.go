// Command muster is the client of a Muster cluster, and with its verb dev a
// whole cluster in one process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/cmd/buildinfo"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/cmd/muster/dev"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
)

func main() {
	shim.Become(os.Args) // the agents of a dev cluster start this program as supervisor
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	program := cli.Program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Args: os.Args[1:], Version: buildinfo.Version(),
	}
	os.Exit(program.Run(ctx, dev.Command(dev.Options{Version: program.Version, AddContext: addContext, Usage: cli.Usage, Env: os.Getenv})))
}

// addContext makes a server the one that later commands talk to, until end.
func addContext(addr, token string) (dev.AddedContext, error) {
	path, err := clicontext.Path(os.Getenv)
	if err != nil {
		return dev.AddedContext{}, err
	}
	lease, err := clicontext.AddDev(path, os.Getpid(), clicontext.Context{Addr: addr, Token: token})
	if err != nil {
		return dev.AddedContext{}, err
	}
	return dev.AddedContext{Name: lease.Name, File: path, End: lease.End}, nil
}
