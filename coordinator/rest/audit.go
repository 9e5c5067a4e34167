package rest

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// routeAudit registers the endpoint of the audit.
func (h *handler) routeAudit(v1 string) {
	h.route("GET "+v1+"/audit", to(service.VerbList, service.KindAudit), h.listAudit)
}

func (h *handler) listAudit(c *call) (answer, error) {
	c.query.audit = &service.AuditQuery{Limit: service.DefaultAuditLimit}
	if status := c.parameters(service.AuditParameters...); status != nil {
		return answer{}, status
	}
	return found(h.Audits.ListAudit(c.ctx(), *c.query.audit))
}

// sender is the caller of a request with the way that the request has come.
func (h *handler) sender(c *call) service.Caller {
	caller := service.Caller{Principal: c.caller, RequestID: c.r.Header.Get(requestIDHeader), Address: c.r.RemoteAddr}
	if hop, proven := h.hopOf(c.r); proven {
		return caller.From(hop)
	}
	return caller
}

// noteRefused gives a refused request to the audit: of a caller who is not known or may
// not do it, also where the answer says that there is nothing, and beyond a limit.
func (h *handler) noteRefused(c *call, who access, status *api.Status) {
	if who != anyone {
		service.NoteRefused(c.ctx(), h.Audits, service.RefusedRequest(h.sender(c), verbOf(who, c.r), who.kind, c.namespace, c.name), status)
	}
}
