// Command muster-shim is the supervisor of one member of a job (package shim). The
// agent starts it, as muster-shim shim FOLDER; nobody else does.
//
// It is a program of its own because a host runs one for each member: the agent's own
// program, which could do the same, maps the libraries of etcd, gRPC, metrics and the
// driver into each of them. An upgrade replaces the file and touches no shim that runs.
package main

import (
	"fmt"
	"os"

	"github.com/musterd/muster/agent/shim"
)

func main() {
	shim.Become(os.Args)
	fmt.Fprintln(os.Stderr, "muster-shim: want muster-shim shim FOLDER, with the absolute path of a folder that muster-agent has made; only the agent starts this program")
	os.Exit(2)
}
