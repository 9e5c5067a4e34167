package grpcapi

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// ownGrants restricts a selection to the objects whose roles the caller may give.
func ownGrants(ctx context.Context) func(*service.Selection) {
	return func(s *service.Selection) { s.SeenBy(caller(ctx)) }
}

// accessTokens implements muster.api.v1.AccessTokens.
type accessTokens struct {
	apiv1.UnimplementedAccessTokensServer
	a *API
}

// one refuses a caller that may not use a verb on tokens, and a key that names none.
func (s accessTokens) one(ctx context.Context, verb service.Verb, namespace, name string) *api.Status {
	if status := s.a.mayOn(ctx, verb, service.KindAccessTokens, "", name); status != nil {
		return status
	}
	if status := inNoNamespace(namespace); status != nil {
		return status
	}
	return service.CheckName(service.KindAccessTokens, name)
}

// Create implements apiv1.AccessTokensServer.
func (s accessTokens) Create(ctx context.Context, r *apiv1.AccessToken) (*apiv1.AccessToken, error) {
	if status := s.a.may(ctx, service.VerbCreate, service.KindAccessTokens, ""); status != nil {
		return nil, status
	}
	wish, ttl, status := wished(r, api.DecodeAccessToken)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Credentials.CreateToken(ctx, wish, ttl)
	return answered(got, err, new(apiv1.AccessToken))
}

// Get implements apiv1.AccessTokensServer.
func (s accessTokens) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.AccessToken, error) {
	if status := s.one(ctx, service.VerbGet, r.GetNamespace(), r.GetName()); status != nil {
		return nil, status
	}
	if odd := newestAlone(r); odd != nil {
		return nil, odd
	}
	got, err := s.a.Credentials.GetToken(ctx, r.GetName())
	return answered(got, err, new(apiv1.AccessToken))
}

// List implements apiv1.AccessTokensServer.
func (s accessTokens) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.AccessTokenList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindAccessTokens, r.GetNamespace()), service.ListedAccessTokens, r,
		func(q *service.Selection) ([]api.AccessToken, api.ListMeta, string, error) {
			got, err := s.a.Credentials.ListTokens(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedAccessTokens, q, got.Items, got.Metadata)
		}, func() *apiv1.AccessToken { return new(apiv1.AccessToken) })
	if err != nil {
		return nil, err
	}
	return &apiv1.AccessTokenList{Kind: "AccessTokenList", Metadata: meta, Items: items}, nil
}

// Rotate implements apiv1.AccessTokensServer.
func (s accessTokens) Rotate(ctx context.Context, r *apiv1.RotateRequest) (*apiv1.AccessToken, error) {
	if status := s.one(ctx, service.VerbRotate, "", r.GetName()); status != nil {
		return nil, status
	}
	overlap, _, status := decoded(r.GetOptions(), api.DecodeRotateOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Credentials.RotateToken(ctx, r.GetName(), overlap)
	return answered(got, err, new(apiv1.AccessToken))
}

// Delete implements apiv1.AccessTokensServer.
func (s accessTokens) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.AccessToken, error) {
	if status := s.one(ctx, service.VerbDelete, r.GetNamespace(), r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Credentials.RevokeToken(ctx, r.GetName(), required(r.GetPreconditions()))
	return answered(got, err, new(apiv1.AccessToken))
}

// roleBindings implements muster.api.v1.RoleBindings.
type roleBindings struct {
	apiv1.UnimplementedRoleBindingsServer
	a *API
}

func (s roleBindings) served() served[api.RoleBinding, *apiv1.RoleBinding] {
	return served[api.RoleBinding, *apiv1.RoleBinding]{
		Documents: service.RoleBindingDocuments(s.a.Credentials), a: s.a, kind: service.KindRoleBindings, empty: func() *apiv1.RoleBinding { return new(apiv1.RoleBinding) }, space: inNone,
	}
}

// Create implements apiv1.RoleBindingsServer.
func (s roleBindings) Create(ctx context.Context, r *apiv1.RoleBinding) (*apiv1.RoleBinding, error) {
	return s.served().create(ctx, r, r.GetMetadata())
}

// Get implements apiv1.RoleBindingsServer.
func (s roleBindings) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.RoleBinding, error) {
	return s.served().get(ctx, r)
}

// List implements apiv1.RoleBindingsServer.
func (s roleBindings) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.RoleBindingList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindRoleBindings, r.GetNamespace()), service.ListedRoleBindings, r,
		func(q *service.Selection) ([]api.RoleBinding, api.ListMeta, string, error) {
			got, err := s.a.Credentials.ListRoleBindings(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			return cut(service.ListedRoleBindings, q, got.Items, got.Metadata)
		}, func() *apiv1.RoleBinding { return new(apiv1.RoleBinding) })
	if err != nil {
		return nil, err
	}
	return &apiv1.RoleBindingList{Kind: "RoleBindingList", Metadata: meta, Items: items}, nil
}

// Update implements apiv1.RoleBindingsServer.
func (s roleBindings) Update(ctx context.Context, r *apiv1.RoleBinding) (*apiv1.RoleBinding, error) {
	return s.served().put(ctx, r, r.GetMetadata())
}

// Patch implements apiv1.RoleBindingsServer.
func (s roleBindings) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.RoleBinding, error) {
	return s.served().patch(ctx, r)
}

// Delete implements apiv1.RoleBindingsServer.
func (s roleBindings) Delete(ctx context.Context, r *apiv1.RemoveRequest) (*apiv1.RoleBinding, error) {
	return s.served().remove(ctx, r)
}
