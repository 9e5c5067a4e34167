package gossip

import (
	"bytes"
	"context"
	"log/slog"
)

// logWriter turns the rings' own lines ("2026/01/02 15:04:05 [WARN] memberlist:
// ...") into debug records: most of their errors are peers that went away, and
// this package logs the important events itself.
type logWriter struct {
	logger *slog.Logger
	ring   string
}

// Write takes one line and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	ctx := context.Background()
	if !w.logger.Enabled(ctx, slog.LevelDebug) {
		return len(line), nil
	}
	severity, text := splitSeverity(line)
	w.logger.LogAttrs(ctx, slog.LevelDebug, "ring_log", slog.String("ring", w.ring), slog.String("severity", severity), slog.String("text", text))
	return len(line), nil
}

// splitSeverity takes the time stamp and the "[WARN]" off a line. A line
// without one is "info".
func splitSeverity(line []byte) (severity, text string) {
	line = bytes.TrimSpace(line)
	names := []struct{ mark, name string }{
		{"[ERR]", "error"}, {"[ERROR]", "error"}, {"[WARN]", "warn"}, {"[INFO]", "info"}, {"[DEBUG]", "debug"},
	}
	for _, n := range names {
		if _, rest, ok := bytes.Cut(line, []byte(n.mark)); ok {
			return n.name, string(bytes.TrimSpace(rest))
		}
	}
	return "info", string(line)
}
