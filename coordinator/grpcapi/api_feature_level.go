package grpcapi

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// featureLevels implements muster.api.v1.FeatureLevels.
type featureLevels struct {
	apiv1.UnimplementedFeatureLevelsServer
	a *API
}

// Get implements apiv1.FeatureLevelsServer.
func (s featureLevels) Get(ctx context.Context, _ *apiv1.GetFeatureLevelRequest) (*apiv1.FeatureLevel, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindFeatureLevels, ""); status != nil {
		return nil, status
	}
	got, err := s.a.FeatureLevels.GetFeatureLevel(ctx)
	return answered(got, err, new(apiv1.FeatureLevel))
}

// Patch implements apiv1.FeatureLevelsServer.
func (s featureLevels) Patch(ctx context.Context, r *apiv1.FeatureLevelPatch) (*apiv1.FeatureLevel, error) {
	if status := s.a.may(ctx, service.VerbPatch, service.KindFeatureLevels, ""); status != nil {
		return nil, status
	}
	p, _, status := decoded(r, api.DecodeFeatureLevelPatch)
	if status != nil {
		return nil, status
	}
	got, err := s.a.FeatureLevels.RaiseFeatureLevel(ctx, p, caller(ctx).Name)
	return answered(got, err, new(apiv1.FeatureLevel))
}
