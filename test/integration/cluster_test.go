package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/canary"
	nvmltest "github.com/musterd/muster/test/nvml"
	"github.com/musterd/muster/test/programs"
)

const (
	clusterToken = canary.Mark + "-0123456789abcdef-cluster"
	adminToken   = canary.Mark + "-0123456789abcdef-operator"
)

// cluster is one coordinator and some agents as separate programs, each with
// its own config file and data folder.
type cluster struct {
	*user
	coordinator *daemon
	agents      []*daemon
	rest, grpc  string // addresses of the coordinator
	serf        string
}

// newCluster writes the config files of a coordinator and n agents that have
// eight A100 each, found through NVML. Nothing is started yet.
func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	dir := t.TempDir()
	tokenFile, adminFile := filepath.Join(dir, "token"), filepath.Join(dir, "admin-token")
	write(t, tokenFile, []byte(clusterToken+"\n"), 0o600)
	write(t, adminFile, []byte(adminToken+"\n"), 0o600)
	ports := freePorts(t, 5)
	c := &cluster{rest: loopback(ports[0]), grpc: loopback(ports[1]), serf: loopback(ports[2])}
	c.coordinator = newDaemon(t, "coordinator", "muster-coordinator", settings{
		"cluster": "test", "id": "c1", "tokenFile": tokenFile, "adminTokenFile": adminFile,
		"restListen": c.rest, "grpcListen": c.grpc,
		// A minute: what waits for a dead leader's lease fails its test.
		"leaseTTL": "1m",
		"gossip":   settings{"serfBind": c.serf, "serfRPC": loopback(ports[4]), "capacityBind": loopback(ports[3])},
	})
	library := nvmltest.Build(t)
	for i := range n {
		c.agents = append(c.agents, newAgent(t, dir, library, fmt.Sprintf("node-%d", i), tokenFile, c.serf))
	}
	c.user = newUser(t, "http://"+c.rest, adminToken)
	return c
}

// newAgent writes the config of one agent, which knows the coordinator through
// gossip alone.
func newAgent(t *testing.T, dir, library, node, tokenFile, join string) *daemon {
	t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	script := nvmltest.WriteScript(t, dir, profile, node)
	ports := freePorts(t, 5)
	return newDaemon(t, node, "muster-agent", settings{
		"cluster": "test", "nodeID": node, "tokenFile": tokenFile,
		"listen": loopback(ports[0]), "metricsListen": loopback(ports[1]), "heartbeat": "500ms",
		"gossip": settings{
			"serfBind": loopback(ports[2]), "serfRPC": loopback(ports[3]), "capacityBind": loopback(ports[4]), "join": []string{join},
		},
	}, nvmltest.Environ(library, script)...)
}

// startCluster starts the programs, the coordinator last: order must not
// matter. It returns once every node is ready.
func startCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := newCluster(t, n)
	for _, a := range c.agents {
		a.start()
	}
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(n)
	return c
}

// awaitLeader waits until the coordinator leads.
func (c *cluster) awaitLeader() {
	c.t.Helper()
	programs.Eventually(c.t, patience, "the coordinator leads", func() error {
		return leads(c.t.Context(), c.rest)
	})
}

// leads asks /readyz.
func leads(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	var self api.Coordinator
	if err := json.NewDecoder(answer.Body).Decode(&self); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if self.Role != api.LeaderRole {
		return fmt.Errorf("%s is %q", address, self.Role)
	}
	return nil
}

// awaitNodes waits until exactly n nodes are ready.
func (u *user) awaitNodes(n int) {
	u.t.Helper()
	programs.Eventually(u.t, patience, fmt.Sprintf("%d nodes are ready", n), func() error {
		list, err := u.client.Nodes().List(u.t.Context(), sdk.ListOptions{})
		if err != nil {
			return err
		}
		var phases []string
		ready := 0
		for _, node := range list.Items {
			phases = append(phases, node.Metadata.Name+" "+node.Status.Phase)
			if node.Status.Phase == "Ready" {
				ready++
			}
		}
		if ready != n {
			return fmt.Errorf("%d are: %v", ready, phases)
		}
		return nil
	})
}

// awaitPhase waits until a node is in a phase: Ready while the leader's stream
// to its agent is up.
func (c *cluster) awaitPhase(node, phase string) {
	c.t.Helper()
	programs.Eventually(c.t, patience, node+" is "+phase, func() error {
		n, err := c.client.Nodes().Get(c.t.Context(), node)
		if err != nil {
			return err
		}
		if n.Status.Phase != phase {
			return fmt.Errorf("it is %s", n.Status.Phase)
		}
		return nil
	})
}

// restart kills an agent and starts it again. Its node is shown as it was until
// the leader has noticed, and is waited for in between.
func (c *cluster) restart(a *daemon) {
	c.t.Helper()
	a.kill()
	programs.Eventually(c.t, patience, "nobody hears "+a.name, func() error {
		got := c.readiness(a.name)
		for _, reason := range []string{"AgentUnreachable: ", "LeaseExpired: "} { // the lease of one that was not heard for long may not have begun
			if strings.Contains(got, reason) {
				return nil
			}
		}
		return fmt.Errorf("its node says %q", got)
	})
	a.start()
}

// soon is a context for one call.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
