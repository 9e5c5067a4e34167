package grpcapi

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// identified refuses a caller that may not use a verb on a kind of identities, and
// every caller where the coordinator has no identities.
func (a *API) identified(ctx context.Context, verb service.Verb, kind service.Kind) *api.Status {
	if status := a.may(ctx, verb, kind, ""); status != nil {
		return status
	}
	if a.Identity == nil {
		return service.ErrNoIdentity
	}
	return nil
}

// identifiedOn is identified of one object.
func (a *API) identifiedOn(ctx context.Context, verb service.Verb, kind service.Kind, name string) *api.Status {
	if status := a.on(ctx, verb, kind, "", name); status != nil {
		return status
	}
	return a.identified(ctx, verb, kind)
}

// wished judges the request for a credential that a message holds.
func wished[T any](m proto.Message, decode func([]byte) (*T, time.Duration, *api.Status)) (*T, time.Duration, *api.Status) {
	document, err := documentOf(m)
	if err != nil {
		return nil, 0, notADocument(err)
	}
	return decode(document)
}

// bootstrapTokens implements muster.api.v1.BootstrapTokens.
type bootstrapTokens struct {
	apiv1.UnimplementedBootstrapTokensServer
	a *API
}

// Create implements apiv1.BootstrapTokensServer.
func (s bootstrapTokens) Create(ctx context.Context, r *apiv1.BootstrapToken) (*apiv1.BootstrapToken, error) {
	if status := s.a.identified(ctx, service.VerbCreate, service.KindTokens); status != nil {
		return nil, status
	}
	wish, ttl, status := wished(r, api.DecodeBootstrapToken)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Identity.PutBootstrapToken(ctx, wish, ttl, caller(ctx).Name)
	return answered(got, err, new(apiv1.BootstrapToken))
}

// List implements apiv1.BootstrapTokensServer.
func (s bootstrapTokens) List(ctx context.Context, _ *apiv1.ListBootstrapTokensRequest) (*apiv1.BootstrapTokenList, error) {
	if status := s.a.identified(ctx, service.VerbList, service.KindTokens); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.ListBootstrapTokens(ctx)
	return answered(got, err, new(apiv1.BootstrapTokenList))
}

// Delete implements apiv1.BootstrapTokensServer.
func (s bootstrapTokens) Delete(ctx context.Context, r *apiv1.NameRequest) (*apiv1.BootstrapToken, error) {
	if status := s.a.identifiedOn(ctx, service.VerbDelete, service.KindTokens, r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.DeleteBootstrapToken(ctx, r.GetName(), required(r.GetPreconditions()))
	return answered(got, err, new(apiv1.BootstrapToken))
}

// authorities implements muster.api.v1.Authorities.
type authorities struct {
	apiv1.UnimplementedAuthoritiesServer
	a *API
}

// Create implements apiv1.AuthoritiesServer.
func (s authorities) Create(ctx context.Context, _ *apiv1.CreateAuthorityRequest) (*apiv1.Authority, error) {
	if status := s.a.identified(ctx, service.VerbCreate, service.KindAuthorities); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.RotateAuthority(ctx)
	return answered(got, err, new(apiv1.Authority))
}

// List implements apiv1.AuthoritiesServer.
func (s authorities) List(ctx context.Context, _ *apiv1.ListAuthoritiesRequest) (*apiv1.AuthorityList, error) {
	if status := s.a.identified(ctx, service.VerbList, service.KindAuthorities); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.ListAuthorities(ctx)
	return answered(got, err, new(apiv1.AuthorityList))
}

// Delete implements apiv1.AuthoritiesServer.
func (s authorities) Delete(ctx context.Context, r *apiv1.DeleteAuthorityRequest) (*apiv1.AuthorityList, error) {
	if status := s.a.identifiedOn(ctx, service.VerbDelete, service.KindAuthorities, r.GetName()); status != nil {
		return nil, status
	}
	if err := s.a.Identity.RetireAuthority(ctx, r.GetName(), r.GetForce(), required(r.GetPreconditions())); err != nil {
		return nil, err
	}
	got, err := s.a.Identity.ListAuthorities(ctx)
	return answered(got, err, new(apiv1.AuthorityList))
}

// operatorCertificates implements muster.api.v1.OperatorCertificates.
type operatorCertificates struct {
	apiv1.UnimplementedOperatorCertificatesServer
	a *API
}

// Create implements apiv1.OperatorCertificatesServer.
func (s operatorCertificates) Create(ctx context.Context, r *apiv1.OperatorCertificate) (*apiv1.OperatorCertificate, error) {
	if status := s.a.identified(ctx, service.VerbCreate, service.KindOperators); status != nil {
		return nil, status
	}
	wish, ttl, status := wished(r, api.DecodeOperatorCertificate)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Identity.CertifyOperator(ctx, wish, ttl, caller(ctx).Name)
	return answered(got, err, new(apiv1.OperatorCertificate))
}

// List implements apiv1.OperatorCertificatesServer.
func (s operatorCertificates) List(ctx context.Context, _ *apiv1.ListOperatorCertificatesRequest) (*apiv1.OperatorCertificateList, error) {
	if status := s.a.identified(ctx, service.VerbList, service.KindOperators); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.ListOperators(ctx)
	return answered(got, err, new(apiv1.OperatorCertificateList))
}

// Delete implements apiv1.OperatorCertificatesServer.
func (s operatorCertificates) Delete(ctx context.Context, r *apiv1.NameRequest) (*apiv1.OperatorCertificateList, error) {
	if status := s.a.identifiedOn(ctx, service.VerbDelete, service.KindOperators, r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.RevokeOperator(ctx, r.GetName(), caller(ctx).Name, required(r.GetPreconditions()))
	return answered(got, err, new(apiv1.OperatorCertificateList))
}

// nodeBans implements muster.api.v1.NodeBans.
type nodeBans struct {
	apiv1.UnimplementedNodeBansServer
	a *API
}

// Create implements apiv1.NodeBansServer.
func (s nodeBans) Create(ctx context.Context, r *apiv1.NodeBan) (*apiv1.NodeBan, error) {
	node := r.GetMetadata().GetName()
	if status := s.a.identifiedOn(ctx, service.VerbCreate, service.KindBans, node); status != nil {
		return nil, status
	}
	reason, _, status := decoded(r, func(document []byte) (string, *api.Status) { return api.DecodeNodeBan(node, document) })
	if status != nil {
		return nil, status
	}
	got, err := s.a.Identity.BanNode(ctx, node, reason, caller(ctx).Name)
	return answered(got, err, new(apiv1.NodeBan))
}

// List implements apiv1.NodeBansServer.
func (s nodeBans) List(ctx context.Context, _ *apiv1.ListNodeBansRequest) (*apiv1.NodeBanList, error) {
	if status := s.a.identified(ctx, service.VerbList, service.KindBans); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.ListBans(ctx)
	return answered(got, err, new(apiv1.NodeBanList))
}

// Delete implements apiv1.NodeBansServer.
func (s nodeBans) Delete(ctx context.Context, r *apiv1.NameRequest) (*apiv1.NodeBan, error) {
	if status := s.a.identifiedOn(ctx, service.VerbDelete, service.KindBans, r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Identity.UnbanNode(ctx, r.GetName(), caller(ctx).Name, required(r.GetPreconditions()))
	return answered(got, err, new(apiv1.NodeBan))
}
