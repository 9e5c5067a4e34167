package grpcapi

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
)

// usage implements muster.api.v1.Usage.
type usage struct {
	apiv1.UnimplementedUsageServer
	a *API
}

// GetClusterUtilization implements apiv1.UsageServer.
func (s usage) GetClusterUtilization(ctx context.Context, _ *apiv1.GetClusterUtilizationRequest) (*apiv1.ClusterUtilization, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindUsage, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Service.ClusterUtilization(ctx)
	return answered(got, err, new(apiv1.ClusterUtilization))
}

// GetQueues implements apiv1.UsageServer.
func (s usage) GetQueues(ctx context.Context, _ *apiv1.GetQueuesRequest) (*apiv1.QueueUsage, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindUsage, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Service.QueueUsage(ctx, caller(ctx))
	return answered(got, err, new(apiv1.QueueUsage))
}

// GetTenantUsage implements apiv1.UsageServer.
func (s usage) GetTenantUsage(ctx context.Context, r *apiv1.GetTenantUsageRequest) (*apiv1.TenantUsage, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindUsage, ""); status != nil {
		return nil, status
	}
	if !api.IsSubdomain(r.GetTenant()) {
		return nil, api.Errorf(http.StatusBadRequest, "tenant %q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", service.Clip(r.GetTenant()))
	}
	tenant := resource.TenantID(r.GetTenant())
	if status := s.a.Access.AuthorizeTenant(ctx, caller(ctx), tenant); status != nil {
		return nil, status
	}
	period, asked := api.DefaultUsagePeriod, "24h"
	if r.GetPeriod() != nil {
		var status *api.Status
		asked = r.GetPeriod().AsDuration().String()
		if period, status = api.ParsePeriod(asked); status != nil {
			return nil, status
		}
	}
	got, err := s.a.Service.TenantUsage(ctx, tenant, period, asked)
	return answered(got, err, new(apiv1.TenantUsage))
}
