package rest

import (
	"cmp"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// routeUsage registers the endpoints of the cluster in numbers.
func (h *handler) routeUsage(v1 string) {
	usage := to(service.VerbGet, service.KindUsage)
	h.route("GET "+v1+"/metrics/cluster/utilization", usage, h.clusterUtilization)
	h.route("GET "+v1+"/metrics/queues", usage, h.queueUsage)
	h.route("GET "+v1+"/metrics/tenants/{tenant}/usage", usage, h.tenantUsage)
}

func (h *handler) clusterUtilization(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	got, err := h.Service.ClusterUtilization(c.ctx())
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}

func (h *handler) queueUsage(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	got, err := h.Service.QueueUsage(c.ctx(), c.caller)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}

func (h *handler) tenantUsage(c *call) (answer, error) {
	if status := c.parameters("period"); status != nil {
		return answer{}, status
	}
	tenant := c.r.PathValue("tenant")
	if !api.IsSubdomain(tenant) {
		return answer{}, api.Errorf(http.StatusBadRequest, "tenant %q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", clip(tenant))
	}
	if status := h.Access.AuthorizeTenant(c.ctx(), c.caller, resource.TenantID(tenant)); status != nil {
		return answer{}, status
	}
	period := cmp.Or(c.query.period, api.DefaultUsagePeriod)
	asked := cmp.Or(c.r.URL.Query().Get("period"), "24h")
	got, err := h.Service.TenantUsage(c.ctx(), resource.TenantID(tenant), period, asked)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}
