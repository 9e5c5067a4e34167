package grpcapi

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/coordinator/service"
)

// Metadata of calls and answers, as a query parameter and a header of REST.
const (
	// allowUnknownKey with "true" keeps misspelt names of resources in documents of
	// quota.
	allowUnknownKey = "muster-allow-unknown-resources"
	// warningKey holds the warnings of an answer, each a text.
	warningKey = "muster-warning"
)

// serveHere answers a call at this coordinator, with its warnings.
func serveHere(ctx context.Context, req any, next grpc.UnaryHandler) (any, error) {
	with, collected := service.WithWarnings(ctx)
	if md, _ := metadata.FromIncomingContext(ctx); slices.Contains(md.Get(allowUnknownKey), "true") {
		with = service.AllowUnknownResources(with)
	}
	got, err := next(with, req)
	addWarnings(ctx, collected())
	return got, err
}

// addNotices adds the warnings that each answer has now. The coordinator that the
// client called adds them, and no coordinator that a call is passed on to.
func addNotices(ctx context.Context, notices func() []string) {
	if notices != nil && !hopped(ctx) {
		addWarnings(ctx, notices())
	}
}

func addWarnings(ctx context.Context, texts []string) {
	if len(texts) > 0 {
		_ = grpc.SetHeader(ctx, metadata.MD{warningKey: texts}) // fails only outside of a call
	}
}
