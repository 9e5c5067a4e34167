package prerequisite_test

import (
	"testing"

	"github.com/musterd/muster/test/prerequisite"
)

func TestABenchmarkFailsAndATestSkips(t *testing.T) {
	t.Setenv("CI", "false")
	r := testing.Benchmark(func(b *testing.B) { prerequisite.Missing(b, "no etcd in PATH") })
	if r.N != 0 {
		t.Errorf("a benchmark without its program has run %d times, want a failure", r.N)
	}
	skipped := false
	t.Run("test", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		prerequisite.Missing(t, "not permitted here: no etcd in PATH")
	})
	if !skipped {
		t.Error("a test without its program has not skipped")
	}
}
