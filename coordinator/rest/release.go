package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeReleases registers the ends of several allocations.
func (h *handler) routeReleases(v1 string) {
	const in = "/namespaces/{namespace}/allocations"
	h.route("POST "+v1+in+"/bulk-release", to(service.VerbDelete, service.KindAllocations), h.bulkRelease)
	h.route("DELETE "+v1+in, to(service.VerbDelete, service.KindAllocations), h.deleteAllocations)
}

func (h *handler) bulkRelease(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	body, status := h.document(c)
	if status != nil {
		return answer{}, status
	}
	o, status := api.DecodeBulkRelease(body)
	if status != nil {
		return answer{}, status
	}
	var selected service.Selection
	if err := selected.Select("labelSelector", o.LabelSelector); err != nil {
		return answer{}, api.Errorf(http.StatusBadRequest, "labelSelector %q: %v", clip(o.LabelSelector), err)
	}
	return h.released(c, selected.Labels, service.Release{DryRun: o.DryRun, Options: api.DeleteOptions{GracePeriodSeconds: o.GracePeriodSeconds, Reason: o.Reason}})
}

func (h *handler) deleteAllocations(c *call) (answer, error) {
	if status := c.parameters(ReleaseParameters...); status != nil {
		return answer{}, status
	}
	if status := api.CheckReleaseSelector("query parameter labelSelector", c.r.URL.Query().Get("labelSelector")); status != nil {
		return answer{}, status
	}
	options, status := h.options(c, ReleaseParameters...)
	if status != nil {
		return answer{}, status
	}
	if options.Preconditions != nil {
		return answer{}, api.Errorf(http.StatusUnprocessableEntity, "preconditions: they are for one object, the request is for all that %q selects", clip(c.r.URL.Query().Get("labelSelector")))
	}
	return h.released(c, c.query.Labels, service.Release{DryRun: c.query.dryRun, Options: options})
}

// released ends the allocations that a selector selects.
func (h *handler) released(c *call, labels service.LabelSelector, r service.Release) (answer, error) {
	names, err := service.NamesOf(c.ctx(), h.Service, c.namespace, labels)
	if err != nil {
		return answer{}, err
	}
	r.Names = names
	got, err := h.Service.ReleaseAllocations(c.ctx(), c.namespace, r)
	if err != nil {
		return answer{}, err
	}
	return ok(got), nil
}
