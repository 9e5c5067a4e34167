package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/sampler"
)

// TestAFolderThatIsNoneIsSaidAtOnce: the error of the spool's folder does not wait for the
// end of the coordinator.
func TestAFolderThatIsNoneIsSaidAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &historian{door: &door{dsn: "sqlite:" + file, turn: make(chan struct{}, 1)}, projector: projector.New(projector.Config{Name: "c1", SpoolDir: file}), sampler: sampler.New(nil, slog.New(slog.DiscardHandler), nil)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := h.run(ctx, History{}, slog.New(slog.DiscardHandler)); err == nil || ctx.Err() != nil {
		t.Errorf("error %v, the context's %v", err, ctx.Err())
	}
}

// TestAChangeOfTheHistoryIsNotedFirst: the audit has a removal and a rebuild before they
// begin. A dry run has no entry.
func TestAChangeOfTheHistoryIsNotedFirst(t *testing.T) {
	d := &Daemon{history: &historian{door: &door{dsn: "sqlite:" + filepath.Join(t.TempDir(), "h.db"), turn: make(chan struct{}, 1)}}}
	noted := 0
	var fault error
	s := historyState{d, func(context.Context) error { noted++; return fault }}
	for _, c := range []struct {
		dryRun bool
		noted  int
	}{{true, 0}, {false, 1}} {
		if _, err := s.PruneHistory(t.Context(), c.dryRun); err != nil || noted != c.noted {
			t.Errorf("dry run %t: %v, %d entries, want %d", c.dryRun, err, noted, c.noted)
		}
	}
	fault = errors.New("the store is away")
	const want = "nothing was changed, for the audit has no entry of the request: the store is away; ask again"
	if _, err := s.PruneHistory(t.Context(), false); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a removal without an entry: %v", err)
	}
	if _, err := s.RebuildHistory(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a rebuild without an entry: %v", err)
	}
}
