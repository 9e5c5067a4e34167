// Command muster-coordinator keeps a cluster's quota and order in etcd and
// places work on its agents.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(program{args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr, hostname: os.Hostname, env: os.Getenv}.run(ctx))
}
