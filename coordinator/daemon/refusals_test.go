package daemon

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/condition"
	"github.com/musterd/muster/coordinator/store/mem"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire/limits"
)

// counters returns the values of a metric with one label, by the label's value.
func counters(t *testing.T, registry *prometheus.Registry, name string) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
		}
	}
	return got
}

func TestRefusedMessagesAndActsBeyondABudgetAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, err := rpcauth.NewToken("the-token-of-the-cluster")
		if err != nil {
			t.Fatal(err)
		}
		s := mem.Open(mem.Options{})
		defer s.Close()
		quiet := slog.New(slog.DiscardHandler)
		registry := prometheus.NewRegistry()
		c, err := coordinator.New(coordinator.Config{ID: "c1", Cluster: "c", Logger: quiet}, s.Connect(mem.Options{}), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		d := &Daemon{
			config: Config{ID: "c1", Cluster: "c"}, log: quiet, store: store.Guard(condition.Observe(s, nil), 0, quiet), coordinator: c,
			security: security{member: token}, callers: service.StaticToken("operators"), forward: service.NewForward("c1", c, 0, nil),
		}
		d.serveGRPC(registry)
		l := bufconn.Listen(1 << 16)
		go d.grpc.Serve(l)
		defer d.relay.Close()
		defer d.grpc.Stop()
		conn, err := grpc.NewClient("passthrough:///c1", append(token.DialOptions(rpcauth.AnyCoordinator()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		node := musterv1.NewCoordinatorClient(conn)
		for range 3 {
			if _, err := node.ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n 1"}); status.Code(err) != codes.InvalidArgument {
				t.Fatalf("a name with a space: %v, want InvalidArgument", err)
			}
		}
		over := 0
		for range rpc.Reads.Burst + 5 {
			if _, err := node.ReadNode(t.Context(), &musterv1.ReadNodeRequest{NodeId: "n1"}); status.Code(err) == codes.ResourceExhausted {
				over++
			}
		}
		beats, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range rpc.Heartbeat.Burst + 1 {
			if err := beats.Send(&schedulerv1.HeartbeatRequest{NodeId: "n1"}); err != nil {
				t.Fatal(err)
			}
			_, err = beats.Recv()
		}
		if status.Code(err) != codes.ResourceExhausted || over != 5 {
			t.Errorf("%d reads of 5 and the last heartbeat (%v) are refused, want ResourceExhausted for all", over, err)
		}
		if got := counters(t, registry, "muster_coordinator_over_budget_total"); len(got) != 2 || got[rpc.Reads.Name] != 5 || got[rpc.Heartbeat.Name] != 1 {
			t.Errorf("over budget: %v, want 5 reads and 1 heartbeat", got)
		}

		d.refusals.message(t.Context(), "/muster.v1.Coordinator/Invented", &limits.Violation{}) // no server calls it so
		want := map[string]int{musterv1.Coordinator_ReadNode_FullMethodName: 3, otherMethod: 1}
		if got := counters(t, registry, "muster_coordinator_messages_refused_total"); len(got) != 2 || got[otherMethod] != 1 || got[musterv1.Coordinator_ReadNode_FullMethodName] != 3 {
			t.Errorf("refused messages: %v, want %v", got, want)
		}
	})
}
