package service

import (
	"context"

	"github.com/musterd/muster/api"
)

type preconditionsKey struct{}

// WithPreconditions returns a context in which a deletion requires values of its
// object.
func WithPreconditions(ctx context.Context, p api.Preconditions) context.Context {
	if p == (api.Preconditions{}) {
		return ctx
	}
	return context.WithValue(ctx, preconditionsKey{}, p)
}

// PreconditionsOf returns the values that a deletion requires; the zero value requires
// nothing.
func PreconditionsOf(ctx context.Context) api.Preconditions {
	p, _ := ctx.Value(preconditionsKey{}).(api.Preconditions)
	return p
}
