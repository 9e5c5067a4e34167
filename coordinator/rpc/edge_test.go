package rpc_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// behindTheEdge serves both services as a coordinator does, without the
// authentication of the caller.
func behindTheEdge(t *testing.T) (*grpc.ClientConn, *mem.Store) {
	t.Helper()
	server, s := open(t, mem.Options{})
	l := bufconn.Listen(64 << 10)
	g := grpc.NewServer(append(limits.ServerOptions(), grpc.MaxRecvMsgSize(limits.MaxSession))...)
	musterv1.RegisterCoordinatorServer(g, server)
	schedulerv1.RegisterNodeAgentServer(g, &rpc.Heartbeats{CoordinatorID: "c1", Store: s, Logger: quiet})
	served := make(chan struct{})
	go func() {
		defer close(served)
		g.Serve(l)
	}()
	conn, err := grpc.NewClient("passthrough:///c1", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		g.Stop()
		<-served
	})
	return conn, s
}

// TestAHostileRegistrationIsRefusedByField has the attacks of rows S1 and S3.
func TestAHostileRegistrationIsRefusedByField(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*musterv1.RegisterRequest)
		code   codes.Code
		want   string
	}{
		"NUMA nodes of 2^63-1 bytes": {func(r *musterv1.RegisterRequest) {
			for _, n := range r.Host.Topology.Nodes {
				n.Memory = 1<<63 - 1
			}
		}, codes.InvalidArgument, "host.topology.nodes[0].memory: 9223372036854775807 is outside"},
		"NUMA nodes that are too much together": {func(r *musterv1.RegisterRequest) {
			r.Host.Topology.Nodes = []*musterv1.NUMANode{{Memory: int64(resource.MaxMemory)}, {Id: 1, Memory: int64(resource.MaxMemory)}}
			r.Host.Topology.Cpus = nil
		}, codes.InvalidArgument, "host.topology: numa: nodes up to 1 have 2251799813685248 bytes"},
		"a device of 2^63-1 bytes": {func(r *musterv1.RegisterRequest) { r.Host.Inventory.Devices[0].Memory = 1<<63 - 1 },
			codes.InvalidArgument, "host.inventory.devices[0].memory: 9223372036854775807"},
		"a device twice": {func(r *musterv1.RegisterRequest) { r.Host.Inventory.Devices[1].Uuid = r.Host.Inventory.Devices[0].Uuid },
			codes.InvalidArgument, "share UUID"},
		"a device whose UUID is a path": {func(r *musterv1.RegisterRequest) { r.Host.Inventory.Devices[0].Uuid = "../../etc/x" },
			codes.InvalidArgument, `host.inventory: devices: device 0 (`},
		"65 labels": {func(r *musterv1.RegisterRequest) {
			for i := range 65 {
				r.Host.Labels[fmt.Sprint("l", i)] = ""
			}
		}, codes.InvalidArgument, "host.labels: 66 entries, more than 64"},
		"a label of 100 KB": {func(r *musterv1.RegisterRequest) { r.Host.Labels["zone"] = strings.Repeat("z", 100_000) },
			codes.InvalidArgument, `host.labels["zone"]: 100000 bytes, more than 253`},
		"a label's key of a terminal": {func(r *musterv1.RegisterRequest) { r.Host.Labels["\x1b[2J"] = "a" },
			codes.InvalidArgument, `host.labels[key "?[2J"]`},
		"labels of 9 MB": {func(r *musterv1.RegisterRequest) { r.Host.Labels["zone"] = strings.Repeat("z", 9<<20) },
			codes.ResourceExhausted, "larger than max"},
		"more than 1 MiB": {func(r *musterv1.RegisterRequest) { r.Version = strings.Repeat("v", limits.MaxRegister) },
			codes.Internal, "muster.v1.RegisterRequest: 1049"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, s := behindTheEdge(t)
			r := registration(t, first)
			c.change(r)
			_, err := musterv1.NewCoordinatorClient(conn).Register(t.Context(), r)
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("error %v, want %s with %q", err, c.code, c.want)
			}
			if kvs, _, _ := s.Range(t.Context(), "/", store.RangeOptions{}); len(kvs) > 0 {
				t.Errorf("%d keys were written", len(kvs))
			}
		})
	}
}

// TestAHostileHeartbeatIsRefusedByField has those of rows S3 and S13.
func TestAHostileHeartbeatIsRefusedByField(t *testing.T) {
	for name, c := range map[string]struct {
		beat *schedulerv1.HeartbeatRequest
		code codes.Code
		want string
	}{
		"conditions of 9 MB": {&schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: []*schedulerv1.NodeCondition{{Message: strings.Repeat("m", 9<<20)}}},
			codes.ResourceExhausted, "larger than max"},
		"a message of 5 KB": {&schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: []*schedulerv1.NodeCondition{{Message: strings.Repeat("m", 5000)}}},
			codes.InvalidArgument, "conditions[0].message: 5000 bytes, more than 4096"},
		"33 conditions": {&schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: make([]*schedulerv1.NodeCondition, 33)},
			codes.InvalidArgument, "conditions: 33 entries, more than 32"},
		"a usage of 2^62": {&schedulerv1.HeartbeatRequest{NodeId: "n1", CurrentUsage: &schedulerv1.ResourceUsage{CpuMillicores: 1 << 62}},
			codes.InvalidArgument, "current_usage.cpu_millicores: 4611686018427387904 is outside"},
		"a node's name with an escape": {&schedulerv1.HeartbeatRequest{NodeId: "n1\x1b[2J"}, codes.InvalidArgument, `node_id: "n1?[2J"`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := behindTheEdge(t)
			stream, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(c.beat); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s with %q", err, c.code, c.want)
			}
		})
	}
}

func TestNoEscapeOfAHostIsStored(t *testing.T) {
	conn, s := behindTheEdge(t)
	r := registration(t, first)
	r.Version, r.Host.Labels["zone"], r.Host.Inventory.Devices[0].Model = "v1\x1b[31m", "a\x07b", "NVIDIA\x1b]0;H200"
	if _, err := musterv1.NewCoordinatorClient(conn).Register(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	stream, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beat(t, stream, &schedulerv1.HeartbeatRequest{NodeId: "n1", Conditions: []*schedulerv1.NodeCondition{
		{Type: "Ready", Status: "True", Reason: "Fine\x1b[2J", Message: "all\tis\nwell\u202e\x1b[1;1H"},
	}})
	spec, _ := get[record.NodeSpec](t, s, record.NodeSpecKey("n1"))
	nodeStatus, _ := get[record.NodeStatus](t, s, record.NodeStatusKey("n1"))
	if c := nodeStatus.Conditions[0]; c.Reason != "Fine?[2J" || c.Message != "all is well??[1;1H" {
		t.Errorf("condition %+v", c)
	}
	if spec.Version != "v1?[31m" || len(spec.Labels) != 0 || len(spec.IgnoredLabels) != 1 || spec.Topology.GPUModels[0] != "NVIDIA?]0;H200" && spec.Topology.GPUModels[len(spec.Topology.GPUModels)-1] != "NVIDIA?]0;H200" {
		t.Errorf("spec %+v", spec)
	}
}
