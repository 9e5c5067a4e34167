package service

import (
	"context"

	"github.com/musterd/muster/api"
)

// FeatureLevels is the feature level of the cluster.
type FeatureLevels interface {
	GetFeatureLevel(ctx context.Context) (*api.FeatureLevel, error)
	// RaiseFeatureLevel raises the level; by is the caller's name. A refusal is an
	// *api.Status, 409 names the programs below the level.
	RaiseFeatureLevel(ctx context.Context, p api.FeatureLevelPatch, by string) (*api.FeatureLevel, error)
}

// LevelZero is the feature level of a server without other levels.
type LevelZero struct{}

// GetFeatureLevel implements FeatureLevels.
func (LevelZero) GetFeatureLevel(context.Context) (*api.FeatureLevel, error) {
	return &api.FeatureLevel{APIVersion: api.APIVersion, Kind: api.KindFeatureLevel}, nil
}

// RaiseFeatureLevel implements FeatureLevels: every raise is refused.
func (z LevelZero) RaiseFeatureLevel(ctx context.Context, p api.FeatureLevelPatch, _ string) (*api.FeatureLevel, error) {
	l, err := z.GetFeatureLevel(ctx)
	if status := p.Validate(); err == nil && status != nil {
		return nil, status
	}
	return nil, l.Raisable(p.Level)
}
