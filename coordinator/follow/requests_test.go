package follow

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

// TestARequestIDTakesLittleMemoryOfAFollower: a follower keeps the ids that the
// store has, for a day.
func TestARequestIDTakesLittleMemoryOfAFollower(t *testing.T) {
	const n, most = 2_000, 256
	f := New(options(nil, slog.New(slog.DiscardHandler)))
	f.kvs, f.leaders, f.requests = map[string]record.KV{}, map[string]record.KV{}, map[record.RequestDigest]record.Remembered{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		r := record.Request{Object: record.JobKey("default", fmt.Sprint("training-run-", i)), UID: fmt.Sprint("job-", i), DocumentHash: fmt.Sprintf("%032x", i)}
		f.put(record.KV{Key: record.RequestKey("default", fmt.Sprintf("6f1c2a34-0000-4000-8000-%012d", i)), Value: record.MustEncode(r), ModRev: 1})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int(after.HeapAlloc) - int(before.HeapAlloc)) / n; each > most || each <= 0 {
		t.Errorf("a request id takes %d bytes, want 1..%d", each, most)
	}
	runtime.KeepAlive(f)
}
