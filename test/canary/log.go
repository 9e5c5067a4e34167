package canary

import (
	"log/slog"
	"sync"
	"testing"
)

// mostFaults bounds the faults that a log keeps.
const mostFaults = 20

// Logger is a logger at level debug for the programs of a test. The test fails at its
// end for each secret in the log; the log itself is dropped.
func Logger(t testing.TB) *slog.Logger {
	l := &lines{}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, what := range l.faults {
			t.Errorf("the log has %s", what)
		}
	})
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines looks for secrets in each line that is written to it.
type lines struct {
	mu     sync.Mutex
	faults []string
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	if found := Find(string(b)); len(found) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.faults) < mostFaults {
			l.faults = append(l.faults, found...)
		}
	}
	return len(b), nil
}
