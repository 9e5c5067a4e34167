package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
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
