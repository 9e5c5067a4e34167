package grpcapi

import (
	"context"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// served serves the documents of one kind by which quota is set.
type served[T api.QuotaDocument, M proto.Message] struct {
	service.Documents[T]
	a     *API
	kind  service.Kind
	empty func() M
	// space is the namespace that the right is asked for, of an object's metadata.
	space func(namespace, name string) string
}

// inNone is the space of objects that are in no namespace.
func inNone(string, string) string { return "" }

// inOwn is the space of objects that are in a namespace.
func inOwn(namespace, _ string) string { return namespace }

// byName is the space of bindings and namespaces, which bear their namespace's
// name, and of tenants.
func byName(_, name string) string { return name }

// allowed refuses a caller that may not use a verb on an object, and keys that
// name none.
func (s served[T, M]) allowed(ctx context.Context, verb service.Verb, namespace, name string) *api.Status {
	within := namespace // the name of an object that is created is judged with its document
	if verb != service.VerbCreate {
		within = s.space(namespace, name)
	}
	if status := s.a.Access.Authorize(caller(ctx), verb, s.kind, within, name); status != nil {
		return s.a.unauthorized(ctx, service.RefusedRequest(service.CallerOf(ctx), verb, s.kind, namespace, name), status)
	}
	service.Begin(ctx, verb, s.kind, namespace, name)
	switch {
	case s.kind != service.KindResourceQuotas:
		if status := inNoNamespace(namespace); status != nil {
			return status
		}
	case namespace == "":
		return api.Errorf(http.StatusBadRequest, "namespace: required")
	default:
		if status := service.CheckNamespace(namespace); status != nil {
			return status
		}
	}
	if verb == service.VerbCreate {
		return nil
	}
	return service.CheckName(s.kind, name)
}

// submitted judges a document that came as a message.
func (s served[T, M]) submitted(ctx context.Context, verb service.Verb, m M, meta *apiv1.ObjectMeta) (*T, *api.Status) {
	if status := s.allowed(ctx, verb, meta.GetNamespace(), meta.GetName()); status != nil {
		return nil, status
	}
	v, _, status := decoded(m, s.Decode)
	return v, status
}

func (s served[T, M]) create(ctx context.Context, m M, meta *apiv1.ObjectMeta) (M, error) {
	var none M
	v, status := s.submitted(ctx, service.VerbCreate, m, meta)
	if status != nil {
		return none, status
	}
	got, err := s.Documents.Create(ctx, v)
	return answered(got, err, s.empty())
}

func (s served[T, M]) put(ctx context.Context, m M, meta *apiv1.ObjectMeta) (M, error) {
	var none M
	v, status := s.submitted(ctx, service.VerbUpdate, m, meta)
	if status != nil {
		return none, status
	}
	got, _, err := s.Put(ctx, v)
	return answered(got, err, s.empty())
}

func (s served[T, M]) get(ctx context.Context, r *apiv1.GetRequest) (M, error) {
	var none M
	status := s.allowed(ctx, service.VerbGet, r.GetNamespace(), r.GetName())
	ctx, odd := reading(ctx, r)
	if status := first(status, odd); status != nil {
		return none, status
	}
	got, err := s.Get(ctx, r.GetNamespace(), r.GetName())
	if err == nil {
		s.Typed(got)
	}
	return answered(got, err, s.empty())
}

func (s served[T, M]) remove(ctx context.Context, r *apiv1.RemoveRequest) (M, error) {
	var none M
	if status := s.allowed(ctx, service.VerbDelete, r.GetNamespace(), r.GetName()); status != nil {
		return none, status
	}
	got, err := s.Remove(ctx, r.GetNamespace(), r.GetName(), required(r.GetPreconditions()))
	if err == nil {
		s.Typed(got)
	}
	return answered(got, err, s.empty())
}

// required are the preconditions of a deletion.
func required(p *apiv1.Preconditions) api.Preconditions {
	return api.Preconditions{UID: p.GetUid(), ResourceVersion: p.GetResourceVersion()}
}

func (s served[T, M]) patch(ctx context.Context, r *apiv1.PatchRequest) (M, error) {
	var none M
	if status := s.allowed(ctx, service.VerbPatch, r.GetNamespace(), r.GetName()); status != nil {
		return none, status
	}
	patch, status := patchOf(r.GetPatch())
	if status != nil {
		return none, status
	}
	got, err := s.Patch(ctx, r.GetNamespace(), r.GetName(), patch)
	return answered(got, err, s.empty())
}

// cut makes a page of all objects of a kind.
func cut[T any](l service.Listed[T], q *service.Selection, all []T, meta api.ListMeta) ([]T, api.ListMeta, string, error) {
	items, more := l.Cut(all, q)
	return items, meta, more, nil
}

// resourceQuotas implements muster.api.v1.ResourceQuotas.
type resourceQuotas struct {
	apiv1.UnimplementedResourceQuotasServer
	a *API
}

func (s resourceQuotas) served() served[api.ResourceQuota, *apiv1.ResourceQuota] {
	return served[api.ResourceQuota, *apiv1.ResourceQuota]{
		Documents: service.ResourceQuotas(s.a.Service), a: s.a, kind: service.KindResourceQuotas, empty: func() *apiv1.ResourceQuota { return new(apiv1.ResourceQuota) }, space: inOwn,
	}
}

// Create implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) Create(ctx context.Context, r *apiv1.ResourceQuota) (*apiv1.ResourceQuota, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.ResourceQuota, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.ResourceQuotaList, error) {
	items, meta, err := page(ctx, s.a, s.a.may(ctx, service.VerbList, service.KindResourceQuotas, r.GetNamespace()), service.ListedResourceQuotas, r,
		func(q *service.Selection) ([]api.ResourceQuota, api.ListMeta, string, error) {
			got, err := s.a.Service.ListResourceQuotas(ctx, r.GetNamespace())
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedResourceQuotas, q, got.Items, got.Metadata)
		}, func() *apiv1.ResourceQuota { return new(apiv1.ResourceQuota) })
	if err != nil {
		return nil, err
	}
	return &apiv1.ResourceQuotaList{Kind: "ResourceQuotaList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) Update(ctx context.Context, r *apiv1.ResourceQuota) (*apiv1.ResourceQuota, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.ResourceQuota, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.ResourceQuotasServer.
func (s resourceQuotas) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.ResourceQuota, error) {
	return s.served().remove(ctx, r)
}

// quotaTrees implements muster.api.v1.QuotaTrees.
type quotaTrees struct {
	apiv1.UnimplementedQuotaTreesServer
	a *API
}

func (s quotaTrees) served() served[api.QuotaTree, *apiv1.QuotaTree] {
	return served[api.QuotaTree, *apiv1.QuotaTree]{
		Documents: service.QuotaTrees(s.a.Service), a: s.a, kind: service.KindQuotaTrees, empty: func() *apiv1.QuotaTree { return new(apiv1.QuotaTree) }, space: inNone,
	}
}

// Create implements apiv1.QuotaTreesServer.
func (s quotaTrees) Create(ctx context.Context, r *apiv1.QuotaTree) (*apiv1.QuotaTree, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.QuotaTreesServer.
func (s quotaTrees) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.QuotaTree, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.QuotaTreesServer.
func (s quotaTrees) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.QuotaTreeList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindQuotaTrees, r.GetNamespace()), service.ListedQuotaTrees, r,
		func(q *service.Selection) ([]api.QuotaTree, api.ListMeta, string, error) {
			got, err := s.a.Service.ListQuotaTrees(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedQuotaTrees, q, got.Items, got.Metadata)
		}, func() *apiv1.QuotaTree { return new(apiv1.QuotaTree) })
	if err != nil {
		return nil, err
	}
	return &apiv1.QuotaTreeList{Kind: "QuotaTreeList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.QuotaTreesServer.
func (s quotaTrees) Update(ctx context.Context, r *apiv1.QuotaTree) (*apiv1.QuotaTree, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.QuotaTreesServer.
func (s quotaTrees) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.QuotaTree, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.QuotaTreesServer.
func (s quotaTrees) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.QuotaTree, error) {
	return s.served().remove(ctx, r)
}

// Reclaim implements apiv1.QuotaTreesServer.
func (s quotaTrees) Reclaim(ctx context.Context, r *apiv1.ReclaimRequest) (*apiv1.QuotaReclaim, error) {
	if status := s.a.on(ctx, service.VerbReclaim, service.KindQuotaTrees, "", r.GetName()); status != nil {
		return nil, status
	}
	o, _, status := decoded(r.GetOptions(), api.DecodeReclaimOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.ReclaimQuota(ctx, r.GetName(), r.GetDryRun(), o.GracePeriodSeconds)
	if err == nil {
		got.Kind = api.KindQuotaReclaim
	}
	return answered(got, err, new(apiv1.QuotaReclaim))
}

// Rename implements apiv1.QuotaTreesServer.
func (s quotaTrees) Rename(ctx context.Context, r *apiv1.RenameRequest) (*apiv1.QuotaTree, error) {
	if status := s.a.on(ctx, service.VerbUpdate, service.KindQuotaTrees, "", r.GetName()); status != nil {
		return nil, status
	}
	rename, _, status := decoded(r.GetRename(), api.DecodeQuotaRename)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.RenameQuotaNode(ctx, r.GetName(), rename)
	return answered(got, err, s.served().empty())
}

// TryConsumer implements apiv1.QuotaTreesServer.
func (s quotaTrees) TryConsumer(ctx context.Context, r *apiv1.Consumer) (*apiv1.QuotaDryRun, error) {
	if status := s.a.may(ctx, service.VerbTry, service.KindConsumers, ""); status != nil {
		return nil, status
	}
	document, err := documentOf(r)
	if err != nil {
		return nil, err
	}
	got, err := s.a.Service.TryQuota(ctx, document, caller(ctx))
	if err == nil {
		got.Kind = "QuotaDryRun"
	}
	return answered(got, err, new(apiv1.QuotaDryRun))
}

// quotaForests implements muster.api.v1.QuotaForests.
type quotaForests struct {
	apiv1.UnimplementedQuotaForestsServer
	a *API
}

func (s quotaForests) served() served[api.QuotaForest, *apiv1.QuotaForest] {
	return served[api.QuotaForest, *apiv1.QuotaForest]{
		Documents: service.QuotaForests(s.a.Service), a: s.a, kind: service.KindQuotaForests, empty: func() *apiv1.QuotaForest { return new(apiv1.QuotaForest) }, space: inNone,
	}
}

// Create implements apiv1.QuotaForestsServer.
func (s quotaForests) Create(ctx context.Context, r *apiv1.QuotaForest) (*apiv1.QuotaForest, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.QuotaForestsServer.
func (s quotaForests) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.QuotaForest, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.QuotaForestsServer.
func (s quotaForests) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.QuotaForestList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindQuotaForests, r.GetNamespace()), service.ListedQuotaForests, r,
		func(q *service.Selection) ([]api.QuotaForest, api.ListMeta, string, error) {
			got, err := s.a.Service.ListQuotaForests(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedQuotaForests, q, got.Items, got.Metadata)
		}, func() *apiv1.QuotaForest { return new(apiv1.QuotaForest) })
	if err != nil {
		return nil, err
	}
	return &apiv1.QuotaForestList{Kind: "QuotaForestList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.QuotaForestsServer.
func (s quotaForests) Update(ctx context.Context, r *apiv1.QuotaForest) (*apiv1.QuotaForest, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.QuotaForestsServer.
func (s quotaForests) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.QuotaForest, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.QuotaForestsServer.
func (s quotaForests) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.QuotaForest, error) {
	return s.served().remove(ctx, r)
}

// quotaBindings implements muster.api.v1.QuotaBindings.
type quotaBindings struct {
	apiv1.UnimplementedQuotaBindingsServer
	a *API
}

func (s quotaBindings) served() served[api.QuotaBinding, *apiv1.QuotaBinding] {
	return served[api.QuotaBinding, *apiv1.QuotaBinding]{
		Documents: service.QuotaBindings(s.a.Service), a: s.a, kind: service.KindQuotaBindings, empty: func() *apiv1.QuotaBinding { return new(apiv1.QuotaBinding) }, space: byName,
	}
}

// Create implements apiv1.QuotaBindingsServer.
func (s quotaBindings) Create(ctx context.Context, r *apiv1.QuotaBinding) (*apiv1.QuotaBinding, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.QuotaBindingsServer.
func (s quotaBindings) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.QuotaBinding, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.QuotaBindingsServer.
func (s quotaBindings) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.QuotaBindingList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindQuotaBindings, r.GetNamespace()), service.ListedQuotaBindings, r,
		func(q *service.Selection) ([]api.QuotaBinding, api.ListMeta, string, error) {
			got, err := s.a.Service.ListQuotaBindings(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedQuotaBindings, q, got.Items, got.Metadata)
		}, func() *apiv1.QuotaBinding { return new(apiv1.QuotaBinding) })
	if err != nil {
		return nil, err
	}
	return &apiv1.QuotaBindingList{Kind: "QuotaBindingList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.QuotaBindingsServer.
func (s quotaBindings) Update(ctx context.Context, r *apiv1.QuotaBinding) (*apiv1.QuotaBinding, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.QuotaBindingsServer.
func (s quotaBindings) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.QuotaBinding, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.QuotaBindingsServer.
func (s quotaBindings) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.QuotaBinding, error) {
	return s.served().remove(ctx, r)
}
