package grpcapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// auditAPI serves apiv1.Audit.
type auditAPI struct {
	apiv1.UnimplementedAuditServer
	a *API
}

// List implements apiv1.AuditServer.
func (s auditAPI) List(ctx context.Context, r *apiv1.ListAuditRequest) (*apiv1.AuditEntryList, error) {
	if status := s.a.may(ctx, service.VerbList, service.KindAudit, ""); status != nil {
		return nil, status
	}
	limit := ""
	if r.GetLimit() != 0 {
		limit = strconv.FormatInt(r.GetLimit(), 10)
	}
	q := service.AuditQuery{Limit: service.DefaultAuditLimit}
	for _, p := range [][2]string{
		{"person", r.GetPerson()}, {"verb", r.GetVerb()}, {"resource", r.GetResource()}, {"namespace", r.GetNamespace()}, {"name", r.GetName()},
		{"result", r.GetResult()}, {"since", r.GetSince()}, {"until", r.GetUntil()}, {"limit", limit}, {"continue", r.GetContinue()},
	} {
		if p[1] == "" {
			continue
		}
		if err := q.Set(p[0], p[1]); err != nil {
			return nil, api.Errorf(http.StatusBadRequest, "%s: %q: %v", p[0], service.Clip(p[1]), err)
		}
	}
	got, err := s.a.Audits.ListAudit(ctx, q)
	return answered(got, err, new(apiv1.AuditEntryList))
}
