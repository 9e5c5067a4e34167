package daemon

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/audit"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/sound"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

// mostDifferences bounds the differences of an answer.
const mostDifferences = 1000

// statusWait bounds the wait for the database in a status.
const statusWait = 2 * time.Second

// histories are those of this coordinator.
func (d *Daemon) histories() service.Histories {
	if d.history == nil {
		return service.NoHistory{}
	}
	return historyState{d, audit.NoteIn(d.store)}
}

// historyState answers for the history of a daemon.
type historyState struct {
	d *Daemon
	// note writes the request of a context into the audit: a change of rows leaves nothing
	// else in the store.
	note func(context.Context) error
}

// HistoryStatus implements service.Histories.
func (h historyState) HistoryStatus(ctx context.Context) (*api.HistoryStatus, error) {
	d := h.d
	kv, found, now, err := d.store.Get(ctx, record.HistoryPositionKey)
	if err != nil {
		return nil, err
	}
	s := d.history.projector.Status()
	answer := &api.HistoryStatus{
		Kind: "HistoryStatus", Coordinator: d.config.ID, Projector: string(s.Phase), Reason: s.Reason, DatabaseFault: s.Away, Revision: int64(s.Position), StoreRevision: int64(now),
		SpoolBytes: s.SpoolBytes, SpoolBatches: s.SpoolBatches,
	}
	if !s.AwaySince.IsZero() {
		answer.DatabaseFaultSince = s.AwaySince.UTC().Format(time.RFC3339)
	}
	if found {
		p, err := record.Decode[record.HistoryPosition](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		answer.DurableRevision, answer.SpoolOwner = int64(p.Revision), p.SpoolOwner
	}
	asking, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	w, err := d.history.door.warehouse(asking)
	if err == nil {
		answer.Database = w.Where()
		at, positionErr := w.Position(asking)
		gaps, gapsErr := w.Gaps(asking)
		answer.Revision = max(answer.Revision, int64(at.Revision))
		for _, g := range gaps {
			gap := api.HistoryGap{From: int64(g.From), To: int64(g.Upto), Reason: g.Reason}
			if !g.At.IsZero() {
				gap.Time = g.At.UTC().Format(time.RFC3339)
			}
			answer.Gaps = append(answer.Gaps, gap)
		}
		err = errors.Join(positionErr, gapsErr)
	}
	if err != nil && answer.DatabaseFault == "" {
		answer.DatabaseFault = err.Error()
	}
	return answer, nil
}

// VerifyHistory implements service.Histories.
func (h historyState) VerifyHistory(ctx context.Context) (*api.HistoryReport, error) {
	r, err := projector.Verify(ctx, h.d.store, h.d.history.door, h.d.config.Cluster, h.d.config.History.Retention.Audit)
	if err == nil {
		err = h.addContradictions(ctx, &r)
	}
	return reported(r, err)
}

// soundFor is how far back rows are checked for contradictions.
const soundFor = 24 * time.Hour

// addContradictions adds contradictions among the rows.
func (h historyState) addContradictions(ctx context.Context, r *projector.Report) error {
	w, err := h.d.history.door.warehouse(ctx)
	if err != nil {
		return err
	}
	faults, err := sound.Check(ctx, w, time.Now().Add(-soundFor))
	for _, f := range faults {
		r.Differences = append(r.Differences, projector.Difference{Kind: f.Check, Key: f.Key, Field: "sound", History: f.Detail})
	}
	return err
}

// RebuildHistory implements service.Histories.
func (h historyState) RebuildHistory(ctx context.Context) (*api.HistoryReport, error) {
	if err := h.note(ctx); err != nil {
		return nil, notNoted(err)
	}
	return reported(projector.Rebuild(ctx, h.d.store, h.d.history.door, h.d.config.Cluster, h.d.config.History.Retention.Audit))
}

// notNoted is the refusal of a change that the audit could not take.
func notNoted(err error) *api.Status {
	return api.Errorf(http.StatusServiceUnavailable, "nothing was changed, for the audit has no entry of the request: %v; ask again", err)
}

func reported(r projector.Report, err error) (*api.HistoryReport, error) {
	if err != nil {
		return nil, api.Errorf(http.StatusServiceUnavailable, "the history was not compared: %v", err)
	}
	answer := &api.HistoryReport{Kind: "HistoryReport", Revision: int64(r.Revision), Rows: r.Rows, Total: len(r.Differences)}
	for _, d := range r.Differences[:min(len(r.Differences), mostDifferences)] {
		answer.Differences = append(answer.Differences, api.HistoryDifference{Object: d.Kind, Key: d.Key, Field: d.Field, History: d.History, Store: d.Store})
	}
	return answer, nil
}

// PruneHistory implements service.Histories.
func (h historyState) PruneHistory(ctx context.Context, dryRun bool) (*api.HistoryRetention, error) {
	if !dryRun {
		if err := h.note(ctx); err != nil {
			return nil, notNoted(err)
		}
	}
	done, err := h.d.history.retain(ctx, h.d.config.History.Retention, dryRun)
	if err != nil {
		return nil, api.Errorf(http.StatusServiceUnavailable, "the history was not pruned to its end: %v", err)
	}
	answer := &api.HistoryRetention{Kind: "HistoryRetention", DryRun: dryRun, Tables: []api.HistoryTable{}}
	for _, r := range done {
		answer.Tables = append(answer.Tables, api.HistoryTable{Object: r.Kind, Table: r.Table, Before: r.Before.UTC().Format(time.RFC3339), Rows: r.Rows, Detached: r.Detached, Dropped: r.Dropped})
	}
	return answer, nil
}
