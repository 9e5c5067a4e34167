package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// dial connects to a gRPC server with a cluster token, "" for none.
func dial(t *testing.T, address, secret string) *grpc.ClientConn {
	t.Helper()
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if secret != "" {
		token, err := rpcauth.NewToken(secret)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, grpc.WithPerRPCCredentials(rpcauth.Credentials(token)))
	}
	connection, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// grants is what an agent says itself that it has handed out, one line per
// member, and how many of its devices are wholly free.
func (c *cluster) grants(a *daemon) []string {
	c.t.Helper()
	client := schedulerv1.NewNodeAgentClient(dial(c.t, a.settings["listen"].(string), clusterToken))
	s, err := client.GetResourceSnapshot(soon(c.t), &schedulerv1.SnapshotRequest{}, grpc.WaitForReady(true))
	if err != nil {
		c.t.Fatalf("snapshot of %s: %v", a.name, err)
	}
	free := 0
	for _, d := range s.GetDevices() {
		if d.GetFreeMilli() == 1000 {
			free++
		}
	}
	lines := []string{fmt.Sprintf("%d devices free", free)}
	for _, g := range s.GetAllocations() {
		lines = append(lines, fmt.Sprintf("%s member %d %s: CPUs %s, %d bytes, %s", g.GetTransaction(), g.GetMember(), g.GetState(),
			g.GetCpus(), g.GetMemoryBytes(), strings.Join(g.GetGpuUuids(), ",")))
	}
	slices.Sort(lines)
	return lines
}

func TestDaemonsAnswerNobodyWithoutTheClusterToken(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	agent := c.agents[0].settings["listen"].(string)
	calls := map[string]func(context.Context, string) error{
		"the agent's session": func(ctx context.Context, secret string) error {
			stream, err := musterv1.NewAgentClient(dial(t, agent, secret)).Session(ctx)
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		},
		"the agent's snapshot": func(ctx context.Context, secret string) error {
			_, err := schedulerv1.NewNodeAgentClient(dial(t, agent, secret)).GetResourceSnapshot(ctx, &schedulerv1.SnapshotRequest{})
			return err
		},
		"the agent's bind": func(ctx context.Context, secret string) error {
			_, err := schedulerv1.NewNodeAgentClient(dial(t, agent, secret)).BindAllocation(ctx, &schedulerv1.BindRequest{AllocationId: "x"})
			return err
		},
		"the coordinator's register": func(ctx context.Context, secret string) error {
			_, err := musterv1.NewCoordinatorClient(dial(t, c.grpc, secret)).Register(ctx, &musterv1.RegisterRequest{})
			return err
		},
		"the coordinator's resolve": func(ctx context.Context, secret string) error {
			_, err := musterv1.NewCoordinatorClient(dial(t, c.grpc, secret)).Resolve(ctx, &musterv1.ResolveRequest{})
			return err
		},
		"the coordinator's node": func(ctx context.Context, secret string) error {
			_, err := musterv1.NewCoordinatorClient(dial(t, c.grpc, secret)).ReadNode(ctx, &musterv1.ReadNodeRequest{})
			return err
		},
		"the coordinator's heartbeat": func(ctx context.Context, secret string) error {
			stream, err := schedulerv1.NewNodeAgentClient(dial(t, c.grpc, secret)).Heartbeat(ctx)
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		},
	}
	for name, call := range calls {
		for whose, secret := range map[string]string{
			"no token": "", "a wrong token": "0123456789abcdef-wrong", "the operators' token": adminToken,
		} {
			if err := call(soon(t), secret); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s with %s: %v, want Unauthenticated", name, whose, err)
			}
		}
	}
	// The token of agents is none for REST.
	if _, err := newUser(t, "http://"+c.rest, clusterToken).client.Nodes().Get(soon(t), "node-0"); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("REST takes the cluster's token: %v", err)
	}
	if got := c.grants(c.agents[0]); len(got) != 1 || got[0] != "8 devices free" {
		t.Errorf("with the token the agent answers %q, want 8 devices free", got)
	}
}
