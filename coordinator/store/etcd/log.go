package etcd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo makes a zap logger that hands warnings and worse to a slog logger. A
// fatal message panics after it was logged instead of ending the process, so
// that Embed can return it as an error.
func zapTo(l *slog.Logger) *zap.Logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return zap.New(slogCore{log: l.With("component", "etcd")}, zap.WithFatalHook(zapcore.WriteThenPanic))
}

// slogCore is a zapcore.Core over slog.
type slogCore struct {
	log *slog.Logger
}

// harmless reports whether a warning is about a choice that Embed makes on
// purpose (no client listener, no users), or reports that the member's notes on
// its own version, which it repeats, came before its first entry or after its
// stop.
func harmless(message string) bool {
	switch message {
	case "simple token is not cryptographically signed",
		"Failed to detect schema version",
		"failed to update storage version",
		"failed to update cluster version":
		return true
	}
	return strings.HasPrefix(message, "Running http and grpc server on single port")
}

// Enabled passes warnings and worse.
func (c slogCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With returns a core that adds the fields to every record.
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{log: slog.New(c.log.Handler().WithAttrs(attrs(fields)))}
}

// Check adds the core to the cores that get the record.
func (c slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) || harmless(e.Message) {
		return ce
	}
	return ce.AddCore(e, c)
}

// answered reports whether a record only repeats an answer that its caller gets:
// the search for a server's --max-txn-ops expects several of these.
func answered(e zapcore.Entry, fields []zapcore.Field) bool {
	if e.Message != "retrying of unary invoker failed" {
		return false
	}
	return slices.ContainsFunc(fields, func(f zapcore.Field) bool {
		err, is := f.Interface.(error)
		return f.Type == zapcore.ErrorType && is && errors.Is(rpctypes.Error(err), rpctypes.ErrTooManyOps)
	})
}

// Write hands one record over.
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if answered(e, fields) {
		return nil
	}
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.log.LogAttrs(context.Background(), level, e.Message, attrs(fields)...)
	return nil
}

// Sync has nothing to flush.
func (c slogCore) Sync() error { return nil }

// attrs translates fields in their order, with snake_case keys.
func attrs(fields []zapcore.Field) []slog.Attr {
	out := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		m := zapcore.NewMapObjectEncoder()
		f.AddTo(m)
		if v, ok := m.Fields[f.Key]; ok {
			out = append(out, slog.Any(strings.ReplaceAll(f.Key, "-", "_"), v))
		}
	}
	return out
}
