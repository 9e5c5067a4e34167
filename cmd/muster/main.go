// Command muster is the client of a Muster cluster, and with its verb dev a
// whole cluster in one process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/musterd/muster/cmd/buildinfo"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/cmd/muster/dev"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	program := cli.Program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Args: os.Args[1:], Version: buildinfo.Version(),
	}
	os.Exit(program.Run(ctx, dev.Command(dev.Options{Version: program.Version, SaveContext: saveContext, Usage: cli.Usage, Env: os.Getenv})))
}

// saveContext makes a server the one that later commands talk to.
func saveContext(addr, token string) (string, error) {
	path, err := clicontext.Path(os.Getenv)
	if err != nil {
		return "", err
	}
	return path, clicontext.Save(path, clicontext.Context{Addr: addr, Token: token})
}
