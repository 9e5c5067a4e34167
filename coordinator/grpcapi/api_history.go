package grpcapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// historyAPI serves apiv1.History.
type historyAPI struct {
	apiv1.UnimplementedHistoryServer
	a *API
}

// query is what a caller asks about the past.
func (s historyAPI) query(ctx context.Context, r *apiv1.ListPastRequest) (service.PastQuery, *api.Status) {
	if status := s.a.may(ctx, service.VerbList, service.KindPast, ""); status != nil {
		return service.PastQuery{}, status
	}
	limit := ""
	if r.GetLimit() != 0 {
		limit = strconv.FormatInt(r.GetLimit(), 10)
	}
	q := service.PastQuery{Sees: service.PastOf(caller(ctx)), Limit: service.DefaultPastLimit}
	for _, p := range [][2]string{
		{"namespace", r.GetNamespace()}, {"name", r.GetName()}, {"state", r.GetState()}, {"since", r.GetSince()}, {"until", r.GetUntil()}, {"limit", limit},
		{"continue", r.GetContinue()},
	} {
		if p[1] == "" {
			continue
		}
		if err := q.Set(p[0], p[1]); err != nil {
			return q, api.Errorf(http.StatusBadRequest, "%s: %q: %v", p[0], service.Clip(p[1]), err)
		}
	}
	return q, nil
}

// ListAllocations implements apiv1.HistoryServer.
func (s historyAPI) ListAllocations(ctx context.Context, r *apiv1.ListPastRequest) (*apiv1.PastAllocationList, error) {
	q, status := s.query(ctx, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Past.PastAllocations(ctx, q)
	return answered(got, err, new(apiv1.PastAllocationList))
}

// ListPreemptions implements apiv1.HistoryServer.
func (s historyAPI) ListPreemptions(ctx context.Context, r *apiv1.ListPastRequest) (*apiv1.PastPreemptionList, error) {
	q, status := s.query(ctx, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Past.PastPreemptions(ctx, q)
	return answered(got, err, new(apiv1.PastPreemptionList))
}

// ListEvents implements apiv1.HistoryServer.
func (s historyAPI) ListEvents(ctx context.Context, r *apiv1.ListPastRequest) (*apiv1.PastEventList, error) {
	q, status := s.query(ctx, r)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Past.PastEvents(ctx, q)
	return answered(got, err, new(apiv1.PastEventList))
}

// GetStatus implements apiv1.HistoryServer.
func (s historyAPI) GetStatus(ctx context.Context, _ *apiv1.GetHistoryStatusRequest) (*apiv1.HistoryStatus, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindHistory, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Histories.HistoryStatus(ctx)
	return answered(got, err, new(apiv1.HistoryStatus))
}

// Verify implements apiv1.HistoryServer.
func (s historyAPI) Verify(ctx context.Context, _ *apiv1.VerifyHistoryRequest) (*apiv1.HistoryReport, error) {
	if status := s.a.may(ctx, service.VerbGet, service.KindHistory, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Histories.VerifyHistory(ctx)
	return answered(got, err, new(apiv1.HistoryReport))
}

// Rebuild implements apiv1.HistoryServer.
func (s historyAPI) Rebuild(ctx context.Context, _ *apiv1.RebuildHistoryRequest) (*apiv1.HistoryReport, error) {
	if status := s.a.may(ctx, service.VerbUpdate, service.KindHistory, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Histories.RebuildHistory(ctx)
	return answered(got, err, new(apiv1.HistoryReport))
}

// Prune implements apiv1.HistoryServer.
func (s historyAPI) Prune(ctx context.Context, r *apiv1.PruneHistoryRequest) (*apiv1.HistoryRetention, error) {
	if status := s.a.may(ctx, service.VerbUpdate, service.KindHistory, ""); status != nil {
		return nil, status
	}
	got, err := s.a.Histories.PruneHistory(ctx, r.GetDryRun())
	return answered(got, err, new(apiv1.HistoryRetention))
}
