package grpcapi_test

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/wire"
)

// remote reaches a service's quotas over gRPC.
type remote struct{ conn *grpc.ClientConn }

// called calls a method with a message and returns the document of its answer, or the
// Status of its refusal.
func called[T any, Q, A proto.Message](ctx context.Context, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q) (*T, error) {
	answer, err := call(ctx, request)
	if err != nil {
		if wire.IsRefusal(err) {
			return nil, wire.FromRefusal(err)
		}
		return nil, err
	}
	document, err := grpcapi.DocumentOf(answer)
	if err != nil {
		return nil, err
	}
	v := new(T)
	return v, json.Unmarshal(document, v)
}

// sent is called with a message that is a document itself.
func sent[T any, Q, A proto.Message](ctx context.Context, call func(context.Context, Q, ...grpc.CallOption) (A, error), document any, request Q) (*T, error) {
	request, err := grpcapi.ToMessage(document, request)
	if err != nil {
		return nil, err
	}
	return called[T](ctx, call, request)
}

func (r remote) quotas() apiv1.ResourceQuotasClient  { return apiv1.NewResourceQuotasClient(r.conn) }
func (r remote) trees() apiv1.QuotaTreesClient       { return apiv1.NewQuotaTreesClient(r.conn) }
func (r remote) forests() apiv1.QuotaForestsClient   { return apiv1.NewQuotaForestsClient(r.conn) }
func (r remote) bindings() apiv1.QuotaBindingsClient { return apiv1.NewQuotaBindingsClient(r.conn) }
func ofName(name string) *apiv1.GetRequest           { return &apiv1.GetRequest{Name: name} }
func in(namespace, name string) *apiv1.GetRequest {
	return &apiv1.GetRequest{Namespace: namespace, Name: name}
}
func gone(p api.Preconditions) *apiv1.Preconditions {
	return &apiv1.Preconditions{Uid: p.UID, ResourceVersion: p.ResourceVersion}
}

func (r remote) CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return sent[api.ResourceQuota](ctx, r.quotas().Create, q, new(apiv1.ResourceQuota))
}

// UpdateResourceQuota makes of the call, which also creates, an update.
func (r remote) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	if _, err := r.GetResourceQuota(ctx, q.Metadata.Namespace, q.Metadata.Name); err != nil {
		return nil, err
	}
	return sent[api.ResourceQuota](ctx, r.quotas().Update, q, new(apiv1.ResourceQuota))
}

func (r remote) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return called[api.ResourceQuota](ctx, r.quotas().Get, in(namespace, name))
}

func (r remote) DeleteResourceQuota(ctx context.Context, namespace, name string, require api.Preconditions) (*api.ResourceQuota, error) {
	return called[api.ResourceQuota](ctx, r.quotas().Delete, &apiv1.RemoveRequest{Namespace: namespace, Name: name, Preconditions: gone(require)})
}

func (r remote) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	return called[api.ResourceQuotaList](ctx, r.quotas().List, &apiv1.ListRequest{Namespace: namespace})
}

func (r remote) PutQuotaTree(ctx context.Context, t *api.QuotaTree, create bool) (*api.QuotaTree, error) {
	if create {
		return sent[api.QuotaTree](ctx, r.trees().Create, t, new(apiv1.QuotaTree))
	}
	return sent[api.QuotaTree](ctx, r.trees().Update, t, new(apiv1.QuotaTree))
}

func (r remote) GetQuotaTree(ctx context.Context, name string) (*api.QuotaTree, error) {
	return called[api.QuotaTree](ctx, r.trees().Get, ofName(name))
}

func (r remote) ListQuotaTrees(ctx context.Context) (*api.QuotaTreeList, error) {
	return called[api.QuotaTreeList](ctx, r.trees().List, new(apiv1.ListRequest))
}

func (r remote) DeleteQuotaTree(ctx context.Context, name string, require api.Preconditions) (*api.QuotaTree, error) {
	return called[api.QuotaTree](ctx, r.trees().Delete, &apiv1.RemoveRequest{Name: name, Preconditions: gone(require)})
}

func (r remote) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	if create {
		return sent[api.QuotaForest](ctx, r.forests().Create, f, new(apiv1.QuotaForest))
	}
	return sent[api.QuotaForest](ctx, r.forests().Update, f, new(apiv1.QuotaForest))
}

func (r remote) GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	return called[api.QuotaForest](ctx, r.forests().Get, ofName(name))
}

func (r remote) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	return called[api.QuotaForestList](ctx, r.forests().List, new(apiv1.ListRequest))
}

func (r remote) DeleteQuotaForest(ctx context.Context, name string, require api.Preconditions) (*api.QuotaForest, error) {
	return called[api.QuotaForest](ctx, r.forests().Delete, &apiv1.RemoveRequest{Name: name, Preconditions: gone(require)})
}

func (r remote) PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	if create {
		return sent[api.QuotaBinding](ctx, r.bindings().Create, b, new(apiv1.QuotaBinding))
	}
	return sent[api.QuotaBinding](ctx, r.bindings().Update, b, new(apiv1.QuotaBinding))
}

func (r remote) GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	return called[api.QuotaBinding](ctx, r.bindings().Get, ofName(namespace))
}

func (r remote) ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error) {
	return called[api.QuotaBindingList](ctx, r.bindings().List, new(apiv1.ListRequest))
}

func (r remote) DeleteQuotaBinding(ctx context.Context, namespace string, require api.Preconditions) (*api.QuotaBinding, error) {
	return called[api.QuotaBinding](ctx, r.bindings().Delete, &apiv1.RemoveRequest{Name: namespace, Preconditions: gone(require)})
}

func (r remote) ExplainQuota(ctx context.Context, namespace, name string) (*api.QuotaExplanation, error) {
	return called[api.QuotaExplanation](ctx, apiv1.NewAllocationsClient(r.conn).ExplainQuota, in(namespace, name))
}

// TryQuota leaves the reader to the server, which knows the bearer of the token.
func (r remote) TryQuota(ctx context.Context, consumer []byte, _ service.Principal) (*api.QuotaDryRun, error) {
	return sent[api.QuotaDryRun](ctx, r.trees().TryConsumer, json.RawMessage(consumer), new(apiv1.Consumer))
}

func (r remote) ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	return called[api.QuotaReclaim](ctx, r.trees().Reclaim, &apiv1.ReclaimRequest{Name: tree, DryRun: dryRun, Options: &apiv1.ReclaimOptions{GracePeriodSeconds: grace}})
}
