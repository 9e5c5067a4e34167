package grpcapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/wire"
)

// bearers knows the admin and the tenant ml.
type bearers struct{}

func (bearers) Authenticate(_ context.Context, token string) (service.Principal, error) {
	switch token {
	case "admin":
		return service.Principal{Name: "root", Admin: true}, nil
	case "ml":
		return service.Principal{Name: "ann", Tenant: "ml"}, nil
	case "lab":
		return service.Principal{Name: "eve", Tenant: "lab"}, nil
	}
	return service.Principal{}, context.Canceled
}

// door serves one cluster over REST and gRPC on one port, as a coordinator does.
func door(t *testing.T, cluster service.Service, forward *service.Forward) (address string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	public := &API{Service: cluster, Authenticator: bearers{}, Logger: quiet}
	if n, knows := cluster.(interface{ Notices() []string }); knows {
		public.Notices = n.Notices
	}
	if forward != nil {
		public.Relay = &Relay{
			Forward: forward, Revision: func() int64 { return 0 }, Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
			At: func(l service.Leader) string { return l.Address },
		}
		t.Cleanup(func() {
			if err := public.Relay.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	grpcServer := public.NewServer()
	web := rest.NewHandler(rest.Config{Service: cluster, Authenticator: bearers{}, Forward: forward})
	server := rest.NewServer(rest.WithGRPC(grpcServer, web), quiet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		grpcServer.Stop()
		_ = server.Close()
		<-done
	})
	return listener.Addr().String()
}

func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// step is one request, as each codec writes it.
type step struct {
	token  string // "" = admin's
	method string
	path   string // below /api/v1
	body   string
	call   func(context.Context, *grpc.ClientConn) (proto.Message, error)
	code   int // of REST
}

func patch(text string) *structpb.Struct {
	s := new(structpb.Struct)
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return s
}

func asMessage[M proto.Message](text string, m M) M {
	made, err := toMessage(json.RawMessage(text), m)
	if err != nil {
		panic(err)
	}
	return made
}

const (
	trainSpec  = `{"metadata":{"name":"train","labels":{"team":"vision"}},"spec":{"resources":{"requests":{"cpu":"8000m","memory":"32Gi","nvidia.com/gpu":"2"}},"priority":100}}`
	moving     = `{"mode":"Maintenance","reason":"moving groups"}`
	hugeSpec   = `{"metadata":{"name":"huge"},"spec":{"resources":{"requests":{"cpu":"1000"}}}}`
	badSpec    = `{"metadata":{"name":"bad"},"spec":{"resources":{"requests":{"cpu":"many"}}}}`
	sweepSpec  = `{"metadata":{"name":"sweep"},"spec":{"parallelism":2,"template":{"spec":{"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}}}}`
	treeSpec   = `{"kind":"QuotaTree","metadata":{"name":"Lab"},"spec":{"nodes":{"all":{"quota":{"cpu":64,"memory":"1Ti"}}}}}`
	quotaSpec  = `{"metadata":{"name":"q","namespace":"ml"},"spec":{"hard":{"cpu":"16","memory":"1Ti"}}}`
	wood       = `{"kind":"QuotaForest","metadata":{"name":"Wood"},"spec":{"trees":["Lab"]}}`
	visionSpec = `{"kind":"Tenant","metadata":{"name":"vision"},"spec":{"displayName":"Computer Vision","contacts":["ops@example.org"]}}`
	devSpec    = `{"kind":"Namespace","metadata":{"name":"vision-dev"},"spec":{"tenant":"vision","priorityCeiling":10}}`
	bound      = `{"kind":"QuotaBinding","metadata":{"name":"ml"},"spec":{"forest":"Wood","groups":{"Lab":"all"}}}`
)

// story is one table of requests, in order, for both codecs.
func story() []step {
	key := func(name string) *apiv1.GetRequest { return &apiv1.GetRequest{Namespace: "ml", Name: name} }
	const ml = "/namespaces/ml"
	create := func(spec string) func(context.Context, *grpc.ClientConn) (proto.Message, error) {
		return func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Create(ctx, &apiv1.CreateAllocationRequest{Namespace: "ml", Allocation: asMessage(spec, new(apiv1.Allocation))})
		}
	}
	return []step{
		{method: "POST", path: ml + "/allocations", body: trainSpec, code: 201, token: "ml", call: create(trainSpec)},
		{method: "POST", path: ml + "/allocations", body: trainSpec, code: 409, call: create(trainSpec)},
		{method: "POST", path: ml + "/allocations", body: hugeSpec, code: 201, call: create(hugeSpec)},
		{method: "POST", path: ml + "/allocations", body: badSpec, code: 422, call: create(badSpec)},
		{method: "GET", path: ml + "/allocations/train", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Get(ctx, key("train"))
		}},
		{method: "GET", path: ml + "/allocations/train?resourceVersion=0", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "train", ResourceVersion: "0"})
		}},
		{method: "GET", path: ml + "/allocations/gone", code: 404, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Get(ctx, key("gone"))
		}},
		{method: "GET", path: ml + "/allocations/A_B", code: 400, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Get(ctx, key("A_B"))
		}},
		{method: "GET", path: "/namespaces/speech/allocations/train", code: 404, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Get(ctx, &apiv1.GetRequest{Namespace: "speech", Name: "train"})
		}},
		{method: "GET", path: "/allocations", code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).List(ctx, &apiv1.ListRequest{})
		}},
		{method: "GET", path: "/allocations", code: 401, token: "stranger", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).List(ctx, &apiv1.ListRequest{})
		}},
		{method: "GET", path: ml + "/allocations?labelSelector=team%3Dvision&limit=10", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).List(ctx, &apiv1.ListRequest{Namespace: "ml", LabelSelector: "team=vision", Limit: 10})
		}},
		{method: "GET", path: "/allocations?limit=1", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).List(ctx, &apiv1.ListRequest{Limit: 1})
		}},
		{method: "GET", path: ml + "/events?fieldSelector=involvedObject.name%3Dtrain,reason%3DScheduled", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewEventsClient(c).List(ctx, &apiv1.ListRequest{Namespace: "ml", FieldSelector: "involvedObject.name=train,reason=Scheduled"})
		}},
		{method: "GET", path: "/events?limit=1", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewEventsClient(c).List(ctx, &apiv1.ListRequest{Limit: 1})
		}},
		{method: "GET", path: "/events", code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewEventsClient(c).List(ctx, &apiv1.ListRequest{})
		}},
		{method: "GET", path: "/namespaces/speech/events", code: 404, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewEventsClient(c).List(ctx, &apiv1.ListRequest{Namespace: "speech"})
		}},
		{method: "GET", path: ml + "/events?fieldSelector=count%3D1", code: 400, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewEventsClient(c).List(ctx, &apiv1.ListRequest{Namespace: "ml", FieldSelector: "count=1"})
		}},
		{method: "GET", path: ml + "/events/gone", code: 404, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewEventsClient(c).Get(ctx, key("gone"))
		}},
		{method: "PATCH", path: ml + "/allocations/train", body: `{"metadata":{"labels":{"team":null,"tier":"gold"}}}`, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "train", Patch: patch(`{"metadata":{"labels":{"team":null,"tier":"gold"}}}`)})
		}},
		{method: "PATCH", path: ml + "/allocations/huge", body: `{"spec":{"suspend":true,"queue":"night"}}`, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "huge", Patch: patch(`{"spec":{"suspend":true,"queue":"night"}}`)})
		}},
		{method: "PATCH", path: ml + "/allocations/huge", body: `{"spec":{"resources":{"requests":{"cpu":"1"}}}}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "huge", Patch: patch(`{"spec":{"resources":{"requests":{"cpu":"1"}}}}`)})
		}},
		{method: "PATCH", path: ml + "/allocations/huge", body: `{"spec":{"paused":true}}`, code: 400, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "huge", Patch: patch(`{"spec":{"paused":true}}`)})
		}},
		{method: "PATCH", path: ml + "/allocations/train", body: `{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "train", Patch: patch(`{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}`)})
		}},
		{method: "GET", path: ml + "/allocations/huge/explain", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Explain(ctx, &apiv1.ExplainRequest{Namespace: "ml", Name: "huge"})
		}},
		{method: "POST", path: ml + "/allocations?dryRun=true", body: badSpec, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Try(ctx, &apiv1.CreateAllocationRequest{Namespace: "ml", Allocation: asMessage(badSpec, new(apiv1.Allocation))})
		}},
		{method: "POST", path: ml + "/jobs", body: sweepSpec, code: 201, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewJobsClient(c).Create(ctx, &apiv1.CreateJobRequest{Namespace: "ml", Job: asMessage(sweepSpec, new(apiv1.Job))})
		}},
		{method: "GET", path: ml + "/jobs", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewJobsClient(c).List(ctx, &apiv1.ListRequest{Namespace: "ml"})
		}},
		{method: "DELETE", path: ml + "/jobs/sweep", body: `{"gracePeriodSeconds":60}`, code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewJobsClient(c).Delete(ctx, &apiv1.DeleteRequest{Namespace: "ml", Name: "sweep", Options: asMessage(`{"gracePeriodSeconds":60}`, new(apiv1.DeleteOptions))})
		}},
		{method: "GET", path: "/nodes", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).List(ctx, &apiv1.ListRequest{})
		}},
		{method: "PATCH", path: "/nodes/n1", body: `{"spec":{"unschedulable":true}}`, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).Cordon(ctx, &apiv1.NodeRequest{Name: "n1"})
		}},
		{method: "PATCH", path: "/nodes/n1", body: `{"spec":{"unschedulable":true}}`, code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).Cordon(ctx, &apiv1.NodeRequest{Name: "n1"})
		}},
		{method: "GET", path: "/nodes?fieldSelector=status.age%3D7", code: 400, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).List(ctx, &apiv1.ListRequest{FieldSelector: "status.age=7"})
		}},
		{method: "POST", path: "/nodes/n1/drain", body: `{"gracePeriodSeconds":90000}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).Drain(ctx, &apiv1.DrainRequest{Name: "n1", Options: asMessage(`{"gracePeriodSeconds":90000}`, new(apiv1.DrainOptions))})
		}},
		{method: "POST", path: "/quotatrees", body: treeSpec, code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaTreesClient(c).Create(ctx, asMessage(treeSpec, new(apiv1.QuotaTree)))
		}},
		{method: "GET", path: "/quotatrees/Lab", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaTreesClient(c).Get(ctx, &apiv1.GetRequest{Name: "Lab"})
		}},
		{method: "POST", path: "/quotaforests", body: wood, code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaForestsClient(c).Create(ctx, asMessage(wood, new(apiv1.QuotaForest)))
		}},
		{method: "DELETE", path: "/quotatrees/Lab", body: `{"preconditions":{"resourceVersion":"1"}}`, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaTreesClient(c).Delete(ctx, &apiv1.RemoveRequest{Name: "Lab", Preconditions: &apiv1.Preconditions{ResourceVersion: "1"}})
		}},
		{method: "DELETE", path: "/nodes/n1", body: `{"preconditions":{"uid":"another"}}`, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).Delete(ctx, &apiv1.RemoveNodeRequest{Name: "n1", Preconditions: &apiv1.Preconditions{Uid: "another"}})
		}},
		{method: "DELETE", path: "/quotatrees/Lab", code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaTreesClient(c).Delete(ctx, &apiv1.RemoveRequest{Name: "Lab"})
		}},
		{method: "POST", path: "/quotabindings", body: bound, code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaBindingsClient(c).Create(ctx, asMessage(bound, new(apiv1.QuotaBinding)))
		}},
		{method: "GET", path: "/quotabindings/ml", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaBindingsClient(c).Get(ctx, &apiv1.GetRequest{Name: "ml"})
		}},
		{method: "PUT", path: ml + "/resourcequotas/q", body: quotaSpec, code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewResourceQuotasClient(c).Update(ctx, asMessage(quotaSpec, new(apiv1.ResourceQuota)))
		}},
		{method: "PATCH", path: ml + "/resourcequotas/q", body: `{"spec":{"hard":{"memory":null}}}`, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewResourceQuotasClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "q", Patch: patch(`{"spec":{"hard":{"memory":null}}}`)})
		}},
		{method: "PATCH", path: ml + "/resourcequotas/q", body: `{"spec":{"hard":{"cpu":"2"}}}`, code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewResourceQuotasClient(c).Patch(ctx, &apiv1.PatchRequest{Namespace: "ml", Name: "q", Patch: patch(`{"spec":{"hard":{"cpu":"2"}}}`)})
		}},
		{method: "POST", path: "/quotatrees/Lab/rename", body: `{"from":"all","to":"everybody"}`, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaTreesClient(c).Rename(ctx, &apiv1.RenameRequest{Name: "Lab", Rename: &apiv1.QuotaRename{From: "all", To: "everybody"}})
		}},
		{method: "POST", path: "/quotatrees/Lab/rename", body: `{"from":"everybody","to":"a b"}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaTreesClient(c).Rename(ctx, &apiv1.RenameRequest{Name: "Lab", Rename: &apiv1.QuotaRename{From: "everybody", To: "a b"}})
		}},
		{method: "POST", path: "/tenants", body: visionSpec, code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).Create(ctx, asMessage(visionSpec, new(apiv1.Tenant)))
		}},
		{method: "POST", path: "/tenants", body: `{"metadata":{"name":"A_B"}}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).Create(ctx, asMessage(`{"metadata":{"name":"A_B"}}`, new(apiv1.Tenant)))
		}},
		{method: "GET", path: "/tenants/vision", code: 404, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).Get(ctx, &apiv1.GetRequest{Name: "vision"})
		}},
		{method: "GET", path: "/tenants/A_B", code: 400, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).Get(ctx, &apiv1.GetRequest{Name: "A_B"})
		}},
		{method: "GET", path: "/tenants", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).List(ctx, &apiv1.ListRequest{})
		}},
		{method: "PATCH", path: "/tenants/vision", body: `{"spec":{"owner":"ada"}}`, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).Patch(ctx, &apiv1.PatchRequest{Name: "vision", Patch: patch(`{"spec":{"owner":"ada"}}`)})
		}},
		{method: "PUT", path: "/namespaces/vision-dev", body: devSpec, code: 201, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNamespacesClient(c).Update(ctx, asMessage(devSpec, new(apiv1.Namespace)))
		}},
		{method: "GET", path: "/namespaces/A_B", code: 400, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNamespacesClient(c).Get(ctx, &apiv1.GetRequest{Name: "A_B"})
		}},
		{method: "GET", path: "/namespaces?fieldSelector=spec.tenant%3Dvision", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNamespacesClient(c).List(ctx, &apiv1.ListRequest{FieldSelector: "spec.tenant=vision"})
		}},
		{method: "DELETE", path: "/tenants/vision", code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewTenantsClient(c).Delete(ctx, &apiv1.RemoveRequest{Name: "vision"})
		}},
		{method: "GET", path: "/nodes/n1/evictions", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).ListEvictions(ctx, &apiv1.NodeRequest{Name: "n1"})
		}},
		{method: "GET", path: "/nodes/n1/evictions", code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewNodesClient(c).ListEvictions(ctx, &apiv1.NodeRequest{Name: "n1"})
		}},
		{method: "GET", path: "/metrics/cluster/utilization", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewUsageClient(c).GetClusterUtilization(ctx, &apiv1.GetClusterUtilizationRequest{})
		}},
		{method: "GET", path: "/metrics/queues", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewUsageClient(c).GetQueues(ctx, &apiv1.GetQueuesRequest{})
		}},
		{method: "GET", path: "/metrics/tenants/ml/usage", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewUsageClient(c).GetTenantUsage(ctx, &apiv1.GetTenantUsageRequest{Tenant: "ml"})
		}},
		{method: "GET", path: "/metrics/tenants/vision/usage", code: 404, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewUsageClient(c).GetTenantUsage(ctx, &apiv1.GetTenantUsageRequest{Tenant: "vision"})
		}},
		{method: "GET", path: "/metrics/tenants/ml/usage?period=9000h0m0s", code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewUsageClient(c).GetTenantUsage(ctx, &apiv1.GetTenantUsageRequest{Tenant: "ml", Period: durationpb.New(9000 * time.Hour)})
		}},
		{method: "GET", path: "/history/allocations?limit=5&namespace=ml&state=Failed", code: 404, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewHistoryClient(c).ListAllocations(ctx, &apiv1.ListPastRequest{Limit: 5, Namespace: "ml", State: "Failed"})
		}},
		{method: "GET", path: "/history/status", code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewHistoryClient(c).GetStatus(ctx, &apiv1.GetHistoryStatusRequest{})
		}},
		{method: "POST", path: ml + "/allocations/bulk-release", body: `{"labelSelector":"tier=gold","dryRun":true}`, code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).BulkRelease(ctx, &apiv1.BulkReleaseRequest{Namespace: "ml", Options: &apiv1.BulkReleaseOptions{LabelSelector: "tier=gold", DryRun: true}})
		}},
		{method: "POST", path: ml + "/allocations/bulk-release", body: `{}`, code: 422, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).BulkRelease(ctx, &apiv1.BulkReleaseRequest{Namespace: "ml", Options: new(apiv1.BulkReleaseOptions)})
		}},
		{method: "POST", path: ml + "/preemptions", body: `{"targetAllocation":"train","reason":"maintenance"}`, code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Preempt(ctx, &apiv1.PreemptRequest{Namespace: "ml", Preemption: asMessage(`{"targetAllocation":"train","reason":"maintenance"}`, new(apiv1.PreemptionRequest))})
		}},
		{method: "DELETE", path: ml + "/allocations/train?dryRun=true", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Delete(ctx, &apiv1.DeleteRequest{Namespace: "ml", Name: "train", DryRun: true})
		}},
		{method: "GET", path: "/quota", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaModesClient(c).Get(ctx, &apiv1.GetQuotaModeRequest{})
		}},
		{method: "PATCH", path: "/quota", body: moving, code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaModesClient(c).Patch(ctx, asMessage(moving, new(apiv1.QuotaModePatch)))
		}},
		{method: "PATCH", path: "/quota", body: moving, code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaModesClient(c).Patch(ctx, asMessage(moving, new(apiv1.QuotaModePatch)))
		}},
		{method: "PATCH", path: "/quota", body: `{"mode":"off"}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewQuotaModesClient(c).Patch(ctx, asMessage(`{"mode":"off"}`, new(apiv1.QuotaModePatch)))
		}},
		{method: "DELETE", path: ml + "/allocations/train", code: 200, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewAllocationsClient(c).Delete(ctx, &apiv1.DeleteRequest{Namespace: "ml", Name: "train"})
		}},
	}
}

// overREST sends a step and returns the code and the body.
func (s step) overREST(t *testing.T, address string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), s.method, "http://"+address+"/api/v1"+s.path, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.bearer())
	if r.Header.Set("Content-Type", "application/json"); s.method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}

func (s step) bearer() string {
	if s.token == "" {
		return "admin"
	}
	return s.token
}

// One table of requests gives the same objects and the same refusals over REST
// and over gRPC, at the leader and through a follower.
func TestRESTAndGRPCAnswerAlike(t *testing.T) {
	for at, through := range map[string]func(t *testing.T, cluster service.Service) string{
		"the leader": func(t *testing.T, cluster service.Service) string { return door(t, cluster, nil) },
		"a follower": func(t *testing.T, cluster service.Service) string {
			leader := service.Leader{ID: "l", Address: door(t, cluster, nil)}
			return door(t, away(), service.NewForward("f", throne{leader}, time.Second, nil))
		},
	} {
		t.Run("at "+at, func(t *testing.T) {
			now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
			node := resttest.Node{Name: "n1", CPUs: 16, Memory: 64 << 30, GPUs: 4}
			web := through(t, resttest.New(now, node).StandStill())
			conn := connect(t, through(t, resttest.New(now, node).StandStill()))
			for _, s := range story() {
				t.Run(s.method+" "+s.path, func(t *testing.T) {
					code, body := s.overREST(t, web)
					ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.bearer())
					got, err := s.call(ctx, conn)
					if code != s.code {
						t.Fatalf("REST answers %d %s, want %d", code, body, s.code)
					}
					if code > 299 {
						sameRefusal(t, body, err)
						return
					}
					if err != nil {
						t.Fatalf("gRPC refuses: %v; REST answers %s", err, body)
					}
					want, err := toMessage(json.RawMessage(body), got.ProtoReflect().New().Interface())
					if err != nil {
						t.Fatal(err)
					}
					if !proto.Equal(want, got) {
						t.Errorf("REST answers\n%v\ngRPC answers\n%v", want, got)
					}
				})
			}
		})
	}
}

func sameRefusal(t *testing.T, body []byte, err error) {
	t.Helper()
	want := new(api.Status)
	if err := json.Unmarshal(body, want); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Fatalf("REST refuses with %+v, gRPC does not", want)
	}
	got := wire.FromRefusal(err)
	if got.RequestID == "" {
		t.Error("the refusal over gRPC has no request id")
	}
	want.RequestID, got.RequestID = "", ""
	if !reflect.DeepEqual(want, got) {
		t.Errorf("REST refuses with\n%+v\ngRPC with\n%+v", want, got)
	}
}

// throne is a Peer that knows one leader.
type throne struct{ leader service.Leader }

func (s throne) Leader(context.Context) (service.Leader, error) { return s.leader, nil }
func (throne) Reach(context.Context, int64) error               { return nil }

// away is a follower whose cache is not loaded: it answers nothing by itself.
func away() service.Service {
	return resttest.NotLeading{}
}

func TestReflectionListsTheServices(t *testing.T) {
	stream, err := reflectionv1.NewServerReflectionClient(connect(t, door(t, resttest.New(time.Now), nil))).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	if list := strings.Join(names, " "); !strings.Contains(list, "muster.api.v1.Allocations") || !strings.Contains(list, "grpc.health.v1.Health") || strings.Contains(list, "muster.v1.Agent") {
		t.Errorf("the services are %s", list)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

func TestARequestKeepsItsID(t *testing.T) {
	client := apiv1.NewAllocationsClient(connect(t, door(t, resttest.New(time.Now), nil)))
	for given, want := range map[string]string{"mine-1": "mine-1", "two words": "", "": ""} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
		if given != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", given)
		}
		var header metadata.MD
		_, err := client.Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "gone"}, grpc.Header(&header))
		id := wire.FromRefusal(err).RequestID
		if id == "" || id == "two words" || want != "" && id != want || only(header.Get("x-request-id")) != id {
			t.Errorf("given %q: the refusal has %q, the header %q", given, id, header.Get("x-request-id"))
		}
	}
}

// Each answer warns of the mode Maintenance, once, also where the leader gives the
// answer and where the call is refused.
func TestEachAnswerWarnsOfMaintenance(t *testing.T) {
	cluster := resttest.New(time.Now)
	leader := door(t, cluster, nil)
	follower := door(t, behind{NotLeading: resttest.NotLeading{}, notices: cluster.Notices}, service.NewForward("f", throne{service.Leader{ID: "l", Address: leader}}, time.Second, nil))
	warnings := func(address string) string {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
		var header metadata.MD
		_, err := apiv1.NewAllocationsClient(connect(t, address)).Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "gone"}, grpc.Header(&header))
		if s := wire.FromRefusal(err); s == nil || s.Code != 404 {
			t.Errorf("got %v", err)
		}
		return strings.Join(header.Get(warningKey), "\n")
	}
	for _, address := range []string{leader, follower} {
		if got := warnings(address); got != "" {
			t.Errorf("in the mode Normal: %q", got)
		}
	}
	if _, err := cluster.PatchQuotaMode(t.Context(), api.QuotaModePatch{Mode: api.ModeMaintenance}, "ada"); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"leader": leader, "follower": follower} {
		if got := warnings(address); !strings.HasPrefix(got, "quota trees are in the mode Maintenance since ") || strings.Contains(got, "\n") {
			t.Errorf("the %s warns %q", name, got)
		}
	}
}

// behind is a follower that knows the mode.
type behind struct {
	resttest.NotLeading
	notices func() []string
}

func (b behind) Notices() []string { return b.notices() }

// A fault inside the service is not shown, and the connection goes on.
func TestAFaultIsNotShown(t *testing.T) {
	client := apiv1.NewAllocationsClient(connect(t, door(t, struct{ service.Service }{}, nil)))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
	for range 2 {
		_, err := client.Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "a"})
		if s := wire.FromRefusal(err); s == nil || s.Code != 500 || !strings.Contains(s.Message, "failed inside the coordinator") {
			t.Errorf("got %v", err)
		}
	}
}

// Work that can never run is accepted with a warning, by a follower too.
func TestWorkThatCanNeverRunIsWarnedOf(t *testing.T) {
	leader := door(t, resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 16, Memory: 64 << 30}), nil)
	follower := door(t, away(), service.NewForward("f", throne{service.Leader{ID: "l", Address: leader}}, time.Second, nil))
	want := []string{"Never on the nodes registered now, absent ones included: a member wants 1000 CPUs, and the only node has no more than 16 CPUs. It waits until a node or a quota changes that."}
	for namespace, address := range map[string]string{"ml": leader, "speech": follower} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
		request := &apiv1.CreateAllocationRequest{Namespace: namespace, Allocation: asMessage(hugeSpec, new(apiv1.Allocation))}
		var header metadata.MD
		if _, err := apiv1.NewAllocationsClient(connect(t, address)).Create(ctx, request, grpc.Header(&header)); err != nil {
			t.Fatalf("%s: %v", namespace, err)
		}
		if diff := cmp.Diff(want, header.Get("muster-warning")); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", namespace, diff)
		}
	}
}
