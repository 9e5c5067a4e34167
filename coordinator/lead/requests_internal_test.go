package lead

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
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
		l.requests.Remember(key, rec.Remembered(), time.Now())
	})
	t.Logf("a request id takes %d bytes of a leader", leads)
	if leads > mostRequestBytes || leads == 0 {
		t.Errorf("%d bytes, want 1..%d", leads, mostRequestBytes)
	}
	runtime.KeepAlive(l)
}

func BenchmarkRememberedRequests(b *testing.B) {
	l := NewLeader(Beginning{Now: time.Now()})
	s := aRequest(b, l, 1)
	key, rec, _ := s.requested()
	b.ReportAllocs()
	for i := range b.N {
		key[12], key[13], key[14], key[15] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		l.requests.Remember(key, rec.Remembered(), time.Now())
	}
}

// A tenant has a bounded number of request ids in a day. Repetitions of known ids go on,
// as do other tenants and submissions without an id, and a day later there is room again.
func TestATenantHasABoundedNumberOfRequestIDs(t *testing.T) {
	x := newSceneOf(t, func() Rules {
		r := sceneRules()
		r.Namespaces = map[string]Namespace{"default": {Tenant: "ml"}, "other": {Tenant: "speech"}}
		return r
	}())
	x.requests = desk.NewMemory(3)
	submit := func(namespace, name, id string) *api.Status {
		t.Helper()
		x.clear()
		document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"suspend":true,"resources":{"requests":{"cpu":"1"}}}}`, name)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		s, status := x.submissionOfAllocation(Submitted{Namespace: namespace, Document: document, Hash: name, RequestID: id}, doc)
		if status != nil {
			t.Fatal(status)
		}
		x.finish(func() { _, _, status = x.accept(s) })
		return status
	}
	for i := range 3 {
		if status := submit("default", fmt.Sprint("a", i), fmt.Sprint("id", i)); status != nil {
			t.Fatal(status)
		}
	}
	const want = "tenant ml has used 3 Idempotency-Keys within a day and may use 3: submit without the key, or wait until the oldest are a day old"
	if status := submit("default", "a3", "id3"); status == nil || status.Code != 429 || status.Reason != api.TooManyObjects || status.Message != want {
		t.Errorf("the fourth: %+v, want %q", status, want)
	}
	for what, status := range map[string]*api.Status{
		"a known id again":   submit("default", "a0", "id0"),
		"without an id":      submit("default", "a4", ""),
		"the other tenant's": submit("other", "a3", "id3"),
	} {
		if status != nil {
			t.Errorf("%s: %v", what, status)
		}
	}
	x.clock = x.clock.Add(RequestLeaseTTL + time.Second)
	x.give(SecondPassed{})
	if status := submit("default", "a3", "id3"); status != nil {
		t.Errorf("a day later: %v", status)
	}
}

// TestTheProgressOfADrain: a minute after the grace an allocation has failed to leave, and
// never before the notice.
func TestTheProgressOfADrain(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.ask(DrainNode{"n1", txn.EvictAsked{GraceSeconds: 10, Reason: "r"}})
	x.answer() // the node is cordoned
	for i, c := range []struct {
		step func()
		want string
	}{
		{func() {}, "Draining {0 1 0}"},
		{x.answers, "Draining {0 1 0}"},
		{func() { x.pass(10*time.Second + drainPatience) }, "Draining {0 1 0}"},
		{func() { x.pass(time.Second) }, "Draining {0 0 1}"},
		{func() { x.settles(a, grant.Tombstone) }, "Drained {1 0 0}"},
	} {
		c.step()
		if d := x.drainOf("n1"); fmt.Sprint(d.Status, " ", d.Progress) != c.want {
			t.Errorf("step %d: %s %v, want %s", i, d.Status, d.Progress, c.want)
		}
	}
}
