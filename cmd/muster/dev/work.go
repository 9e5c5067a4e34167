package dev

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/attach"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
)

// This file says as whom a dev cluster runs the commands of jobs: as the user who has
// started the cluster, and as root only where --run-as says so.

// stopGrace is the grace of work when a cluster with a temporary folder stops.
const stopGrace = 2 * time.Second

// everywhere are the folders in which root file systems may lie, and whose contents jobs may
// mount: the rights of the user decide.
var everywhere = []string{"/"}

// workOf returns how the agents start commands; nil: they start none. noContainers says why
// this host cannot run commands in root file systems of their own: such jobs wait. effective is
// the user id of this process, env looks its environment up.
func workOf(runAs string, effective int, env func(string) string) (work *agent.RunConfig, noContainers, err error) {
	if runAs == "" && effective == 0 {
		return nil, nil, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	program = shim.Program(program)
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("working directory: %w", err)
	}
	c := &agent.RunConfig{Program: program, Dir: dir}
	c.Containers, noContainers = agent.FindContainers(program, everywhere, everywhere)
	for _, name := range []string{"PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR"} {
		if value := env(name); value != "" {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	who := users.Account{Name: env("USER"), Home: env("HOME")}
	if runAs != "" {
		who, err = users.Lookup(runAs)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("--run-as %q: %w", runAs, err)
		case effective != 0 && int(who.ID.UID) != effective:
			return nil, nil, fmt.Errorf("--run-as %q: only root can run commands as another user; leave it out", runAs)
		case effective == 0:
			c.User = &who.ID
		}
	}
	c.Env = append(c.Env, who.Env()...)
	return c, noContainers, nil
}

// endWork ends what the agents have started, before the cluster's folder is removed.
func (d *Cluster) endWork() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*stopGrace)
	defer cancel()
	for _, a := range d.agents {
		a.EndWork(stopGrace)
	}
	for _, a := range d.agents {
		a.AwaitWork(ctx)
	}
}

// attachConfig is how launchers attach their processes to the grants of a node, as root or
// as the user who has started the cluster; nil where the path of the socket is longer than
// Linux takes.
func (d *Cluster) attachConfig(node string) *agent.AttachConfig {
	socket := filepath.Join(d.nodeDir(node), "attach.sock")
	if len(socket) > mostSocket {
		d.config.Logger.Warn("no_attach_socket", "path", socket, "most", mostSocket)
		return nil
	}
	return &agent.AttachConfig{Socket: socket, Hierarchy: attach.Hierarchy()}
}

// mostSocket bounds the path of a socket, as Linux does.
const mostSocket = 107
