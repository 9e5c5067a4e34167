package grpcapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

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
		{method: "GET", path: "/featurelevel", code: 200, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewFeatureLevelsClient(c).Get(ctx, &apiv1.GetFeatureLevelRequest{})
		}},
		{method: "GET", path: "/featurelevel", code: 403, token: "ml", call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewFeatureLevelsClient(c).Get(ctx, &apiv1.GetFeatureLevelRequest{})
		}},
		{method: "PATCH", path: "/featurelevel", body: `{"level":1}`, code: 409, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewFeatureLevelsClient(c).Patch(ctx, &apiv1.FeatureLevelPatch{Level: 1})
		}},
		{method: "PATCH", path: "/featurelevel", body: `{"level":-1}`, code: 422, call: func(ctx context.Context, c *grpc.ClientConn) (proto.Message, error) {
			return apiv1.NewFeatureLevelsClient(c).Patch(ctx, &apiv1.FeatureLevelPatch{Level: -1})
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
