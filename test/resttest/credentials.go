package resttest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/musterd/muster/coordinator/access"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// Credentials are the tokens and the role bindings of a store in memory that has the
// given writes.
func Credentials(tb testing.TB, writes ...record.Op) service.Credentials {
	tb.Helper()
	s := mem.Open(mem.Options{})
	tb.Cleanup(func() { _ = s.Close() })
	if len(writes) > 0 {
		if _, err := s.Txn(tb.Context(), record.Txn{Then: writes}); err != nil {
			tb.Fatal(err)
		}
	}
	return &access.Keeper{
		Store: s, Table: access.NewTable(nil), Logger: slog.New(slog.DiscardHandler), Settle: func(context.Context, resource.Revision) []string { return nil },
	}
}
