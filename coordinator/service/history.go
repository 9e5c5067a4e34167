package service

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
)

// KindHistory is the history of the cluster in a database, as its operators see it.
const KindHistory Kind = "history"

// Histories is the state of the history. Each coordinator answers by itself.
type Histories interface {
	// HistoryStatus says how far the history is. It blocks on the database for seconds
	// at most, and answers without it.
	HistoryStatus(ctx context.Context) (*api.HistoryStatus, error)
	// VerifyHistory compares the history with the store, and changes nothing.
	VerifyHistory(ctx context.Context) (*api.HistoryReport, error)
	// RebuildHistory writes the rows anew that differ, and returns the differences.
	RebuildHistory(ctx context.Context) (*api.HistoryReport, error)
	// PruneHistory removes the rows that are older than the periods of their kinds, or
	// only says which.
	PruneHistory(ctx context.Context, dryRun bool) (*api.HistoryRetention, error)
}

// NoHistory is a coordinator without a history.
type NoHistory struct{}

func noHistory() *api.Status {
	return api.Errorf(http.StatusNotFound, "this coordinator keeps no history: its configuration has no history.dsn")
}

// HistoryStatus implements Histories.
func (NoHistory) HistoryStatus(context.Context) (*api.HistoryStatus, error) { return nil, noHistory() }

// VerifyHistory implements Histories.
func (NoHistory) VerifyHistory(context.Context) (*api.HistoryReport, error) { return nil, noHistory() }

// RebuildHistory implements Histories.
func (NoHistory) RebuildHistory(context.Context) (*api.HistoryReport, error) { return nil, noHistory() }

// PruneHistory implements Histories.
func (NoHistory) PruneHistory(context.Context, bool) (*api.HistoryRetention, error) {
	return nil, noHistory()
}
