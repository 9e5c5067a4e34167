package cluster

import (
	"context"
	"os/exec"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

// Name is the name of every cluster that Start starts.
const Name = "test"

// Host adds a host to the cluster's network that runs no part of the cluster,
// for the programs of a test. Its address reaches every other host.
func (c *Cluster) Host(name string) *Host {
	c.t.Helper()
	c.folder(name)
	return c.net.host(name)
}

// Command is a program that runs on the host.
func (h *Host) Command(path string, args ...string) *exec.Cmd { return h.command(path, args...) }

// PID is the process's number, 0 before the first start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return 0
	}
	return p.run.cmd.Process.Pid
}

// Token makes a bootstrap token for one node. With replace the node exists, and
// the token lets another key take its place.
func (c *Cluster) Token(ctx context.Context, node resource.NodeID, replace bool) (string, error) {
	made, err := ask(ctx, c.Client, 0, func(ctx context.Context, k *sdk.Client) (*api.BootstrapToken, error) {
		return k.Identity().CreateToken(ctx, api.BootstrapTokenSpec{Nodes: string(node), Replace: replace})
	})
	if err != nil {
		return "", err
	}
	return made.Status.Token, nil
}

// CAFile holds the authorities that the clients of the REST API trust.
func (c *Cluster) CAFile() string { return c.caFile }

// AdminToken is the bearer token of the REST API.
func (c *Cluster) AdminToken() string { return adminToken }

// Node reads one node.
func (k *Client) Node(ctx context.Context, name string) (*api.Node, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.Node, error) {
		return c.Nodes().Get(ctx, name)
	})
}

// PatchNode changes a node. The patch must be safe to repeat.
func (k *Client) PatchNode(ctx context.Context, name string, p api.NodePatch) (*api.Node, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.Node, error) {
		return c.Nodes().Patch(ctx, name, p)
	})
}

// Held are the devices that an agent's grants hold, by the state that the agent shows.
func (c *Cluster) Held(ctx context.Context, a *Agent) (map[string][]string, error) {
	s, err := c.snapshot(ctx, a)
	if err != nil {
		return nil, err
	}
	held := map[string][]string{}
	for _, g := range s.GetAllocations() {
		held[g.GetState()] = append(held[g.GetState()], g.GetGpuUuids()...)
	}
	return held, nil
}

// SerfAddress is where a coordinator's process is in the serf ring.
func (p *Process) SerfAddress() string { return p.Address(leaderSerfPort) }
