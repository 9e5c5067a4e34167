package grpcapi

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// quotaModes implements muster.api.v1.QuotaModes.
type quotaModes struct {
	apiv1.UnimplementedQuotaModesServer
	a *API
}

// Get implements apiv1.QuotaModesServer.
func (s quotaModes) Get(ctx context.Context, _ *apiv1.GetQuotaModeRequest) (*apiv1.QuotaMode, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindQuotaModes, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Service.GetQuotaMode(ctx)
	return answered(got, err, new(apiv1.QuotaMode))
}

// Patch implements apiv1.QuotaModesServer.
func (s quotaModes) Patch(ctx context.Context, r *apiv1.QuotaModePatch) (*apiv1.QuotaMode, error) {
	if status := s.a.may(ctx, service.VerbPatch, service.KindQuotaModes, ""); status != nil {
		return nil, status
	}
	p, _, status := decoded(r, api.DecodeQuotaModePatch)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.PatchQuotaMode(ctx, p, caller(ctx).Name)
	return answered(got, err, new(apiv1.QuotaMode))
}
