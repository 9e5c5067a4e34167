package lead

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/musterd/muster/api"
)

// mostRequestBytes bounds what a request id may take of a coordinator's heap.
const mostRequestBytes = 300

// heapOf is how many bytes of heap each of n uses of build keeps.
func heapOf(n int, build func(i int)) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		build(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
}

// aRequest is a submission with a request id, as it comes from a client.
func aRequest(t testing.TB, l *Leader, i int) *submission {
	t.Helper()
	document := fmt.Appendf(nil, `{"metadata":{"name":"training-run-%d"},"spec":{"resources":{"requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}}}}`, i)
	a, status := api.DecodeAllocation(document)
	if status != nil {
		t.Fatal(status)
	}
	s, status := l.submissionOfAllocation(Submitted{Namespace: "default", Document: document, RequestID: fmt.Sprintf("6f1c2a34-0000-4000-8000-%012d", i)}, a)
	if status != nil {
		t.Fatal(status)
	}
	return s
}

// TestARequestIDTakesLittleMemory: a leader keeps ids of objects that are gone,
// a follower those of the store, for a day.
func TestARequestIDTakesLittleMemory(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 2_000
	}
	l := NewLeader(Beginning{Now: time.Now()})
	leads := heapOf(n, func(i int) {
		key, rec, _ := aRequest(t, l, i).requested()
		l.requests.remember(key, newRequest(rec), time.Now())
	})
	t.Logf("a request id takes %d bytes of a leader", leads)
	if leads > mostRequestBytes || leads == 0 {
		t.Errorf("%d bytes, want 1..%d", leads, mostRequestBytes)
	}
	runtime.KeepAlive(l)
}

func TestRequestIDsExpireInTheOrderTheyCame(t *testing.T) {
	var r requests
	start := time.Now()
	key := func(i int) RequestKey { return RequestKeyOf("t", fmt.Sprint(i)) }
	for i := range 100 {
		r.remember(key(i), Remembered{}, start.Add(time.Duration(i)*time.Second))
	}
	r.forget(key(10))
	r.remember(key(20), Remembered{}, start.Add(100*time.Second)) // used again: its time begins anew
	r.expire(start.Add(50 * time.Second))
	for i := range 100 {
		if _, known := r.get(key(i)); known != (i >= 50 || i == 20) {
			t.Errorf("id %d is known: %t", i, known)
		}
	}
	r.expire(start.Add(time.Hour))
	if len(r.byKey) != 0 || len(r.added) != r.head {
		t.Errorf("%d ids and %d entries are left", len(r.byKey), len(r.added)-r.head)
	}
}

func BenchmarkRememberedRequests(b *testing.B) {
	l := NewLeader(Beginning{Now: time.Now()})
	s := aRequest(b, l, 1)
	key, rec, _ := s.requested()
	b.ReportAllocs()
	for i := range b.N {
		key[0], key[1], key[2], key[3] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		l.requests.remember(key, newRequest(rec), time.Now())
	}
}
