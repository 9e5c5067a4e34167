package grpcapi

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// healthEvery is the time between two looks at the readiness for the watches of
	// health.
	healthEvery = time.Second
	// mostHealthWatches bounds the watches of health, which need no token.
	mostHealthWatches = 64
)

// health implements grpc.health.v1.Health: the coordinator serves when /readyz
// says so, the condition of the store left out: reads and deletions are served without
// space, too. Each of its services is as healthy as the whole.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	a       *API
	served  func() map[string]grpc.ServiceInfo
	watches chan struct{} // one for each open watch
}

func newHealth(a *API, served func() map[string]grpc.ServiceInfo) *health {
	return &health{a: a, served: served, watches: make(chan struct{}, mostHealthWatches)}
}

// knows reports whether a name is that of the whole or of a service of the API.
func (h *health) knows(service string) bool {
	if service == "" {
		return true
	}
	_, served := h.served()[service]
	return served && strings.HasPrefix("/"+service, ours)
}

// now is the readiness of the coordinator.
func (h *health) now(ctx context.Context) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if h.a.Ready != nil && h.a.Ready(ctx) != nil {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}

// Check implements grpc_health_v1.HealthServer.
func (h *health) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if !h.knows(r.GetService()) {
		return nil, status.Errorf(codes.NotFound, "service %.120q is not served here", r.GetService())
	}
	return &grpc_health_v1.HealthCheckResponse{Status: h.now(ctx)}, nil
}

// Watch implements grpc_health_v1.HealthServer: the present state, and each later
// one. A service that is unknown stays so.
func (h *health) Watch(r *grpc_health_v1.HealthCheckRequest, out grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	select {
	case h.watches <- struct{}{}:
		defer func() { <-h.watches }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d watches of health are open at this coordinator; call Check", mostHealthWatches)
	}
	ctx := out.Context()
	to := h.a.beginWatch(ctx, "health", out.SendMsg)
	defer to.end()
	look := time.NewTicker(healthEvery)
	defer look.Stop()
	sent := grpc_health_v1.HealthCheckResponse_UNKNOWN
	for {
		state := grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
		if h.knows(r.GetService()) {
			state = h.now(ctx)
		}
		if state != sent {
			if err := to.send(&grpc_health_v1.HealthCheckResponse{Status: state}); err != nil {
				return err
			}
			sent = state
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-look.C:
		}
	}
}
