package grpcapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire"
)

// Server implements muster.v1.Quotas over the service that REST serves. It
// wants its Guard before it.
type Server struct {
	musterv1.UnimplementedQuotasServer
	Quotas service.Quotas
	// Access decides about the rights of an authenticated caller.
	Access service.Access
	// Audits takes refused requests; nil = nobody needs them.
	Audits service.Audits
	Logger *slog.Logger
}

// refused gives a refused request to the audit.
func (s *Server) refused(ctx context.Context, verb service.Verb, kind service.Kind, namespace string, status *api.Status) {
	if s.Audits != nil {
		s.Audits.Refused(service.RefusedRequest(service.CallerOf(ctx), verb, kind, namespace, ""), status)
	}
}

// answer ends a call with the message of the result, or with the refusal. An error that
// is no *api.Status is logged and not shown.
func answer[T, M any](s *Server, what string, got *T, err error, message func(*T) *M) (*M, error) {
	var refused *api.Status
	switch {
	case err == nil:
		return message(got), nil
	case errors.As(err, &refused):
		return nil, wire.ToRefusal(refused)
	}
	s.Logger.Error("call_failed", "call", what, "error", err)
	return nil, wire.ToRefusal(api.Errorf(http.StatusInternalServerError, "%s failed inside the coordinator; its log says why", what))
}

// judged checks a document that came as a message by the rules of REST.
func judged[T api.QuotaDocument](v *T, decode func([]byte) (*T, *api.Status)) (*T, *api.Status) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, api.Errorf(http.StatusBadRequest, "spec: %v", err)
	}
	return decode(doc)
}

// change is a call that sets a document; allowed says whether the caller may.
func change[T api.QuotaDocument, M any](s *Server, what string, allowed *api.Status, v *T, decode func([]byte) (*T, *api.Status),
	set func(*T) (*T, error), message func(*T) *M,
) (*M, error) {
	status := allowed
	if status == nil {
		v, status = judged(v, decode)
	}
	if status != nil {
		return nil, wire.ToRefusal(status)
	}
	got, err := set(v)
	return answer(s, what, got, err, message)
}

// keyed is a call about one object; allowed says whether the caller may.
func keyed[T, M any](s *Server, what string, allowed *api.Status, call func() (*T, error), message func(*T) *M) (*M, error) {
	if allowed != nil {
		return nil, wire.ToRefusal(allowed)
	}
	got, err := call()
	return answer(s, what, got, err, message)
}

// CreateResourceQuota implements musterv1.QuotasServer.
func (s *Server) CreateResourceQuota(ctx context.Context, r *musterv1.ResourceQuota) (*musterv1.ResourceQuota, error) {
	if status := ofNamespace(r.GetMetadata().GetNamespace()); status != nil {
		return nil, wire.ToRefusal(status)
	}
	return change(s, "CreateResourceQuota", s.may(ctx, service.VerbCreate, service.KindResourceQuotas, r.GetMetadata().GetNamespace()), fromResourceQuota(r), api.DecodeResourceQuota,
		func(q *api.ResourceQuota) (*api.ResourceQuota, error) {
			q.Metadata.ResourceVersion = ""
			return s.Quotas.CreateResourceQuota(ctx, q)
		}, toResourceQuota)
}

// UpdateResourceQuota implements musterv1.QuotasServer.
func (s *Server) UpdateResourceQuota(ctx context.Context, r *musterv1.ResourceQuota) (*musterv1.ResourceQuota, error) {
	if status := ofNamespace(r.GetMetadata().GetNamespace()); status != nil {
		return nil, wire.ToRefusal(status)
	}
	return change(s, "UpdateResourceQuota", s.may(ctx, service.VerbUpdate, service.KindResourceQuotas, r.GetMetadata().GetNamespace()), fromResourceQuota(r), api.DecodeResourceQuota,
		func(q *api.ResourceQuota) (*api.ResourceQuota, error) { return s.Quotas.UpdateResourceQuota(ctx, q) }, toResourceQuota)
}

// GetResourceQuota implements musterv1.QuotasServer.
func (s *Server) GetResourceQuota(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.ResourceQuota, error) {
	return keyed(s, "GetResourceQuota", first(inNamespace(k), s.may(ctx, service.VerbGet, service.KindResourceQuotas, k.GetNamespace())),
		func() (*api.ResourceQuota, error) {
			return s.Quotas.GetResourceQuota(ctx, k.GetNamespace(), k.GetName())
		}, toResourceQuota)
}

// ListResourceQuotas implements musterv1.QuotasServer.
func (s *Server) ListResourceQuotas(ctx context.Context, r *musterv1.ListResourceQuotasRequest) (*musterv1.ListResourceQuotasResponse, error) {
	return keyed(s, "ListResourceQuotas", s.may(ctx, service.VerbList, service.KindResourceQuotas, r.GetNamespace()),
		func() (*api.ResourceQuotaList, error) { return s.Quotas.ListResourceQuotas(ctx, r.GetNamespace()) },
		func(l *api.ResourceQuotaList) *musterv1.ListResourceQuotasResponse {
			return &musterv1.ListResourceQuotasResponse{ResourceVersion: l.Metadata.ResourceVersion, Items: all(l.Items, toResourceQuota)}
		})
}

// DeleteResourceQuota implements musterv1.QuotasServer.
func (s *Server) DeleteResourceQuota(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.ResourceQuota, error) {
	return keyed(s, "DeleteResourceQuota", first(inNamespace(k), s.may(ctx, service.VerbDelete, service.KindResourceQuotas, k.GetNamespace())),
		func() (*api.ResourceQuota, error) {
			return s.Quotas.DeleteResourceQuota(ctx, k.GetNamespace(), k.GetName(), api.Preconditions{})
		}, toResourceQuota)
}

// PutQuotaTree implements musterv1.QuotasServer.
func (s *Server) PutQuotaTree(ctx context.Context, r *musterv1.PutQuotaTreeRequest) (*musterv1.QuotaTree, error) {
	return change(s, "PutQuotaTree", s.may(ctx, service.VerbUpdate, service.KindQuotaTrees, ""), fromQuotaTree(r.GetTree()), api.DecodeQuotaTree,
		func(t *api.QuotaTree) (*api.QuotaTree, error) {
			return s.Quotas.PutQuotaTree(ctx, t, r.GetCreateOnly())
		}, toQuotaTree)
}

// GetQuotaTree implements musterv1.QuotasServer.
func (s *Server) GetQuotaTree(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaTree, error) {
	return keyed(s, "GetQuotaTree", first(ofTree(k), s.may(ctx, service.VerbGet, service.KindQuotaTrees, "")),
		func() (*api.QuotaTree, error) { return s.Quotas.GetQuotaTree(ctx, k.GetName()) }, toQuotaTree)
}

// ListQuotaTrees implements musterv1.QuotasServer.
func (s *Server) ListQuotaTrees(ctx context.Context, _ *musterv1.ListQuotaTreesRequest) (*musterv1.ListQuotaTreesResponse, error) {
	return keyed(s, "ListQuotaTrees", s.may(ctx, service.VerbList, service.KindQuotaTrees, ""),
		func() (*api.QuotaTreeList, error) { return s.Quotas.ListQuotaTrees(ctx) },
		func(l *api.QuotaTreeList) *musterv1.ListQuotaTreesResponse {
			return &musterv1.ListQuotaTreesResponse{ResourceVersion: l.Metadata.ResourceVersion, Items: all(l.Items, toQuotaTree)}
		})
}

// DeleteQuotaTree implements musterv1.QuotasServer.
func (s *Server) DeleteQuotaTree(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaTree, error) {
	return keyed(s, "DeleteQuotaTree", first(ofTree(k), s.may(ctx, service.VerbDelete, service.KindQuotaTrees, "")),
		func() (*api.QuotaTree, error) { return s.Quotas.DeleteQuotaTree(ctx, k.GetName(), api.Preconditions{}) }, toQuotaTree)
}

// ReclaimQuota implements musterv1.QuotasServer.
func (s *Server) ReclaimQuota(ctx context.Context, r *musterv1.ReclaimQuotaRequest) (*musterv1.QuotaReclaim, error) {
	options := api.ReclaimOptions{GracePeriodSeconds: r.GracePeriodSeconds}
	return keyed(s, "ReclaimQuota", first(ofTree(&musterv1.QuotaKey{Name: r.GetTree()}), s.may(ctx, service.VerbReclaim, service.KindQuotaTrees, ""), options.Validate()),
		func() (*api.QuotaReclaim, error) {
			return s.Quotas.ReclaimQuota(ctx, r.GetTree(), r.GetDryRun(), r.GracePeriodSeconds)
		}, toReclaim)
}

// PutQuotaForest implements musterv1.QuotasServer.
func (s *Server) PutQuotaForest(ctx context.Context, r *musterv1.PutQuotaForestRequest) (*musterv1.QuotaForest, error) {
	return change(s, "PutQuotaForest", s.may(ctx, service.VerbUpdate, service.KindQuotaForests, ""), fromQuotaForest(r.GetForest()), api.DecodeQuotaForest,
		func(f *api.QuotaForest) (*api.QuotaForest, error) {
			return s.Quotas.PutQuotaForest(ctx, f, r.GetCreateOnly())
		}, toQuotaForest)
}

// GetQuotaForest implements musterv1.QuotasServer.
func (s *Server) GetQuotaForest(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaForest, error) {
	return keyed(s, "GetQuotaForest", first(ofTree(k), s.may(ctx, service.VerbGet, service.KindQuotaForests, "")),
		func() (*api.QuotaForest, error) { return s.Quotas.GetQuotaForest(ctx, k.GetName()) }, toQuotaForest)
}

// ListQuotaForests implements musterv1.QuotasServer.
func (s *Server) ListQuotaForests(ctx context.Context, _ *musterv1.ListQuotaForestsRequest) (*musterv1.ListQuotaForestsResponse, error) {
	return keyed(s, "ListQuotaForests", s.may(ctx, service.VerbList, service.KindQuotaForests, ""),
		func() (*api.QuotaForestList, error) { return s.Quotas.ListQuotaForests(ctx) },
		func(l *api.QuotaForestList) *musterv1.ListQuotaForestsResponse {
			return &musterv1.ListQuotaForestsResponse{ResourceVersion: l.Metadata.ResourceVersion, Items: all(l.Items, toQuotaForest)}
		})
}

// DeleteQuotaForest implements musterv1.QuotasServer.
func (s *Server) DeleteQuotaForest(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaForest, error) {
	return keyed(s, "DeleteQuotaForest", first(ofTree(k), s.may(ctx, service.VerbDelete, service.KindQuotaForests, "")),
		func() (*api.QuotaForest, error) {
			return s.Quotas.DeleteQuotaForest(ctx, k.GetName(), api.Preconditions{})
		}, toQuotaForest)
}

// PutQuotaBinding implements musterv1.QuotasServer.
func (s *Server) PutQuotaBinding(ctx context.Context, r *musterv1.PutQuotaBindingRequest) (*musterv1.QuotaBinding, error) {
	return change(s, "PutQuotaBinding", s.may(ctx, service.VerbUpdate, service.KindQuotaBindings, r.GetBinding().GetMetadata().GetName()), fromQuotaBinding(r.GetBinding()), api.DecodeQuotaBinding,
		func(b *api.QuotaBinding) (*api.QuotaBinding, error) {
			return s.Quotas.PutQuotaBinding(ctx, b, r.GetCreateOnly())
		}, toQuotaBinding)
}

// GetQuotaBinding implements musterv1.QuotasServer.
func (s *Server) GetQuotaBinding(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaBinding, error) {
	return keyed(s, "GetQuotaBinding", first(ofNamespace(k.GetName()), s.may(ctx, service.VerbGet, service.KindQuotaBindings, k.GetName())),
		func() (*api.QuotaBinding, error) { return s.Quotas.GetQuotaBinding(ctx, k.GetName()) }, toQuotaBinding)
}

// ListQuotaBindings implements musterv1.QuotasServer.
func (s *Server) ListQuotaBindings(ctx context.Context, _ *musterv1.ListQuotaBindingsRequest) (*musterv1.ListQuotaBindingsResponse, error) {
	return keyed(s, "ListQuotaBindings", s.may(ctx, service.VerbList, service.KindQuotaBindings, ""),
		func() (*api.QuotaBindingList, error) { return s.Quotas.ListQuotaBindings(ctx) },
		func(l *api.QuotaBindingList) *musterv1.ListQuotaBindingsResponse {
			return &musterv1.ListQuotaBindingsResponse{ResourceVersion: l.Metadata.ResourceVersion, Items: all(l.Items, toQuotaBinding)}
		})
}

// DeleteQuotaBinding implements musterv1.QuotasServer.
func (s *Server) DeleteQuotaBinding(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaBinding, error) {
	return keyed(s, "DeleteQuotaBinding", first(ofNamespace(k.GetName()), s.may(ctx, service.VerbDelete, service.KindQuotaBindings, k.GetName())),
		func() (*api.QuotaBinding, error) {
			return s.Quotas.DeleteQuotaBinding(ctx, k.GetName(), api.Preconditions{})
		}, toQuotaBinding)
}

// ExplainQuota implements musterv1.QuotasServer.
func (s *Server) ExplainQuota(ctx context.Context, k *musterv1.QuotaKey) (*musterv1.QuotaExplanation, error) {
	return keyed(s, "ExplainQuota", first(inNamespace(k), s.may(ctx, service.VerbExplain, service.KindAllocations, k.GetNamespace())),
		func() (*api.QuotaExplanation, error) {
			return s.Quotas.ExplainQuota(ctx, k.GetNamespace(), k.GetName())
		}, toExplanation)
}

// TryQuota implements musterv1.QuotasServer.
func (s *Server) TryQuota(ctx context.Context, r *musterv1.TryQuotaRequest) (*musterv1.QuotaDryRun, error) {
	who, _ := ctx.Value(principalKey{}).(service.Principal) // a caller whom nobody has checked is refused first
	return keyed(s, "TryQuota", s.may(ctx, service.VerbTry, service.KindConsumers, ""),
		func() (*api.QuotaDryRun, error) { return s.Quotas.TryQuota(ctx, r.GetConsumer(), who) }, toDryRun)
}
