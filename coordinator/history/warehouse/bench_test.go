package warehouse_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/warehouse/warehousetest"
	"github.com/musterd/muster/test/postgres"
)

// lives is how many lives of an allocation a batch of the benchmarks has.
const livesInBatch = 500

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report turns an iteration (one batch) into lives, and processor time of this process
// and of the database.
func report(b *testing.B, writer, database time.Duration) {
	n := float64(b.N * livesInBatch)
	b.ReportMetric(n/b.Elapsed().Seconds(), "lives/s")
	b.ReportMetric(float64(writer.Microseconds())/n, "writer-µs/life")
	if database > 0 {
		b.ReportMetric(float64(database.Microseconds())/n, "database-µs/life")
	}
}

// BenchmarkLives writes batches of 500 creations, 500 commits and 500 ends each, with
// all indexes, into a database that has the lives of 6 batches: b.N batches. fsync is on.
func BenchmarkLives(b *testing.B) {
	b.Run("PostgreSQL", func(b *testing.B) {
		server := postgres.Start(b, "shared_buffers=256MB", "max_wal_size=2GB")
		benchmarkLives(b, server.Database(b), server.CPU)
	})
	b.Run("SQLite", func(b *testing.B) {
		benchmarkLives(b, "sqlite:"+filepath.Join(b.TempDir(), "history.db"), func() time.Duration { return 0 })
	})
}

func benchmarkLives(b *testing.B, dsn string, database func() time.Duration) {
	w := warehousetest.Open(b, dsn)
	var lives warehousetest.Lives
	for range 6 {
		warehousetest.Write(b, w, lives.Batch(livesInBatch))
	}
	b.ResetTimer()
	writer, server := cpu(), database()
	for range b.N {
		warehousetest.Write(b, w, lives.Batch(livesInBatch))
	}
	b.StopTimer()
	report(b, cpu()-writer, database()-server)
}

// BenchmarkRebuild writes allocations in their last state, without the secondary
// indexes, and makes the indexes at the end: b.N batches of 500.
func BenchmarkRebuild(b *testing.B) {
	b.Run("PostgreSQL", func(b *testing.B) {
		server := postgres.Start(b, "shared_buffers=256MB", "max_wal_size=2GB")
		benchmarkRebuild(b, server.Database(b), server.CPU)
	})
	b.Run("SQLite", func(b *testing.B) {
		benchmarkRebuild(b, "sqlite:"+filepath.Join(b.TempDir(), "history.db"), func() time.Duration { return 0 })
	})
}

func benchmarkRebuild(b *testing.B, dsn string, database func() time.Duration) {
	w := warehousetest.Open(b, dsn)
	var lives warehousetest.Lives
	b.ResetTimer()
	writer, server := cpu(), database()
	if err := w.DropIndexes(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := w.Repair(b.Context(), func(yield func(history.Batch) bool) {
		for n := 0; n < b.N && yield(lives.Ended(livesInBatch)); n++ {
		}
	}); err != nil {
		b.Fatal(err)
	}
	if err := w.MakeIndexes(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	report(b, cpu()-writer, database()-server)
}
