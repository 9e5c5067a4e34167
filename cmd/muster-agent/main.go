// Command muster-agent is the daemon of one host. See systemd/muster-agent.yaml
// for its configuration.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/musterd/muster/agent/shim"
)

func main() {
	shim.Become(os.Args)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes of the program.
const (
	exitDone   = 0 // done, or stopped by a signal
	exitFailed = 1
	exitUsage  = 2 // wrong flags or configuration
)

// Run is the program: it runs until it is done or ctx ends, and returns its
// exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(ctx), stderr)
}
