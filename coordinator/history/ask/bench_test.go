package ask_test

import (
	"path/filepath"
	"testing"

	"github.com/musterd/muster/coordinator/history/ask"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/test/postgres"
)

// BenchmarkNewest reads the newest page of the allocations of all tenants, of 50,000.
func BenchmarkNewest(b *testing.B) {
	for name, dsn := range map[string]func(*testing.B) string{
		"PostgreSQL": func(b *testing.B) string { return postgres.Start(b).Database(b) },
		"SQLite":     func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "history.db") },
	} {
		b.Run(name, func(b *testing.B) {
			w := warehousetest.Open(b, dsn(b))
			var lives warehousetest.Lives
			for range 50 {
				warehousetest.Write(b, w, lives.Ended(1000))
			}
			if w.Dialect() == warehouse.Postgres {
				if _, err := w.SQL().Exec("ANALYZE"); err != nil {
					b.Fatal(err)
				}
			}
			h := ask.Of(w)
			for b.Loop() {
				got, _, err := h.Allocations(b.Context(), ask.Query{Scope: ask.Scope{All: true}})
				if err != nil || len(got) != ask.DefaultLimit {
					b.Fatalf("%d allocations, %v; want %d", len(got), err, ask.DefaultLimit)
				}
			}
		})
	}
}
